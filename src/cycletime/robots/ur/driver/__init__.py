"""The driver: a process of its own between an agent and an arm, so that no learning ever delays a safety check."""
