"""Scores of runs, and their means: standard errors, Student's t intervals, and weighted sums of means by seed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf, nan
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from cycletime.errors import InputError

Scores = ArrayLike | Sequence[float | None]
"""One number for each run; NaN, infinity or None for a run that diverged."""
Runs = Scores | Mapping[int, float] | Mapping[int, float | None]
"""The same, or the number of each run by its seed, so that runs with equal seeds can be compared in pairs."""
Failed = Literal["refuse", "exclude"]
"""What happens to runs that diverged: an error, or they are left out and counted."""


def finite_scores(scores: Scores, failed: Failed) -> tuple[NDArray[np.float64], int]:
    values = as_score_array(scores)
    finite = np.isfinite(values)
    return values[finite], count_failed(finite, failed)


def as_score_array(scores: Scores, what: str = "run") -> NDArray[np.float64]:
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
    low: float | None
    """The interval's lower end; None without an interval."""
    high: float | None
    interval: str
    """Which interval: 'standard error', '95 % bootstrap', or why there is none."""
    cells: tuple[int, ...]
    """The number of runs that count, of each cell in turn (of x, then y, where two are compared); or of pairs."""
    n_failed: int = 0
    """Runs, or pairs of runs, that were left out since they diverged."""
    resamples: int = 0

    @property
    def n(self) -> int:
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
    """The mean over runs, and one standard error to either side: the paper's number."""
    values, n_failed = finite_scores(scores, failed)
    return _mean_estimate(values, n_failed, 1.0, "standard error")


def mean_and_interval(scores: Scores, *, confidence: float = 0.95, failed: Failed = "refuse") -> Estimate:
    """The mean over runs with Student's t interval: for few runs, where a bootstrap is too narrow."""
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
    error: float | None
    """The standard error; None where the runs say nothing of the spread."""
    freedom: float
    """Welch and Satterthwaite's degrees of freedom; of a single mean or of pairs, n - 1."""
    cells: tuple[int, ...]
    """The seeds that the same terms have, of each such group: of pairs one number, without shared seeds one a term."""
    n_failed: int = 0
    """Seeds that were left out since a run diverged."""
    kind: Literal["t", "Welch t", "paired t"] = "t"

    @classmethod
    def of(cls, terms: Sequence[tuple[float, Runs]]) -> Contrast:
        """The sum of the means of runs, each with its weight.

        Runs with different seeds are independent, runs with the same seed are one draw: their weighted sum counts. So
        terms with equal seeds make a paired t, those without a common seed Welch's, and where some seeds are shared,
        both are added up. A seed is left out of all terms where one of its runs diverged, or if no other has the same
        terms, which says nothing of the spread.
        """
        tables = [_by_seed(runs, index) for index, (_, runs) in enumerate(terms)]
        failed = {seed for table in tables for seed, score in table.items() if not np.isfinite(score)}
        groups: dict[tuple[int, ...], list[Hashable]] = {}
        for seed in dict.fromkeys(chain.from_iterable(tables)):
            if seed not in failed:
                having = tuple(index for index, table in enumerate(tables) if seed in table)
                groups.setdefault(having, []).append(seed)
        several = {having: seeds for having, seeds in groups.items() if len(seeds) > 1}
        has_spread = set(chain.from_iterable(several)) == set(range(len(terms)))
        groups = several if has_spread else groups
        n = [sum(len(seeds) for having, seeds in groups.items() if index in having) for index in range(len(terms))]
        sums = [
            np.sum([terms[i][0] * len(seeds) / n[i] * np.array([tables[i][seed] for seed in seeds]) for i in having], 0)
            for having, seeds in groups.items()
        ]
        value, cells = sum(float(mean(each)) for each in sums) if all(n) else nan, tuple(map(len, sums))
        if not has_spread:
            return cls(value, None, 0.0, cells or (0,), len(failed))
        kind: Literal["t", "Welch t", "paired t"] = (
            "t" if len(terms) == 1 else "paired t" if any(len(having) > 1 for having in groups) else "Welch t"
        )
        errors = np.array([float(standard_error(each)) for each in sums])
        error = float(np.hypot.reduce(errors))
        freedom = float(1 / np.sum((errors / error) ** 4 / (np.array(cells) - 1))) if error else inf
        return cls(value, error, freedom, cells, len(failed), kind)

    def estimate(self, confidence: float = 0.95) -> Estimate:
        """With the interval that should cover it with this confidence."""
        interval = f"{percent(confidence)} {self.kind}"
        if self.error is None:
            return Estimate(self.value, None, None, NO_INTERVAL, self.cells, self.n_failed)
        half = t_quantile(confidence, self.freedom) * self.error
        return Estimate(self.value, self.value - half, self.value + half, interval, self.cells, self.n_failed)

    def tail(self, distance: float) -> float:
        """How probable it is that chance alone gives a value that exceeds the true one by so much, or more."""
        if self.error is None:
            return 1.0
        if self.error == 0.0:
            return 0.5 if distance == 0.0 else float(distance < 0)  # what the formula below tends to
        return float(special.stdtr(self.freedom, -distance / self.error))


def _by_seed(runs: Runs, term: int) -> Mapping[Hashable, float]:
    """Runs by seed; those without one belong to their term alone."""
    if isinstance(runs, Mapping):
        return {seed: nan if score is None else float(score) for seed, score in runs.items()}
    return {(term, index): float(score) for index, score in enumerate(as_score_array(runs))}
