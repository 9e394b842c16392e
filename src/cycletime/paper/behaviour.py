"""What learned policies do: how far from the target the fingertip ends, and how long the pendulum stays up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cycletime.duration import Duration


@dataclass(frozen=True, eq=False)
class Behaviour:
    """Of a study's policies, by rule and cycle time in seconds, a share for each run.

    On Reacher it is the fingertip's distance from the target at the end of episodes, as a share of that at their
    beginning; on the Double Pendulum the time upright, as a share of the longest.
    """

    shares: Mapping[tuple[str, float], NDArray[np.float64]]

    def of(self, rule: str, dt: str) -> NDArray[np.float64]:
        """[runs] those of a rule at a cycle time."""
        return self.shares[rule, float(Duration(dt))]
