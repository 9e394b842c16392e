"""The cadence of a run in a few numbers: what its cycles took, and how many were not done in time."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.loops.real_time.cycles import Cycle, Cycles

TIMES = ("wake_error_s", "observation_age_s", "act_s", "send_s", "learn_s")
"""What is summed up of every cycle."""
MOST_OVERRUNS = 0.01
"""The share of overruns beyond which a run says so."""
_EDGES_S = [1e-6 * 1.05**edge for edge in range(400)]
"""The upper edges of a histogram's bins, up to five minutes: percentiles are told 5 % too high at most."""


@dataclass(frozen=True)
class Spread:
    """One of the times, over all cycles that told it; NaN where none did."""

    now_s: float
    """Of the newest cycle."""
    mean_s: float
    p99_s: float
    """99 of 100 cycles took at most this; rounded up by at most 5 %, and never above the worst."""
    worst_s: float


@dataclass(frozen=True)
class Cadence:
    """What is told of all cycles of a run so far."""

    cycles: int
    overruns: int
    """Cycles whose work was not done when the next was due."""
    wake_error: Spread
    observation_age: Spread
    act: Spread
    send: Spread
    learn: Spread

    @property
    def share_of_overruns(self) -> float:
        """Of all cycles; 0 where there are none."""
        return self.overruns / self.cycles if self.cycles else 0.0

    @property
    def warning(self) -> str | None:
        """A sentence where more cycles were late than a result should be trusted with; else None."""
        if self.share_of_overruns <= MOST_OVERRUNS:
            return None
        return (
            f"{self.overruns:,} of {self.cycles:,} cycles ({self.share_of_overruns:.1%}) were not done in time, more "
            f"than {MOST_OVERRUNS:.0%}: the run is not one at this cycle time."
        )

    def as_json(self) -> dict[str, Any]:
        """What a result says of it."""
        spreads = {name: getattr(self, name.removesuffix("_s")) for name in TIMES}
        return {
            "cycles": self.cycles,
            "overruns": self.overruns,
            "share_of_overruns": self.share_of_overruns,
            **{
                name: None if np.isnan(each.mean_s) else {"mean": each.mean_s, "p99": each.p99_s, "worst": each.worst_s}
                for name, each in spreads.items()
            },
            "warning": self.warning,
        }


class CadenceMeter:
    """Adds up cycles, in the same small memory however long a run is."""

    def __init__(self) -> None:
        """Begin with none."""
        self._cycles = self._overruns = 0
        self._times = [_Sum() for _ in TIMES]

    def add(self, cycle: Cycle) -> None:
        """Add one cycle; a few microseconds."""
        self._cycles += 1
        self._overruns += cycle.overrun
        for total, name in zip(self._times, TIMES, strict=True):
            total.add(getattr(cycle, name))

    def add_all(self, cycles: Cycles) -> None:
        """Add many, such as those of a journal."""
        self._cycles += len(cycles)
        self._overruns += int(cycles.overrun.sum())
        for total, name in zip(self._times, TIMES, strict=True):
            total.add_all(getattr(cycles, name))

    @property
    def cadence(self) -> Cadence:
        """As it is now."""
        return Cadence(self._cycles, self._overruns, *(total.spread() for total in self._times))


class _Sum:
    """One time, added up."""

    def __init__(self) -> None:
        self._now = self._worst = float("nan")
        self._sum, self._count = 0.0, 0
        self._bins = np.zeros(len(_EDGES_S) + 1, np.int64)

    def add(self, time_s: float) -> None:
        if time_s == time_s:
            self._take(time_s, time_s, time_s, 1)
            self._bins[bisect_left(_EDGES_S, time_s)] += 1

    def add_all(self, times_s: NDArray[np.float64]) -> None:
        told = times_s[~np.isnan(times_s)]
        if len(told):
            self._take(float(told[-1]), float(told.max()), float(told.sum()), len(told))
            self._bins += np.bincount(np.searchsorted(_EDGES_S, told), minlength=len(self._bins))

    def _take(self, now: float, worst: float, total: float, count: int) -> None:
        self._now, self._worst = now, worst if self._worst != self._worst else max(worst, self._worst)
        self._sum, self._count = self._sum + total, self._count + count

    def spread(self) -> Spread:
        if not self._count:
            return Spread(*[float("nan")] * 4)
        within = int(np.searchsorted(np.cumsum(self._bins), 0.99 * self._count))
        p99_s = min([*_EDGES_S[within : within + 1], self._worst])
        return Spread(self._now, self._sum / self._count, p99_s, self._worst)
