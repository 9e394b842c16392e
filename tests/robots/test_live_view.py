"""Lines where there is no terminal, and a screen where there is one."""

import pytest

from cycletime.robots import live_view
from cycletime.robots.live_view import show_live
from cycletime.robots.status_board import StatusBoard
from cycletime.training.progress_bar import ErrorConsole
from tests.robots.recorded import a_cycle, an_episode


def test_without_a_terminal_an_episode_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with show_live(StatusBoard("a run", 8), 4) as keeper:
        keeper.episode_started(0)
        keeper.cycle_finished(a_cycle(), 1.0, {})
        keeper.episode_finished(an_episode(0))
    assert capsys.readouterr().err.splitlines() == [
        "episode 1: return 3.00 in 2 cycles, 0.15 ms late on average and 0.20 at worst, 0 overruns, truncated"
    ]


def test_on_a_terminal_boards_are_drawn_and_no_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    boards: list[StatusBoard] = []
    closed: list[bool] = []

    class Noted:
        def show(self, board: StatusBoard) -> None:
            boards.append(board)

        def close(self) -> None:
            closed.append(True)

    def run_until_interrupted() -> None:
        with show_live(StatusBoard("a run", 8), 4) as keeper:
            keeper.episode_finished(an_episode(0))
            raise KeyboardInterrupt

    monkeypatch.setattr(live_view, "BoardProcess", Noted)
    monkeypatch.setattr(ErrorConsole, "is_terminal", True)
    with pytest.raises(KeyboardInterrupt):
        run_until_interrupted()
    assert boards[-1].returns == (3.0,)
    assert closed == [True]  # whatever ends the run
    assert capsys.readouterr().err == ""
