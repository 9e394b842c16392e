"""What is said where results are not there yet."""

from __future__ import annotations

from pathlib import Path

from cycletime.errors import InputError


class NoResultsError(InputError):
    """Results that are not there: the sentence says what makes them."""


def found(file: Path, what_makes_it: str) -> Path:
    """The file itself.

    Raises:
        NoResultsError: if it is not there.
    """
    if not file.exists():
        raise NoResultsError(f"{file} is not there: {what_makes_it}")
    return file
