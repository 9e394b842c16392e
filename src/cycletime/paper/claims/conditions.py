"""Conditions that a claim is made of, each a mean that must be above or below a bound, and what they amount to.

A claim is confirmed where every condition holds at 95 %: since all must, none needs a correction (an intersection-union
test). It is refuted where one fails at 95 % after Holm's correction for their number. Else the data do not decide.
Of 'almost all' conditions so many must hold, and both directions are corrected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, nan
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from cycletime.statistics import Estimate
from cycletime.statistics.means import NO_INTERVAL, percent, t_errors

CONFIDENCE = 0.95
Verdict: TypeAlias = Literal["confirmed", "refuted", "not decided", "not run"]
Runs: TypeAlias = NDArray[np.float64]
"""A number for each run; one that went astray is NaN."""
Terms: TypeAlias = list[tuple[float, Runs]]
"""A contrast: means over runs, each with its weight, that are added up."""


@dataclass(frozen=True)
class Condition:
    """A contrast of means over runs, and the bound that it must keep to."""

    name: str
    """What is measured, such as 'final return at 4 ms'."""
    estimate: Estimate
    """With its interval of 95 %."""
    bound: float
    is_above: bool
    """Whether it must be above the bound, and not below."""
    p_holds: float
    """How probable such data are if it does not hold."""
    p_fails: float
    """How probable such data are if it holds."""

    @property
    def slack(self) -> float:
        """How far the estimate is on the right side of the bound."""
        return (self.estimate.value - self.bound) * (1 if self.is_above else -1)

    def __str__(self) -> str:
        """In words, such as 'final return at 4 ms: 0.71 (-0.6 to 2.0), to be below 2'."""
        low, high = self.estimate.low, self.estimate.high
        ends = "no interval" if low is None or high is None else f"{low:,.4g} to {high:,.4g}"
        return (
            f"{self.name}: {self.estimate.value:,.4g} ({ends}; n = {self.estimate.runs}), "
            f"to be {'above' if self.is_above else 'below'} {self.bound:,.4g}"
        )


def above(name: str, bound: float, terms: Terms) -> Condition:
    """A contrast must be above a bound."""
    return _condition(name, bound, terms, is_above=True)


def below(name: str, bound: float, terms: Terms) -> Condition:
    """A contrast must be below a bound."""
    return _condition(name, bound, terms, is_above=False)


def within(name: str, bound: float, terms: Terms) -> list[Condition]:
    """A contrast must be nearer to zero than a bound: two one-sided tests."""
    return [above(name, -bound, terms), below(name, bound, terms)]


def mean_of(runs: Runs) -> Terms:
    """The contrast that is a mean."""
    return [(1.0, runs)]


def difference(runs: Runs, *others: Runs) -> Terms:
    """The contrast of a mean with that of others, or with the mean of several such."""
    return [(1.0, runs), *((-1.0 / len(others), each) for each in others)]


def _condition(name: str, bound: float, terms: Terms, *, is_above: bool) -> Condition:
    """By Welch's t, as `cycletime.statistics.compare`; runs that went astray are left out and counted."""
    kept = [(weight, runs[np.isfinite(runs)]) for weight, runs in terms]
    n = tuple(len(runs) for _, runs in kept)
    astray = sum(len(runs) for _, runs in terms) - sum(n)
    if min(n) < 2:
        value = sum(weight * float(runs.mean()) for weight, runs in kept) if min(n) else nan
        return Condition(name, Estimate(value, None, None, NO_INTERVAL, n, astray), bound, is_above, 1.0, 1.0)
    value = sum(weight * float(runs.mean()) for weight, runs in kept)
    errors = [abs(weight) * float(runs.std(ddof=1)) / len(runs) ** 0.5 for weight, runs in kept]
    error = hypot(*errors)
    if error == 0.0:
        half, p_above, p_below = 0.0, float(value <= bound), float(value >= bound)  # what the formulas below tend to
    else:
        # Welch and Satterthwaite's.
        freedom = 1 / sum((each / error) ** 4 / (count - 1) for each, count in zip(errors, n, strict=True))
        half = t_errors(CONFIDENCE, freedom) * error
        p_above = float(stats.t.sf((value - bound) / error, freedom))
        p_below = float(stats.t.cdf((value - bound) / error, freedom))
    interval = f"{percent(CONFIDENCE)} {'Welch ' if len(n) > 1 else ''}t"
    estimate = Estimate(value, value - half, value + half, interval, n, astray)
    p_holds, p_fails = (p_above, p_below) if is_above else (p_below, p_above)
    return Condition(name, estimate, bound, is_above, p_holds, p_fails)


def judged(conditions: Sequence[Condition], at_least: int | None = None) -> Verdict:
    """What conditions amount to, all of which must hold, or at least so many."""
    needed = len(conditions) if at_least is None else at_least
    holds = [each.p_holds for each in conditions]
    holding = sum(p < 1 - CONFIDENCE for p in (holds if at_least is None else _holm(holds)))
    failing = sum(p < 1 - CONFIDENCE for p in _holm([each.p_fails for each in conditions]))
    if failing > len(conditions) - needed:
        return "refuted"
    return "confirmed" if holding >= needed else "not decided"


def _holm(p_values: Sequence[float]) -> list[float]:
    corrected, so_far = [1.0] * len(p_values), 0.0
    for rank, index in enumerate(np.argsort(p_values, kind="stable").tolist()):
        so_far = max(so_far, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = so_far
    return corrected
