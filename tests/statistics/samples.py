"""Scores that are drawn, and the ends of what is said of them."""

import numpy as np
from numpy.typing import NDArray

from cycletime.statistics import Estimate


def draws(n: int, seed: int = 0, shift: float = 0.0) -> NDArray[np.float64]:
    """So many scores around a value."""
    return np.random.default_rng(seed).normal(shift, 2.0, n)


def ends(estimate: Estimate) -> tuple[float, float]:
    """The ends of an interval that is there."""
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.high
