"""The one exception that means 'the input is wrong', so that the command line can tell it from a defect."""


class InputError(ValueError):
    """A wrong input: its message is one sentence with the offending value and what would be right."""
