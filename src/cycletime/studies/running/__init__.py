"""Workers that take runs of a study, and the command that looks after them."""
