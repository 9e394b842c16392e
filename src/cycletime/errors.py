"""The exceptions that are the user's to resolve, and how their messages quote what is wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

_QUOTED_CHARACTERS = 50
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


class EnvError(Exception):
    """An environment that failed with an error of the system's, such as a lost connection: its traceback is shown."""


def error_sentence(error: Exception) -> str:
    """What went wrong, for people: a sentence of ours alone, and before what others say its kind."""
    return str(error) if isinstance(error, InputError | RunError) else f"{type(error).__name__}: {error}"


def first_line(error: BaseException) -> str:
    """The first line of another library's message, which often is all that people can use."""
    text = error.args[0] if isinstance(error, KeyError) and error.args else error  # whose own text has quotes
    return (str(text).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def kind_and_first_line(error: BaseException) -> str:
    """Such as 'OSError: no network', or the kind alone where there is no message."""
    kind, line = type(error).__name__, first_line(error)
    return kind if line == kind else f"{kind}: {line}"


def did_you_mean(word: object, known: Iterable[str], most: int = 1) -> str:
    """The end of a sentence about an unknown name: the known ones that are nearest, if any is near at all."""
    if not isinstance(word, str):
        return "."
    bare = {name.lstrip("-").lower(): name for name in known}  # the hyphens of options make them no likelier
    word = word.lower().lstrip("-")
    counted = [f"{part}s" for part in word.split("_") if f"{part}s" in bare]  # seed_count: seeds
    near = get_close_matches(word, bare, max(most, 3)) or counted
    near.sort(key=lambda name: sorted(name) != sorted(word))  # 'form' is rather 'from' than 'for'
    return f"; did you mean {' or '.join(bare[name] for name in near[:most])}?" if near else "."


def unknown_name_error(value: object, what: str, known: Collection[str]) -> InputError:
    """The refusal of what is none of the known names, with the nearest of them: 'PPO' is not an algorithm."""
    return InputError(f"{quote(value)} is not {what}: give one of {', '.join(known)}{did_you_mean(value, known)}")


def quote(value: object) -> str:
    """A value as a message quotes it: its repr, without the middle where that is long, and no number of many digits."""
    return (
        "a number of more than 60 digits" if isinstance(value, int) and abs(value) >= 10**60 else shorten(repr(value))
    )


def shorten(text: str) -> str:
    return (
        text if len(text) <= 2 * _QUOTED_CHARACTERS else f"{text[:_QUOTED_CHARACTERS]}...{text[-_QUOTED_CHARACTERS:]}"
    )


def printable(text: str) -> str:
    """A text as a terminal may have it: what would move its cursor or change its colours is written out."""
    return "".join(each if each.isprintable() or each == "\n" else repr(each)[1:-1] for each in text)
