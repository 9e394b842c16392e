"""Scores of runs, and their means: standard errors, Student's t intervals, and Welch's t for weighted sums of means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from cycletime.errors import InputError

Scores = ArrayLike | Sequence[float | None]
"""One number for each run; NaN, infinity or None for a run that diverged."""
Failed = Literal["refuse", "exclude"]
"""What happens to runs that diverged: an error, or they are left out and counted."""


def finite_scores(scores: Scores, failed: Failed) -> tuple[NDArray[np.float64], int]:
    """The finite scores of a cell, and how many are not."""
    values = as_score_array(scores)
    finite = np.isfinite(values)
    return values[finite], count_failed(finite, failed)


def as_score_array(scores: Scores, what: str = "run") -> NDArray[np.float64]:
    """The scores as an array with one axis."""
    try:
        values = np.asarray(scores, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"Scores must be one number for each {what}, not {scores!r}.") from None
    if values.ndim != 1:
        raise InputError(f"Scores must be one number for each {what}, not an array of shape {values.shape}.")
    return values


def count_failed(finite: NDArray[np.bool_], failed: Failed) -> int:
    """How many runs are left out; refused if that was not asked for or leaves none."""
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
    return _mean_estimate(values, n_failed, 1.0, "standard error")


def mean_and_interval(scores: Scores, *, confidence: float = 0.95, failed: Failed = "refuse") -> Estimate:
    """The mean over runs with Student's t interval: for few runs, where a bootstrap is too narrow.

    Raises:
        InputError: as `mean_and_error`, or if the confidence is not between 0 and 1.
    """
    interval = f"{percent(confidence)} t"
    values, n_failed = finite_scores(scores, failed)
    return _mean_estimate(values, n_failed, t_quantile(confidence, len(values) - 1), interval)


def mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean over runs, the last axis; exact where all are equal."""
    first = values[..., :1]
    means: NDArray[np.float64] = first[..., 0] + np.mean(values - first, axis=-1)
    return means


def standard_error(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The standard error of the mean over runs; zero, free of rounding, where all are equal."""
    error: NDArray[np.float64] = np.std(values - values[..., :1], axis=-1, ddof=1) / np.sqrt(values.shape[-1])
    return error


def t_quantile(confidence: float, freedom: float) -> float:
    """How many standard errors Student's t interval has to either side."""
    return float(special.stdtrit(freedom, (1 + confidence) / 2))


def percent(confidence: float) -> str:
    """The confidence in words; refused unless it is between 0 and 1."""
    if not 0 < confidence < 1:
        raise InputError(f"A confidence of {confidence} is not between 0 and 1: give one such as 0.95.")
    return f"{100 * confidence:.6g} %"


def _mean_estimate(values: NDArray[np.float64], n_failed: int, errors: float, interval: str) -> Estimate:
    value, n = float(mean(values)), len(values)
    if n < 2:
        return Estimate(value, None, None, NO_INTERVAL, (n,), n_failed)
    half = errors * float(standard_error(values))
    return Estimate(value, value - half, value + half, interval, (n,), n_failed)


@dataclass(frozen=True)
class Contrast:
    """A weighted sum of means, and how sure it is."""

    value: float
    error: float
    freedom: float
    """Welch and Satterthwaite's degrees of freedom; of a single mean, n - 1."""

    @classmethod
    def of(cls, terms: Sequence[tuple[float, NDArray[np.float64]]]) -> Contrast:
        """The sum of the means of groups of runs, each with its weight; every group needs two runs."""
        value = sum(weight * float(mean(runs)) for weight, runs in terms)
        errors = np.array([abs(weight) * float(standard_error(runs)) for weight, runs in terms])
        error = float(np.hypot.reduce(errors))
        if error == 0.0:
            return cls(value, error, inf)
        degrees = np.array([len(runs) - 1 for _, runs in terms])
        return cls(value, error, float(1 / np.sum((errors / error) ** 4 / degrees)))

    def half_width(self, confidence: float) -> float:
        """Of the interval that should cover it with this confidence."""
        return t_quantile(confidence, self.freedom) * self.error

    def tail(self, distance: float) -> float:
        """How probable it is that chance alone gives a value that exceeds the true one by so much, or more."""
        if self.error == 0.0:
            return 0.5 if distance == 0.0 else float(distance < 0)  # what the formula below tends to
        return float(special.stdtr(self.freedom, -distance / self.error))
