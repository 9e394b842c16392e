"""Where a robot's run is shown: on the terminal that standard error is, or in lines where it is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cycletime.engines.console import ErrorConsole
from cycletime.engines.live.board import Board, Keeper
from cycletime.engines.live.screen import Screen


@contextmanager
def shown_live(board: Board, cycle_steps: int) -> Iterator[Keeper]:
    """A keeper whose boards, or lines, are shown while the block lasts.

    Args:
        board: What is known before the run.
        cycle_steps: Environment steps of a cycle.
    """
    console = ErrorConsole()
    if not console.is_terminal:
        yield Keeper(board, cycle_steps, lambda each: None, lambda line: _print(console, line))
        return
    screen = Screen()
    try:
        yield Keeper(board, cycle_steps, screen.show, lambda line: None)
    finally:
        screen.close()


def _print(console: ErrorConsole, line: str) -> None:
    console.print(line, highlight=False, soft_wrap=True, markup=False)
