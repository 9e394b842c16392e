"""Means over runs, with the paper's standard error or Student's t interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cycletime.errors import InputError
from cycletime.statistics.scores import Failed, Scores, finite_scores

NO_INTERVAL = "no interval from 1 run"
"""What stands for an interval where a cell has a single run, which says nothing about the spread."""


@dataclass(frozen=True)
class Estimate:
    """A number with its uncertainty and what both rest on."""

    value: float
    """The statistic of the scores themselves."""
    low: float | None
    """The interval's lower end; None without an interval."""
    high: float | None
    """The interval's upper end."""
    interval: str
    """Which interval: 'standard error', '95 % bootstrap', or why there is none."""
    cells: tuple[int, ...]
    """The number of runs that count, of each cell in turn (of x, then y, where two are compared); or of pairs."""
    n_failed: int = 0
    """Runs, or pairs of runs, that were left out since they diverged."""
    resamples: int = 0
    """How many times the runs were drawn anew, for a bootstrap."""

    @property
    def n(self) -> int:
        """The number of runs that count, of all cells together."""
        return sum(self.cells)

    @property
    def runs(self) -> str:
        """The number of runs of each cell in words, such as '30 + 30' or '5 x 30'."""
        alike = len(self.cells) > 2 and len(set(self.cells)) == 1
        return f"{len(self.cells)} x {self.cells[0]}" if alike else " + ".join(map(str, self.cells))

    def __str__(self) -> str:
        """The value, the interval and the number of runs, such as '-4.1 (-4.6 to -3.7, standard error, n = 30)'."""
        ends = "" if self.low is None or self.high is None else f"{self.low:.4g} to {self.high:.4g}, "
        failed = f", {self.n_failed} failed" if self.n_failed else ""
        return f"{self.value:.4g} ({ends}{self.interval}, n = {self.runs}{failed})"


def mean_and_error(scores: Scores, *, failed: Failed = "refuse") -> Estimate:
    """The mean over runs, and one standard error to either side: the paper's number.

    Raises:
        InputError: if there are no scores, or some are not finite and `failed` does not say to exclude them.
    """
    values, n_failed = finite_scores(scores, failed)
    return _with_errors(values, n_failed, 1.0, "standard error")


def mean_and_interval(scores: Scores, *, confidence: float = 0.95, failed: Failed = "refuse") -> Estimate:
    """The mean over runs with Student's t interval: for few runs, where a bootstrap is too narrow.

    Raises:
        InputError: as `mean_and_error`, or if the confidence is not between 0 and 1.
    """
    interval = f"{percent(confidence)} t"
    values, n_failed = finite_scores(scores, failed)
    return _with_errors(values, n_failed, t_errors(confidence, len(values) - 1), interval)


def mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean over runs, the last axis; exact where all are equal."""
    first = values[..., :1]
    means: NDArray[np.float64] = first[..., 0] + np.mean(values - first, axis=-1)
    return means


def standard_error(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The standard error of the mean over runs; zero, free of rounding, where all are equal."""
    error: NDArray[np.float64] = np.std(values - values[..., :1], axis=-1, ddof=1) / np.sqrt(values.shape[-1])
    return error


def t_errors(confidence: float, freedom: float) -> float:
    """How many standard errors Student's t interval has to either side."""
    return float(special.stdtrit(freedom, (1 + confidence) / 2))


def percent(confidence: float) -> str:
    """The confidence in words, if it is one.

    Raises:
        InputError: if it is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise InputError(f"A confidence of {confidence} is not between 0 and 1: give one such as 0.95.")
    return f"{100 * confidence:.6g} %"


def _with_errors(values: NDArray[np.float64], n_failed: int, errors: float, interval: str) -> Estimate:
    value, n = float(mean(values)), len(values)
    if n < 2:
        return Estimate(value, None, None, NO_INTERVAL, (n,), n_failed)
    half = errors * float(standard_error(values))
    return Estimate(value, value - half, value + half, interval, (n,), n_failed)
