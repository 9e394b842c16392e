"""The exceptions that are no defects of the program, and how their messages quote what is wrong."""

_QUOTED = 50
"""Characters at each end of a long quotation."""


class InputError(ValueError):
    """A wrong input: its message is one sentence with the offending value and what would be right."""


class RunError(RuntimeError):
    """A run that cannot go on though nothing was typed wrong, such as on a full disk: one sentence, nothing lost."""


class MachineError(RunError):
    """What a machine lacks for a run: not the fault of the run, and others like it would meet the same there."""


class DiskFullError(MachineError):
    """There is no room on the disk."""


class NoGpuError(InputError, MachineError):
    """There is no GPU for the run, or none that can be used: the sentence says why, and what would help."""


class NotInstalledError(ModuleNotFoundError, InputError):
    """A package is missing that an extra brings: the sentence says for what, and how to install it."""


def shown(value: object) -> str:
    """A value as a message quotes it: its repr, without the middle where that is long."""
    return cut(repr(value))


def cut(text: str) -> str:
    """A text without the middle where it is long."""
    return text if len(text) <= 2 * _QUOTED else f"{text[:_QUOTED]}...{text[-_QUOTED:]}"


def printable(text: str) -> str:
    """A text as a terminal may have it: what would move its cursor or change its colours is written out."""
    return "".join(each if each.isprintable() or each == "\n" else repr(each)[1:-1] for each in text)
