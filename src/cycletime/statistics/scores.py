"""Scores as they come in: one number for each run, and what happens to runs that diverged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycletime.errors import InputError

Scores = ArrayLike | Sequence[float | None]
"""One number for each run; NaN, infinity or None for a run that diverged."""
Failed = Literal["refuse", "exclude"]
"""What happens to runs that diverged: an error, or they are left out and counted."""


def finite_scores(scores: Scores, failed: Failed) -> tuple[NDArray[np.float64], int]:
    """The finite scores of a cell, and how many are not.

    Raises:
        InputError: if there are none, or some are not finite and `failed` does not say to exclude them.
    """
    values = numbers(scores)
    finite = np.isfinite(values)
    return values[finite], left_out(finite, failed)


def numbers(scores: Scores, what: str = "run") -> NDArray[np.float64]:
    """The scores as an array with one axis.

    Raises:
        InputError: if they are not one number for each run.
    """
    try:
        values = np.asarray(scores, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"Scores must be one number for each {what}, not {scores!r}.") from None
    if values.ndim != 1:
        raise InputError(f"Scores must be one number for each {what}, not an array of shape {values.shape}.")
    return values


def left_out(finite: NDArray[np.bool_], failed: Failed) -> int:
    """How many runs are left out, or an error if that was not asked for or leaves none.

    Raises:
        InputError: if so.
    """
    n, n_failed = len(finite), int((~finite).sum())
    if failed not in ("refuse", "exclude"):
        raise InputError(f"{failed!r} is not a way to treat failed runs: take 'refuse' or 'exclude'.")
    if n == 0:
        raise InputError("There are no scores: give one for each run.")
    if n_failed == n:
        raise InputError(f"No run of {n} has a finite score, and at least one must have.")
    if n_failed and failed == "refuse":
        raise InputError(
            f"{n_failed} of {n} runs have no finite score: failed='exclude' leaves such out and counts them."
        )
    return n_failed
