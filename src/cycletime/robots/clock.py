"""Clocks that can be replaced, a ticker at absolute deadlines, and real-time priority for a process.

A loop that sleeps for what is left of each cycle adds up all lateness; here cycle k is due at t0 + k * dt, whatever
happened before. After a late cycle the ticker joins the grid at its next point: missed ticks are never made up for in a
burst.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from cycletime.duration import Duration, DurationLike
from cycletime.errors import InputError, quote

_SPIN_S = 0.5e-3
"""The end of a wait is spent awake: the system wakes sleepers some 0.1 ms late, and more on a busy core."""
_SAME_INSTANT = 0.01
"""Of a period: times that are nearer to each other are one."""


class MonotonicClock(Protocol):
    def now_s(self) -> float: ...

    def sleep_until(self, time_s: float) -> None:
        """Return at that time, or at once where it is over."""
        ...


class WallClock:
    """The machine's monotonic clock, the same for all processes of the machine.

    With a pace its seconds are those of a simulated controller that runs so many times faster than real time.
    """

    def __init__(self, pace: float = 1.0) -> None:
        if not 0 < pace < math.inf:
            raise InputError(f"{quote(pace)} is no pace: give how many seconds pass in a real one, such as 1 or 20.")
        self._pace = pace

    def now_s(self) -> float:
        return time.monotonic() * self._pace

    def sleep_until(self, time_s: float) -> None:
        wanted = time_s / self._pace
        rest = wanted - time.monotonic() - _SPIN_S
        if rest > 0:
            time.sleep(rest)
        while time.monotonic() < wanted:
            pass


class RobotClock:
    """The time stamps of a controller's packages: time passes while packages are waited for.

    Waking at a time shows the newest package that is not after it: the next one would come too late.
    """

    def __init__(self, newest_s: Callable[[], float], receive: Callable[[], object], period_s: float) -> None:
        self._newest_s, self._receive, self._period_s = newest_s, receive, period_s
        self._waited_s = -math.inf

    def now_s(self) -> float:
        """The time of the newest package, or the one that was waited for after it."""
        return max(self._newest_s(), self._waited_s)

    def sleep_until(self, time_s: float) -> None:
        last_s = time_s - (1 - _SAME_INSTANT) * self._period_s
        while self._newest_s() <= last_s:
            self._receive()
        self._waited_s = max(time_s, self._waited_s)


@dataclass(frozen=True)
class Tick:
    number: int
    """Which point of the grid, from 1 for the first after the start."""
    scheduled_s: float
    woke_s: float
    missed: int
    """Points of the grid before it that were skipped: already over when asked for, or slept through."""
    late_s: float
    """By how much the first of those was over when asked for; zero if it was not."""


class Ticker:
    def __init__(self, dt: DurationLike, clock: MonotonicClock) -> None:
        self._dt = float(Duration(dt))
        self._clock = clock
        self._start_s = clock.now_s()
        self._number = 0

    def wait(self) -> Tick:
        """Wait for the next point; those that are over are counted and skipped."""
        due, asked_s = self._number + 1, self._clock.now_s()
        late_s = max(0.0, asked_s - self._due_s(due))
        number = max(due, math.ceil((asked_s - self._start_s) / self._dt)) if late_s else due
        self._clock.sleep_until(self._due_s(number))
        woke_s = self._clock.now_s()
        self._number = max(number, math.floor((woke_s - self._start_s) / self._dt))
        return Tick(self._number, self._due_s(self._number), woke_s, self._number - due, late_s)

    def _due_s(self, number: int) -> float:
        return self._start_s + number * self._dt


_PRIORITY = 10
"""Of the real-time scheduler, on Linux from 1 to 99."""
_NICE = -10


def request_real_time_priority() -> bool:
    """Ask for real-time scheduling, or else for a better place among the others; whether the first was granted.

    Only for a process that mostly waits: while it works, others on its core do not.
    """
    gc.freeze()
    gc.disable()
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    except OSError:
        with contextlib.suppress(OSError):
            os.nice(_NICE)
        return False
    return True
