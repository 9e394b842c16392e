"""A study for a machine that has little installed: one file that takes it there."""
