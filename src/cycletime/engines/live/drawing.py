"""A board as it looks on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from cycletime.engines.live.board import Board
from cycletime.loops.real_time.cadence import MOST_OVERRUNS

NAMES = {
    "wake_error_s": "wake-up error",
    "observation_age_s": "age of observation",
    "act_s": "act",
    "send_s": "send",
    "learn_s": "learn",
}
"""What the times of a cycle are called."""
_LEVELS = "▁▂▃▄▅▆▇█"


def drawn(board: Board) -> Panel:
    """All of it, in a frame."""
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="bold")
    rows.add_column()
    rows.add_row("now", _phase(board))
    rows.add_row("safety", _safety(board))
    rows.add_row("progress", f"{board.done_steps:,} of {board.env_steps:,} environment steps ({_share(board):.0%})")
    rows.add_row("return", _returns(board))
    rows.add_row("", levels(board.returns))
    rows.add_row("cadence", _times(board.times_ms or {}))
    rows.add_row("overruns", _overruns(board))
    return Panel(rows, title=board.title, box=box.ROUNDED, expand=False)


def levels(values: Sequence[float]) -> str:
    """Values one after the other as bars of eight heights, from the least to the largest."""
    if not values:
        return ""
    least, largest = min(values), max(values)
    step = (largest - least) / (len(_LEVELS) - 1) or 1.0
    return "".join(_LEVELS[round((value - least) / step)] for value in values)


def _phase(board: Board) -> str:
    learned = f", learned {board.learnings:,} times while it stood" if board.learnings else ""
    return f"{board.phase}, episode {board.episode:,}{learned}"


def _safety(board: Board) -> Text:
    good = board.safety in ("NORMAL", "REDUCED")
    stops = f", {board.stops:,} episodes cut short" if board.stops else ""
    return Text(board.safety, style="green" if good else "bold red") + Text(stops, style="yellow")


def _share(board: Board) -> float:
    return board.done_steps / max(1, board.env_steps)


def _returns(board: Board) -> str:
    told = [f"{board.return_now:,.2f} so far"]
    if board.returns:
        mean = sum(board.returns) / len(board.returns)
        told += [
            f"last {board.returns[-1]:,.2f}",
            f"mean of {len(board.returns)} {mean:,.2f}",
            f"best {board.best:,.2f}",
        ]
    return ", ".join(told)


def _times(times_ms: Mapping[str, Sequence[float | None]]) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="dim")
    table.add_column("ms")
    for name in ("now", "mean", "p99", "worst"):
        table.add_column(name, justify="right")
    for name, values in times_ms.items():
        table.add_row(NAMES[name], *("-" if each is None else f"{each:,.3f}" for each in values))
    return table


def _overruns(board: Board) -> Text:
    share = board.overruns / max(1, board.cycles)
    style = "bold red" if share > MOST_OVERRUNS else ""
    return Text(f"{board.overruns:,} of {board.cycles:,} cycles ({share:.2%})", style=style)
