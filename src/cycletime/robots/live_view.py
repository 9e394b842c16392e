"""The live view of a robot's run: the status board, drawn on the terminal by a process of its own, or lines.

The loop must not wait for a terminal, nor share its Python with one: it writes a line now and then into a pipe, and
skips one where the pipe is full.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from rich import box
from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from cycletime.robots.status_board import BoardObserver, StatusBoard
from cycletime.training.journal import MAX_OVERRUN_SHARE

TIMING_LABELS = {
    "wake_error_s": "wake-up error",
    "observation_age_s": "age of observation",
    "act_s": "act",
    "send_s": "send",
    "learn_s": "learn",
}
_BARS = "▁▂▃▄▅▆▇█"


def render_board(board: StatusBoard) -> Panel:
    share = board.done_steps / max(1, board.env_steps)
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="bold")
    rows.add_column()
    rows.add_row("now", _phase_text(board))
    rows.add_row("safety", _safety_text(board))
    rows.add_row("progress", f"{board.done_steps:,} of {board.env_steps:,} environment steps ({share:.0%})")
    rows.add_row("return", _returns_text(board))
    rows.add_row("", sparkline(board.returns))
    rows.add_row("cadence", _timing_table(board.times_ms or {}))
    rows.add_row("overruns", _overruns_text(board))
    return Panel(rows, title=board.title, box=box.ROUNDED, expand=False)


def sparkline(values: Sequence[float]) -> str:
    """Values one after the other as bars of eight heights, from the least to the largest."""
    if not values:
        return ""
    least, largest = min(values), max(values)
    step = (largest - least) / (len(_BARS) - 1) or 1.0
    return "".join(_BARS[round((value - least) / step)] for value in values)


def _phase_text(board: StatusBoard) -> str:
    learned = f", learned {board.updates:,} times while it stood" if board.updates else ""
    return f"{board.phase}, episode {board.episode:,}{learned}"


def _safety_text(board: StatusBoard) -> Text:
    good = board.safety in ("NORMAL", "REDUCED")
    stops = f", {board.stops:,} episodes cut short" if board.stops else ""
    return Text(board.safety, style="green" if good else "bold red") + Text(stops, style="yellow")


def _returns_text(board: StatusBoard) -> str:
    parts = [f"{board.return_now:,.2f} so far"]
    if board.returns:
        mean = sum(board.returns) / len(board.returns)
        parts += [
            f"last {board.returns[-1]:,.2f}",
            f"mean of {len(board.returns)} {mean:,.2f}",
            f"best {board.best:,.2f}",
        ]
    return ", ".join(parts)


def _timing_table(times_ms: Mapping[str, Sequence[float | None]]) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="dim")
    table.add_column("ms")
    for name in ("now", "mean", "p99", "worst"):
        table.add_column(name, justify="right")
    for name, values in times_ms.items():
        table.add_row(TIMING_LABELS[name], *("-" if each is None else f"{each:,.3f}" for each in values))
    return table


def _overruns_text(board: StatusBoard) -> Text:
    share = board.overruns / max(1, board.cycles)
    style = "bold red" if share > MAX_OVERRUN_SHARE else ""
    return Text(f"{board.overruns:,} of {board.cycles:,} cycles ({share:.2%})", style=style)


_MODULE = "cycletime.robots.live_view"
_CLOSE_TIMEOUT_S = 5.0
"""For the process to draw what came last."""
_NICE = 5
"""What is watched is more important than who watches."""


class BoardProcess:
    """Boards on the terminal that standard error is."""

    def __init__(self, words: Iterable[str] = (sys.executable, "-m", _MODULE)) -> None:
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

    def show(self, board: StatusBoard) -> None:
        """Have a board drawn, if the pipe has room; a run goes on without a screen."""
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(self._pipe, board.as_line().encode() + b"\n")

    def close(self) -> None:
        """Let it draw the last board and end; a process whose terminal takes nothing is killed."""
        with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
            self._process.communicate(timeout=_CLOSE_TIMEOUT_S)
        self._process.kill()
        self._process.wait()


def draw_boards(lines: Iterable[str], console: Console) -> None:
    """Draw boards as they come; the last one stays."""
    with Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
        for line in lines:
            live.update(render_board(StatusBoard.from_line(line)), refresh=True)


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    draw_boards(sys.stdin, Console(stderr=True))
    return 0


@contextmanager
def show_live(board: StatusBoard, cycle_steps: int) -> Iterator[BoardObserver]:
    """An observer whose boards, or lines, are shown while the block lasts."""
    from cycletime.training.progress_bar import ErrorConsole  # which loads JAX, and the drawing process need not

    console = ErrorConsole()
    if not console.is_terminal:
        say = partial(console.print, highlight=False, soft_wrap=True, markup=False)
        yield BoardObserver(board, cycle_steps, lambda each: None, say)
        return
    screen = BoardProcess()
    try:
        yield BoardObserver(board, cycle_steps, screen.show, lambda line: None)
    finally:
        screen.close()


if __name__ == "__main__":
    sys.exit(main())
