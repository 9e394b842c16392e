"""The process that draws boards: a robot's loop must not wait for a terminal, nor share its Python with one.

The loop's side writes a line now and then into a pipe, and leaves one out where the pipe is full.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable

from rich.console import Console
from rich.live import Live

from cycletime.engines.live.board import Board
from cycletime.engines.live.drawing import drawn

_MODULE = "cycletime.engines.live"
_END_S = 5.0
"""For the process to draw what came last."""
_NICE = 5
"""What is watched is more important than who watches."""


class Screen:
    """Boards on the terminal that standard error is."""

    def __init__(self, words: Iterable[str] = (sys.executable, "-m", _MODULE)) -> None:
        """Start the process."""
        self._process = subprocess.Popen(
            list(words),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the run; the last board stays
        )
        if self._process.stdin is None:
            raise AssertionError
        self._pipe = self._process.stdin.fileno()
        os.set_blocking(self._pipe, False)

    def show(self, board: Board) -> None:
        """Have a board drawn, if there is room for it on the way; a run goes on without a screen."""
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(self._pipe, board.as_line().encode() + b"\n")

    def close(self) -> None:
        """Let it draw what came last, and end; one that does not, since its terminal takes nothing, is ended."""
        with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
            self._process.communicate(timeout=_END_S)
        self._process.kill()
        self._process.wait()


def draw_from(lines: Iterable[str], console: Console) -> None:
    """Draw boards as they come; the last one stays."""
    with Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
        for line in lines:
            live.update(drawn(Board.from_line(line)), refresh=True)


def main() -> int:
    """What the process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    draw_from(sys.stdin, Console(stderr=True))
    return 0
