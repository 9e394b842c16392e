"""Before a robot moves: what `act` and `learn` take on this machine, on the run's own shapes, and whether that fits.

A cycle time into which they do not fit is refused, with the one that they would fit into.
"""

from __future__ import annotations

from dataclasses import dataclass

from cycletime.duration import Duration
from cycletime.loops.latency import Times

USABLE = 0.8
"""The part of a cycle that acting and learning may take, at their 99th percentiles; the rest is for the link."""


@dataclass(frozen=True)
class Calibration:
    """What was measured, and what must fit."""

    dt: Duration
    """The cycle time."""
    act: Times
    learn: Times
    in_cycle_s: float
    """The 99th percentile of what one cycle has to do: act, and learn where that is not done elsewhere."""

    @property
    def share(self) -> float:
        """What that is of a cycle."""
        return self.in_cycle_s / float(self.dt)

    @property
    def fits(self) -> bool:
        """Whether there is room."""
        return self.share <= USABLE
