"""Who ends a process whose work does not get further, with a clock of the tests' own, and where nothing else can."""

import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from cycletime.studies import watchdog
from cycletime.studies.watchdog import MAX_ELAPSED_S, STOP_GRACE_S, Watchdog, run_watchdog
from cycletime.training.process import HEARTBEAT

PATIENCE_S = 600.0
LOCKED = """
import ctypes, time
from cycletime.studies import watchdog
watchdog.LOCKED_GRACE_S = 0.1

def step():
    ctypes.PyDLL(None).pause()  # which keeps Python's lock

with watchdog.run_watchdog(watchdog.Watchdog(0.1, lambda: False, lambda why, told: None)):
    step()
"""


@dataclass
class Watched:
    """A watchdog, and what there is to watch."""

    now_s: float = 1000.0
    asked: bool = False
    ends: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dog = Watchdog(
            PATIENCE_S, lambda: self.asked, lambda why, told: self.ends.append((why, told)), lambda: self.now_s
        )

    def goes_on(self, seconds: float, *, ticks: bool = False) -> list[str]:
        """Time passes; why the process is to end, if so."""
        for _ in range(int(seconds)):
            self.now_s += 1.0
            if ticks:
                HEARTBEAT.tick()
            self.dog.check()
            if self.ends:
                break
        return [why for why, _ in self.ends]


def test_work_that_gets_further_goes_on_for_ever_and_one_that_does_not_hangs() -> None:
    watched = Watched()
    assert watched.goes_on(10 * PATIENCE_S, ticks=True) == []
    assert watched.goes_on(PATIENCE_S) == []
    assert watched.goes_on(1) == ["hangs"]
    assert watched.ends[0][1].startswith("it hangs: it did not get further for 601 s, in _place (")


def test_where_it_hangs_is_told() -> None:
    stuck, leave, ends = threading.Event(), threading.Event(), []

    def step() -> None:
        stuck.set()
        leave.wait()

    thread = threading.Thread(target=step)
    thread.start()
    stuck.wait()
    dog = Watchdog(0.0, lambda: False, lambda why, told: ends.append(told), iter([0.0, 1.0]).__next__)
    assert thread.ident is not None
    dog.thread = thread.ident
    dog.check()
    leave.set()
    thread.join()
    assert f"{__file__}, line " in ends[0] or "in wait (" in ends[0]


def test_work_that_was_asked_to_stop_has_a_grace_in_which_it_must_get_further() -> None:
    watched = Watched()
    assert watched.goes_on(STOP_GRACE_S + 100) == [], "a long step, perhaps"
    watched.asked = True
    assert watched.goes_on(STOP_GRACE_S) == []
    assert watched.goes_on(1) == ["late"]


def test_who_saves_for_long_is_let_but_not_for_ever() -> None:
    watched = Watched(asked=True)
    assert watched.goes_on(PATIENCE_S + STOP_GRACE_S, ticks=True) == []
    assert watched.goes_on(1, ticks=True) == ["late"]


def test_time_in_which_the_process_was_frozen_does_not_count() -> None:
    watched = Watched()
    watched.now_s += 10 * PATIENCE_S
    watched.dog.check()
    assert watched.ends == []
    assert watched.dog.stuck_s == MAX_ELAPSED_S


def test_a_thread_looks_until_the_work_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "CHECK_INTERVAL_S", 0.0)
    seen, ended = threading.Event(), list[str]()
    threads = threading.active_count()

    def end(why: str, told: str) -> None:
        ended.append(why)
        seen.set()

    ticking: Callable[[], float] = iter(map(float, range(10**9))).__next__
    with run_watchdog(Watchdog(3.0, lambda: False, end, ticking)):
        assert seen.wait(timeout=120)
    assert ended[0] == "hangs"
    assert threading.active_count() == threads


def test_a_process_in_which_no_thread_of_python_s_runs_ends_and_says_where_it_was() -> None:
    ran = subprocess.run([sys.executable, "-c", LOCKED], capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 1
    assert "in step\n" in ran.stderr
