"""The process that draws: what it is given it shows, it never holds the run up, and it loads nothing heavy."""

import io
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from cycletime.robots.live_view import BoardProcess, draw_boards
from cycletime.robots.status_board import StatusBoard


def test_what_came_last_stays() -> None:
    console = Console(file=io.StringIO(), width=80)
    draw_boards([StatusBoard("a run", 10, done_steps=steps).as_line() for steps in (1, 2, 7)], console)
    assert "7 of 10 environment steps" in console.file.getvalue()  # type: ignore[attr-defined]


def test_boards_reach_a_process_that_ends_with_the_run(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    code = f"import sys; open({str(kept)!r}, 'w').write(sys.stdin.read())"
    screen = BoardProcess((sys.executable, "-c", code))
    boards = [StatusBoard("a run", 10, done_steps=steps) for steps in range(3)]
    for board in boards:
        screen.show(board)
    screen.close()
    assert [StatusBoard.from_line(line) for line in kept.read_text().splitlines()] == boards


def test_a_screen_that_hangs_or_is_gone_holds_nothing_up() -> None:
    hung = BoardProcess((sys.executable, "-c", "import time; time.sleep(600)"))
    for _ in range(2000):  # many times what the pipe takes
        hung.show(StatusBoard("a run" * 20, 10))
    hung._process.kill()
    hung._process.wait()
    hung.show(StatusBoard("a run", 10))
    hung.close()


def test_a_screen_whose_terminal_takes_nothing_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after Ctrl-S: whoever ends a run has its result, and not a fault of the view."""
    monkeypatch.setattr("cycletime.robots.live_view._CLOSE_TIMEOUT_S", 0.01)
    hung = BoardProcess((sys.executable, "-c", "import time; time.sleep(600)"))
    hung.show(StatusBoard("a run", 10))
    hung.close()
    assert hung._process.returncode == -signal.SIGKILL


def test_who_draws_loads_no_jax() -> None:
    code = "import sys, cycletime.robots.live_view; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
