"""A journal's summary against numbers by hand."""

import numpy as np

from cycletime.robots.replay import episode_line, histogram, summarize_journal
from tests.robots.recorded import an_episode, entries


def test_a_summary_has_episodes_cadence_and_histograms() -> None:
    assert summarize_journal(entries(), 0.04) == [
        "3 episodes, 24 environment steps, in 2 sessions",
        "returns: first 3.00, last -4.00, best 10.00 (episode 2)",
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


def test_an_episode_that_is_over_has_a_line() -> None:
    assert episode_line(an_episode(0, (1.0, 2.0))) == (
        "episode 1: return 3.00 in 2 cycles, 0.15 ms late on average and 0.20 at worst, 0 overruns, truncated"
    )
    assert episode_line(an_episode(1, (-4.0, 1.0), "PROTECTIVE_STOP")).endswith("2 overruns, PROTECTIVE_STOP")
