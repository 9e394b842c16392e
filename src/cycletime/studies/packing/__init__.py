"""Studies for a machine that has little installed: one file that takes them there."""
