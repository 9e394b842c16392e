"""How many seeds would decide a comparison, roughly: the usual power of Welch's t at the difference that was seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

POWER = 0.8
"""How probable a verdict is to be, if the true difference is the one that was seen."""
MOST_SEEDS = 1000
"""Beyond that, no number is told: the difference, if there is any, is small."""


def seeds_needed(x: Sequence[float], y: Sequence[float], comparisons: int = 1, confidence: float = 0.95) -> int | None:
    """The seeds that each of two cells needs for a verdict, if difference and deviations stay what they are.

    Args:
        x: The scores of a cell.
        y: Those of another.
        comparisons: How many are made at once; the first of Holm's steps is taken for all.
        confidence: What a verdict needs.

    Returns:
        At least one more than the smaller cell has; None where two runs of either are missing, so that nothing is
        known of the spread, or where more than `MOST_SEEDS` are needed, as for a difference of zero.
    """
    n = min(len(x), len(y))
    if n < 2:
        return None
    difference, variances = abs(np.mean(x) - np.mean(y)), np.var(x, ddof=1) + np.var(y, ddof=1)
    if difference == 0:
        return None
    alpha = (1 - confidence) / comparisons
    seeds = np.arange(n + 1, MOST_SEEDS + 1)
    freedom = 2 * seeds - 2
    errors = special.stdtrit(freedom, 1 - alpha / 2) + special.stdtrit(freedom, POWER)
    enough = errors * np.sqrt(variances / seeds) <= difference
    return int(seeds[np.argmax(enough)]) if enough.any() else None
