"""What is printed of a run on a robot: a line for each episode, and how much of a cycle its work takes."""

import pytest

from cycletime.duration import Duration
from cycletime.robots.calibration import Calibration
from cycletime.robots.observer import EpisodePrinter, episode_line
from cycletime.training.latency import CallTimes
from tests.robots.recorded import an_episode


def test_an_episode_that_is_over_has_a_line() -> None:
    lines: list[str] = []
    printer = EpisodePrinter(lines.append)
    printer.episode_finished(an_episode(0, (1.0, 2.0)))
    printer.episode_finished(an_episode(1, (-4.0, 1.0), "PROTECTIVE_STOP"))
    assert lines[0] == (
        "episode 1: return 3.00 in 2 cycles, 0.15 ms late on average and 0.20 at worst, 0 overruns, truncated"
    )
    assert lines[1].endswith("2 overruns, PROTECTIVE_STOP")
    assert episode_line(an_episode(0)) == lines[0]


@pytest.mark.parametrize(
    ("took_s", "says"),
    [
        (0.0, "the robot waits for the agent, whose work takes none of its time"),
        (0.001, "99 of 100 cycles need 2.00 ms for their work, 20% of 10ms"),
    ],
)
def test_the_work_of_a_cycle_is_told(took_s: float, says: str) -> None:
    lines: list[str] = []
    times, ms = CallTimes(took_s, took_s, took_s, took_s, took_s, count=10), Duration("1ms")
    EpisodePrinter(lines.append).calibrated(
        Calibration(10 * ms, 10 * ms, period=1, way="inline", act=times, learn=times)
    )
    assert lines == [says]
