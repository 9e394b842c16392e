"""Comparisons of means: better, worse, or not decided by the data."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from cycletime.errors import InputError
from cycletime.statistics.means import (
    NO_INTERVAL,
    Contrast,
    Estimate,
    Failed,
    Scores,
    as_score_array,
    count_failed,
    finite_scores,
    mean,
    percent,
)

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
    """The `p_value` is corrected for so many."""

    @property
    def verdict(self) -> Literal["better", "worse", "not decided by the data"]:
        """What the data say about x. That they decide nothing does not mean that x and y are equal."""
        if self.p_value is None or self.p_value >= 1 - self.confidence:
            return "not decided by the data"
        return "better" if self.difference.value > 0 else "worse"


def compare(
    x: Scores, y: Scores, *, confidence: float = 0.95, paired: bool = False, failed: Failed = "refuse"
) -> Comparison:
    """The difference between two means, by Welch's t (unequal variances), or by the t of the pairs' differences.

    Args:
        x: The scores that are judged.
        y: What they are judged against.
        confidence: What the interval should cover and a verdict needs.
        paired: Whether the i-th run of x and the i-th run of y belong together. Runs of different rules with the same
            seed do not: they begin with the same random numbers and part at the first action that differs.
        failed: What happens to scores that are not finite; of pairs, both runs are left out.

    Raises:
        InputError: if there are no scores, some are not finite, or pairs are wanted of unequal numbers of runs.
    """
    words = f"{percent(confidence)} {'paired' if paired else 'Welch'} t"
    kept = [_paired_differences(x, y, failed)] if paired else [finite_scores(x, failed), finite_scores(y, failed)]
    groups, n_failed = [values for values, _ in kept], sum(n_failed for _, n_failed in kept)
    n = tuple(map(len, groups))
    value = float(mean(groups[0])) - (0.0 if paired else float(mean(groups[1])))
    if min(n) < 2:
        return Comparison(Estimate(value, None, None, NO_INTERVAL, n, n_failed), None, confidence)
    contrast = Contrast.of(list(zip((1.0, -1.0), groups, strict=False)))
    half, p_value = contrast.half_width(confidence), 2 * contrast.tail(abs(value))
    return Comparison(Estimate(value, value - half, value + half, words, n, n_failed), p_value, confidence)


def holm(table: Mapping[Label, Comparison], *, comparisons: int | None = None) -> dict[Label, Comparison]:
    """The comparisons of a table with p-values corrected by Holm's method.

    The probability that any verdict is given where there is no difference is then at most 1 - confidence for the whole
    table. A comparison without a p-value counts as one with 1.

    Args:
        table: By name, the comparisons.
        comparisons: How many there are, where the table has only those that the data chose. The best of k against each
            other, for example, are chosen of all k (k - 1) / 2 pairs.

    Raises:
        InputError: if there are fewer than the table has.
    """
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


def _paired_differences(x: Scores, y: Scores, failed: Failed) -> tuple[NDArray[np.float64], int]:
    """Of the pairs in which both are finite, and how many others there are."""
    a, b = as_score_array(x), as_score_array(y)
    if len(a) != len(b):
        raise InputError(f"{len(a)} and {len(b)} runs cannot be paired: give as many of both, in the same order.")
    finite = np.isfinite(a) & np.isfinite(b)
    return a[finite] - b[finite], count_failed(finite, failed)
