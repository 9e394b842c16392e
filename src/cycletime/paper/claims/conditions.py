"""Conditions that a claim is made of, each a mean that must be above or below a bound, and what they amount to.

A condition holds where its interval of 95 % is wholly on the right side of its bound, and fails where it is wholly on
the other: one-sided tests at 2.5 %, so that whoever reads an interval sees the verdict. A claim is confirmed where
every condition holds: since all must, none needs a correction (an intersection-union test). It is refuted where one
fails after Holm's correction for their number. Else the data do not decide. Where 'almost all' must hold, some may
fail, and both directions are corrected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cycletime.statistics import Contrast, Estimate, holm_corrected
from cycletime.statistics.means import NO_INTERVAL, mean, percent

CONFIDENCE = 0.95
TAIL = (1 - CONFIDENCE) / 2
"""How improbable data must be, on either side."""
Verdict: TypeAlias = Literal["confirmed", "refuted", "not decided", "not run"]
Runs: TypeAlias = NDArray[np.float64]
"""A number for each run; one that diverged is NaN."""
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


def mean_difference(pairs: Sequence[tuple[Runs, Runs]]) -> Terms:
    """The contrast that is the mean of several differences."""
    return [(weight / len(pairs), runs) for pair in pairs for weight, runs in zip((1.0, -1.0), pair, strict=True)]


def _condition(name: str, bound: float, terms: Terms, *, is_above: bool) -> Condition:
    """By Welch's t, as `cycletime.statistics.compare`; runs that diverged are left out and counted."""
    kept = [(weight, runs[np.isfinite(runs)]) for weight, runs in terms]
    n = tuple(len(runs) for _, runs in kept)
    astray = sum(len(runs) for _, runs in terms) - sum(n)
    if min(n) < 2:
        value = sum(weight * float(mean(runs)) for weight, runs in kept) if min(n) else nan
        return Condition(name, Estimate(value, None, None, NO_INTERVAL, n, astray), bound, is_above, 1.0, 1.0)
    found = Contrast.of(kept)
    half = found.half_width(CONFIDENCE)
    interval = f"{percent(CONFIDENCE)} {'Welch ' if len(n) > 1 else ''}t"
    estimate = Estimate(found.value, found.value - half, found.value + half, interval, n, astray)
    inside = (found.value - bound) * (1 if is_above else -1)
    return Condition(name, estimate, bound, is_above, found.tail(inside), found.tail(-inside))


def judged(conditions: Sequence[Condition], may_fail: int = 0) -> Verdict:
    """What conditions amount to, of which all must hold, or all but so many."""
    holds = [each.p_holds for each in conditions]
    holding = sum(p < TAIL for p in (holm_corrected(holds) if may_fail else holds))
    failing = sum(p < TAIL for p in holm_corrected([each.p_fails for each in conditions]))
    if failing > may_fail:
        return "refuted"
    return "confirmed" if holding >= len(conditions) - may_fail else "not decided"
