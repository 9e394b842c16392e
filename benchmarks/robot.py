"""What of the robot's driver depends on real time: how soon an arm stands after a kill, and how late beats come.

    python benchmarks/robot.py            # about a minute

An arm at a simulated controller (its own process, in real time) is driven at 0.3 and at 1.0 rad/s; then the agent or
the driver is killed by SIGKILL. The arm stands when its fastest joint is below 0.01 rad/s, and stays so, by the
controller's own clock. And a loop waits for beats each 10 ms: the error is from when one is due until it wakes, as any
process and, where the system grants that, ahead of all others, as on a core with nothing else to do. What is wanted
stands beside each number; the status is 1 where one is missed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from cycletime.robots.clock import Ticker, WallClock, request_real_time_priority
from cycletime.robots.ur.driver.driver import DriverSettings
from cycletime.robots.ur.driver.link import DriverLink
from cycletime.robots.ur.links import StandardLink
from cycletime.robots.ur.rtde_client import Address
from cycletime.robots.ur.simulator.launch import simulated_controller
from cycletime.robots.ur.types import SpeedJ

WANTED_S = {("agent", 0.3): 0.5, ("agent", 1.0): 0.7, ("driver", 0.3): 0.2, ("driver", 1.0): 0.3}
"""Within which the arm stands, by who is killed and at which speed."""
REPETITIONS = 5
WATCHED_S = 1.5
"""After a kill."""
BEATS = 1000
WANTED_ERROR_S = 0.5e-3
"""Of 99 in 100 beats."""


def drive(settings: str, speed: float) -> None:
    """The agent: tell the driver's id, and swing the elbow for ever."""
    link = DriverLink(DriverSettings.from_text(settings))
    link.connect()
    assert link._process is not None, "it is connected"
    print(link._process.pid, flush=True)
    state = link.receive(10.0)
    sign = -1.0 if state.q[2] > 0 else 1.0
    while True:
        link.send(SpeedJ((0.0, 0.0, sign * speed, 0.0, 0.0, 0.0), 5.0))
        link.receive(10.0)


@contextmanager
def driven(settings: DriverSettings, speed: float) -> Iterator[tuple[int, int]]:
    """An agent that drives, by the ids of its process and of its driver's."""
    words = [sys.executable, __file__, "agent", settings.as_text(), str(speed)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as agent:
        try:
            assert agent.stdout is not None
            yield agent.pid, int(agent.stdout.readline())
        finally:
            agent.kill()


def time_to_stand_s(settings: DriverSettings, victim: str, speed: float) -> float:
    """From the kill until the arm moves no more, by the controller's clock."""
    watcher = StandardLink(settings.address)
    with driven(settings, speed) as (agent, driver):
        watcher.connect()
        while max(map(abs, watcher.receive(10.0).qd)) < 0.98 * speed:
            pass
        os.kill(agent if victim == "agent" else driver, signal.SIGKILL)
        killed_s = moved_s = now_s = watcher.receive(10.0).time_s
        while now_s < killed_s + WATCHED_S:
            state = watcher.receive(10.0)
            now_s = state.time_s
            if not state.stands:
                moved_s = now_s
    watcher.close()
    return moved_s - killed_s


def beat_errors_s() -> list[float]:
    """From when beats are due until they wake, in ascending order."""
    beats = Ticker("10ms", WallClock())
    return sorted(beat.woke_s - beat.scheduled_s for beat in (beats.wait() for _ in range(BEATS)))


def report_stops() -> bool:
    """Print the times after kills; whether all are as wanted."""
    fine = True
    with simulated_controller() as robot:
        ports = robot.ports
        settings = DriverSettings(Address(robot.address, ports.rtde, ports.realtime, ports.dashboard))
        for (victim, speed), wanted_s in WANTED_S.items():
            times = [time_to_stand_s(settings, victim, speed) for _ in range(REPETITIONS)]
            fine &= max(times) <= wanted_s
            print(
                f"SIGKILL of the {victim:6} at {speed} rad/s: stands after {median(times):.3f} s in the median, "
                f"{max(times):.3f} s at the latest of {REPETITIONS} (wanted: {wanted_s} s)",
                flush=True,
            )
    return fine


def report_beats() -> bool:
    """Print the errors of beats; whether the last, which had the quietest core, are as wanted."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    fine = _print_errors("as any process")
    return _print_errors("ahead of others") if request_real_time_priority() else fine


def _print_errors(how: str) -> bool:
    errors = beat_errors_s()
    p50, p99, worst = (1000 * errors[int(share * (BEATS - 1))] for share in (0.5, 0.99, 1.0))
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    print(
        f"Wake-up error at 10 ms cycles, {how}: p50 {p50:.3f} ms, p99 {p99:.3f} ms, worst {worst:.3f} ms of {BEATS} "
        f"(wanted: p99 {1000 * WANTED_ERROR_S} ms; load per core {load:.1f})",
        flush=True,
    )
    return p99 <= 1000 * WANTED_ERROR_S


if __name__ == "__main__":
    if sys.argv[1:2] == ["agent"]:
        drive(sys.argv[2], float(sys.argv[3]))
    stopped, on_time = report_stops(), report_beats()
    sys.exit(not (stopped and on_time))
