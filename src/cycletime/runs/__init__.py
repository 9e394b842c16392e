"""One training on disk: its spec, identity, learning curve, checkpoints and policy."""
