"""What is kept of a run that goes on: numbers by hand, boards now and then, a line for each episode."""

import pytest

from cycletime.duration import Duration
from cycletime.robots.calibration import Calibration
from cycletime.robots.status_board import REFRESH_S, BoardObserver, StatusBoard, episode_line
from cycletime.training.latency import CallTimes
from tests.robots.recorded import a_cycle, an_episode, entries


class Watched:
    """A keeper, what it showed and said, and a time that a test sets."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.boards: list[StatusBoard] = []
        self.lines: list[str] = []
        board = StatusBoard("a run", env_steps=100)
        self.keeper = BoardObserver(board, 4, self.boards.append, self.lines.append, lambda: self.now_s)


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_a_board_survives_the_way_to_who_draws_it(watched: Watched) -> None:
    watched.keeper.episode_started(0)
    watched.keeper.cycle_finished(a_cycle(), 0.5, {"safety_mode": "NORMAL"})
    watched.keeper.episode_finished(an_episode(0))
    line = watched.boards[-1].as_line()
    assert "\n" not in line
    assert StatusBoard.from_line(line).as_line() == line
    assert StatusBoard.from_line(line).returns == (3.0,)


def test_cycles_add_up_and_are_shown_now_and_then(watched: Watched) -> None:
    keeper = watched.keeper
    keeper.episode_started(2)
    shown = len(watched.boards)
    for _ in range(10):
        keeper.cycle_finished(a_cycle(late_s=0.001), 0.5, {"safety_mode": "REDUCED"})
    assert len(watched.boards) == shown  # none was due
    watched.now_s += REFRESH_S
    keeper.cycle_finished(a_cycle(late_s=0.003, overrun=True), 0.5, {})
    board = watched.boards[-1]
    assert (board.phase, board.episode, board.done_steps, board.cycles, board.overruns) == ("driving", 3, 44, 11, 1)
    assert (board.return_now, board.safety) == (5.5, "not told")
    assert board.times_ms is not None
    now, mean, _, worst = board.times_ms["wake_error_s"]
    assert (now, mean, worst) == pytest.approx((3.0, 13 / 11, 3.0), abs=1e-3)
    assert board.times_ms["observation_age_s"] == (None,) * 4


def test_an_episode_that_is_over_counts_as_the_journal_has_it(watched: Watched) -> None:
    keeper = watched.keeper
    keeper.episode_started(0)
    keeper.cycle_finished(a_cycle(), 99.0, {})
    keeper.episode_finished(an_episode(0, (1.0, 2.0)))
    keeper.episode_finished(an_episode(1, (-4.0, 1.0), "PROTECTIVE_STOP"))
    board = watched.boards[-1]
    assert (board.returns, board.best, board.stops, board.done_steps) == ((3.0, -3.0), 3.0, 1, 16)
    assert board.safety == "PROTECTIVE_STOP"
    assert watched.lines[0] == (
        "episode 1: return 3.00 in 2 cycles, 0.15 ms late on average and 0.20 at worst, 0 overruns, truncated"
    )
    assert watched.lines[1].endswith("2 overruns, PROTECTIVE_STOP")
    assert episode_line(an_episode(0)) == watched.lines[0]


def test_a_run_that_goes_on_has_the_numbers_of_its_journal() -> None:
    board = StatusBoard("a run", 100).after(entries())
    assert (board.returns, board.best, board.stops, board.done_steps) == ((3.0, 10.0, -4.0), 10.0, 1, 24)
    assert StatusBoard("a run", 100).after(()) == StatusBoard("a run", 100)


def test_a_robot_that_waits_for_the_agent_has_time(watched: Watched) -> None:
    none = CallTimes(0.0, 0.0, 0.0, 0.0, 0.0, count=0)
    ms = Duration("1ms")
    watched.keeper.calibrated(Calibration(10 * ms, 10 * ms, period=1, way="inline", act=none, learn=none))
    assert watched.lines == ["the robot waits for the agent, whose work takes none of its time"]


def test_learning_and_calibrating_are_told(watched: Watched) -> None:
    times = CallTimes(0.001, 0.001, 0.001, 0.001, 0.001, count=10)
    ms = Duration("1ms")
    watched.keeper.calibrated(Calibration(10 * ms, 10 * ms, period=1, way="inline", act=times, learn=times))
    assert watched.lines == ["99 of 100 cycles need 2.00 ms for their work, 20% of 10ms"]
    for is_due in (True, False, True):
        watched.keeper.learning_started()
        if is_due:
            watched.keeper.learning_finished()
    assert (watched.boards[-1].phase, watched.boards[-1].updates) == ("learning", 2)
