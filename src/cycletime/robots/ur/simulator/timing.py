"""When ticks are due: on a grid of absolute deadlines, at any pace, or when a client grants them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from cycletime.robots.ur.simulator.controller import Controller
from cycletime.robots.ur.wire.lockstep import GRANT

_FORGIVEN_S = 0.01
"""Lateness beyond this is not made up for, but time stood still: in a burst of ticks no client could send commands, and
lines would end and watchdogs bark for want of them."""


class Timing(Protocol):
    """Decides how fast a controller's time passes."""

    skips_packages: bool
    """Whether a client that reads too slowly misses packages, as with a real controller."""

    def due_in_s(self, controller: Controller) -> float | None:
        """Real seconds to the next tick; None where only a client can bring one about."""

    def ticks_due(self, controller: Controller) -> int:
        """How many ticks are to be done now."""


class FreeRunning:
    """A controller whose time passes by itself."""

    skips_packages = True

    def __init__(self, pace: float, now_s: Callable[[], float]) -> None:
        """Say how many of the controller's seconds pass in a real one."""
        self._pace = pace
        self._now_s = now_s
        self._start_s, self._start_tick = now_s(), 0

    def due_in_s(self, controller: Controller) -> float:
        """Real seconds to the next tick."""
        return max(0.0, self._due_s(controller, controller.tick + 1) - self._now_s())

    def ticks_due(self, controller: Controller) -> int:
        """All whose deadline is over; where that is long ago, one, and the grid begins anew."""
        now_s = self._now_s()
        late_s = now_s - self._due_s(controller, controller.tick + 1)
        if late_s < 0:
            return 0
        if late_s > _FORGIVEN_S:
            self._start_s, self._start_tick = now_s, controller.tick + 1
            return 1
        return 1 + math.floor(late_s * self._pace / controller.model.period_s)

    def _due_s(self, controller: Controller, tick: int) -> float:
        return self._start_s + (tick - self._start_tick) * controller.model.period_s / self._pace


class LockStep:
    """A controller whose time passes as far as a client has granted."""

    skips_packages = False

    def due_in_s(self, controller: Controller) -> float | None:
        """At once, or when a grant arrives."""
        return 0.0 if self.ticks_due(controller) else None

    def ticks_due(self, controller: Controller) -> int:
        """What is left of the grant."""
        return max(0, int(controller.registers.number(GRANT)) - controller.tick)
