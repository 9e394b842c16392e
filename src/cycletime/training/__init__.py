"""One training: spec and identity, Algorithm 1 compiled and stepped, engines, the trainer, checkpoints and curve."""
