"""Comparisons of means: better, worse, or not decided by the data."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np

from cycletime.errors import InputError, quote
from cycletime.statistics.means import Contrast, Estimate, Failed, Runs, as_score_array, count_failed, percent

Label = TypeVar("Label", bound=Hashable)


@dataclass(frozen=True)
class Comparison:
    """Whether the runs of x have a higher mean than the runs of y."""

    difference: Estimate
    """The mean of x minus that of y; its interval is that of this comparison alone, also after `holm`."""
    p_value: float | None
    """How probable so large a difference, of either sign, is between equal means; None without an interval."""
    confidence: float
    """What a verdict needs: a `p_value` below 1 - confidence."""
    comparisons: int = 1

    @property
    def verdict(self) -> Literal["better", "worse", "not decided by the data"]:
        """What the data say about x. That they decide nothing does not mean that x and y are equal."""
        if self.p_value is None or self.p_value >= 1 - self.confidence:
            return "not decided by the data"
        return "better" if self.difference.value > 0 else "worse"

    def __str__(self) -> str:
        """The difference and the verdict, such as '-4.1 (-4.6 to -3.7, 95 % Welch t, n = 30 + 30): worse'."""
        return f"{self.difference}: {self.verdict}"


def compare(
    x: Runs, y: Runs, *, confidence: float = 0.95, paired: bool = False, failed: Failed = "refuse"
) -> Comparison:
    """The difference between two means: of runs with equal seeds by the t of pairs, else by Welch's t.

    Example:
        >>> compare({0: 1.0, 1: 5.0, 2: 9.0}, {0: 0.0, 1: 3.9, 2: 8.1}).difference.interval
        '95 % paired t'

    Args:
        x: The scores that are judged, in a sequence or by seed.
        y: What they are judged against. Where both are by seed, runs with the same seed are pairs.
        confidence: What the interval should cover and a verdict needs.
        paired: Whether the i-th run of x and the i-th run of y belong together, where both are sequences.
        failed: What happens to scores that are not finite; of pairs, both runs are left out.
    """
    percent(confidence)
    values = [as_score_array(list(runs.values()) if isinstance(runs, Mapping) else runs) for runs in (x, y)]
    for each in values:
        count_failed(np.isfinite(each), failed)
    if paired:
        if len(values[0]) != len(values[1]):
            n, others = map(len, values)
            raise InputError(f"{n} and {others} runs cannot be paired: give as many of both, in the same order.")
        x, y = (dict(enumerate(each.tolist())) for each in values)
    found = Contrast.of([(1.0, x), (-1.0, y)])
    p_value = None if found.error is None else 2 * found.tail(abs(found.value))
    return Comparison(found.estimate(confidence), p_value, confidence)


def holm(table: Mapping[Label, Comparison], *, comparisons: int | None = None) -> dict[Label, Comparison]:
    """The comparisons of a table with p-values corrected by Holm's method.

    The probability that any verdict is given where there is no difference is then at most 1 - confidence for the whole
    table. A comparison without a p-value counts as one with 1.

    Args:
        table: By name, the comparisons.
        comparisons: How many there are, where the table has only those that the data chose. The best of k against each
            other, for example, are chosen of all k (k - 1) / 2 pairs.
    """
    if not isinstance(table, Mapping):
        raise InputError(f"{quote(table)} is not a table: give comparisons by name, such as {{'4ms': compare(x, y)}}.")
    if comparisons is not None and comparisons < len(table):
        raise InputError(f"comparisons is {comparisons}: the table has {len(table)} already.")
    p_values = [1.0 if each.p_value is None else each.p_value for each in table.values()]
    count = len(table) if comparisons is None else comparisons
    return {
        name: replace(each, p_value=None if each.p_value is None else p_value, comparisons=count)
        for (name, each), p_value in zip(table.items(), holm_corrected(p_values, count), strict=True)
    }


def holm_corrected(p_values: Sequence[float], comparisons: int | None = None) -> list[float]:
    """P-values corrected by Holm's method, for their number or for a larger one that they were chosen from."""
    count, so_far = len(p_values) if comparisons is None else comparisons, 0.0
    corrected = [1.0] * len(p_values)
    for rank, index in enumerate(np.argsort(p_values, kind="stable").tolist()):
        so_far = max(so_far, min(1.0, (count - rank) * p_values[index]))
        corrected[index] = so_far
    return corrected
