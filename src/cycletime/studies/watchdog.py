"""Ends a process that makes no progress: nothing else can leave a `step` that hangs.

A thread looks every second. Where Python itself stands still, since something holds its lock and no thread of it runs,
a timer of `faulthandler`, which needs no lock, ends the process a little later.
"""

from __future__ import annotations

import faulthandler
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from cycletime.training.process import HEARTBEAT

CHECK_INTERVAL_S = 1.0
MAX_ELAPSED_S = 5.0
"""More does not count between two checks: the process was frozen."""
STOP_GRACE_S = 30.0
"""Work that is asked to stop must show progress within this time, until it has stopped."""
LOCKED_GRACE_S = 60.0
"""After the timeout and so long, `faulthandler` ends a process in which no thread of Python's runs."""
KillReason: TypeAlias = Literal["hangs", "late"]


@dataclass
class Watchdog:
    timeout_s: float
    stop: Callable[[], bool]
    end: Callable[[KillReason, str], object]
    """Ends the process; gets whether the work hangs or stops too late, and a sentence."""
    clock: Callable[[], float] = lambda: time.monotonic()
    thread: int = field(default_factory=threading.get_ident)
    stuck_s: float = 0.0
    stopping_s: float = 0.0

    def __post_init__(self) -> None:
        self._count, self._checked_s = HEARTBEAT.count, self.clock()

    def check(self) -> None:
        now = self.clock()
        passed_s, self._checked_s = min(now - self._checked_s, MAX_ELAPSED_S), now
        self.stuck_s = self.stuck_s + passed_s if HEARTBEAT.count == self._count else 0.0
        self._count = HEARTBEAT.count
        if self.stop():
            self.stopping_s += passed_s
            if min(self.stopping_s, self.stuck_s) > STOP_GRACE_S or self.stopping_s > self.timeout_s + STOP_GRACE_S:
                self.end("late", f"it did not stop for {self.stopping_s:.0f} s, in {self._place()}")
        elif self.stuck_s > self.timeout_s:
            self.end("hangs", f"it hangs: it did not get further for {self.stuck_s:.0f} s, in {self._place()}")

    def _place(self) -> str:
        if HEARTBEAT.waits_for:
            return HEARTBEAT.waits_for
        frame = sys._current_frames().get(self.thread)
        if frame is None:
            return "a thread that has ended"
        return f"{frame.f_code.co_name} ({frame.f_code.co_filename}, line {frame.f_lineno})"


@contextmanager
def run_watchdog(watchdog: Watchdog) -> Iterator[None]:
    over = threading.Event()

    def watch() -> None:
        while True:
            faulthandler.dump_traceback_later(watchdog.timeout_s + LOCKED_GRACE_S, exit=True, file=2)
            if over.wait(CHECK_INTERVAL_S):
                return
            watchdog.check()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        faulthandler.cancel_dump_traceback_later()
