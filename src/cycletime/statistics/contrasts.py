"""Weighted sums of means over runs, by Welch's t: a mean, a difference of two, or of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cycletime.statistics.means import mean, standard_error, t_errors


@dataclass(frozen=True)
class Contrast:
    """A weighted sum of means, and how sure it is."""

    value: float
    error: float
    """Its standard error."""
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
        return t_errors(confidence, self.freedom) * self.error

    def tail(self, distance: float) -> float:
        """How probable it is that chance alone gives a value that exceeds the true one by so much, or more."""
        if self.error == 0.0:
            return 0.5 if distance == 0.0 else float(distance < 0)  # what the formula below tends to
        return float(special.stdtr(self.freedom, -distance / self.error))
