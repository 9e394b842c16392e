"""A journal's summary against numbers by hand, and its film in virtual time."""

import numpy as np
import pytest

from cycletime.errors import InputError
from cycletime.robots.replay import histogram, replay_journal, summarize_journal
from cycletime.robots.status_board import BoardObserver, StatusBoard
from tests.robots.recorded import entries
from tests.robots.ur.virtual import VirtualClock


def test_a_summary_has_episodes_cadence_and_histograms() -> None:
    assert summarize_journal(entries(), 0.04) == [
        "3 episodes, 24 environment steps, in 2 sessions",
        "returns: first 3.00, last -4.00, best 10.00 (episode 2)",
        "  ▅█▁",
        "ended by: truncated 2, PROTECTIVE_STOP 1",
        "cut short: episodes 2",
        "",
        "ms                        mean       p99     worst",
        "wake-up error            0.150     0.200     0.200",
        "age of observation           -         -         -",
        "act                      0.400     0.400     0.400",
        "send                     0.100     0.100     0.100",
        "learn                    2.000     2.000     2.000",
        "overruns: 2 of 6 cycles (33.33%)",
        "lost: 2 packages of the robot, 2 environment steps",
        "2 of 6 cycles (33.3%) were not done in time, more than 1%: the run is not one at this cycle time.",
        "",
        "wake-up error, of 6 cycles",
        "    up to 0.1 ms ######################################## 3",
        "    up to 0.2 ms ######################################## 3",
        "",
        "work of a cycle (act, send and learn), of 40 ms",
        "      up to 5 ms ######################################## 6",
    ]


def test_a_histogram_has_bars_in_proportion_and_what_is_beyond() -> None:
    times_s = np.array([0.0, 0.000011, 0.000015, 3.0, np.nan])
    assert histogram("t", times_s)[:3] == ["t", f"   up to 0.01 ms {'#' * 20} 1", f"   up to 0.02 ms {'#' * 40} 2"]
    assert histogram("t", times_s)[-1] == f"   above 1000 ms {'#' * 20} 1"
    assert histogram("t", np.array([np.nan])) == ["t: not told"]


@pytest.mark.parametrize("speed", [1.0, 10.0])
def test_a_run_is_played_when_it_happened(speed: float) -> None:
    clock = VirtualClock()
    boards: list[StatusBoard] = []
    lines: list[str] = []
    began_s = clock.time_s
    keeper = BoardObserver(StatusBoard("x", 24), 4, boards.append, lines.append, clock.now_s)
    replay_journal(entries(), keeper, clock, speed)
    assert clock.time_s - began_s == pytest.approx(3 * 0.04 / speed)  # from the first cycle of an episode to its last
    assert (boards[-1].returns, boards[-1].done_steps, boards[-1].stops) == ((3.0, 10.0, -4.0), 24, 1)
    assert len(lines) == 3


@pytest.mark.parametrize("speed", [0.0, -1.0, float("inf"), float("nan")])
def test_a_speed_that_is_none_is_refused(speed: float) -> None:
    clock = VirtualClock()
    with pytest.raises(InputError, match=r"--speed is .*: give a positive number, such as 1 or 10"):
        replay_journal(
            entries(), BoardObserver(StatusBoard("x", 24), 4, lambda board: None, lambda line: None), clock, speed
        )
