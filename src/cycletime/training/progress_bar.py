"""How a training is shown on standard error: a bar on a terminal, and a line now and then where there is none."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TextIO, cast

from rich import progress as rich_progress
from rich.console import Console
from rich.table import Column
from rich.text import Text

from cycletime.streams import LenientStream
from cycletime.training.observers import Progress, TrainingObserver
from cycletime.training.run_folder import RunFolder


class ErrorConsole(Console):
    def __init__(self) -> None:
        file = None if sys.stderr is None else cast(TextIO, LenientStream(sys.stderr))
        super().__init__(file=file, stderr=True, markup=False)  # brackets in a sentence are no style


LINE_S = 10.0
NARROW = 80
"""Terminals of fewer columns show only what matters most: how far it is, and how long it will take."""
_WIDE = 100
_RECENT = 100
_RECENT_S = 10.0
"""The time that the speed is of, at least, so that neither compilation nor a long past counts."""


@contextmanager
def show_progress(label: str, runs: int, *, alike: bool) -> Iterator[list[TrainingObserver]]:
    """One bar for runs that are trained together; its observers, one per run. Returns are averaged if all are alike."""
    bar = ProgressBar(label)
    try:
        yield [_RunObserver(bar, is_alone=runs == 1, shows_returns=alike) for _ in range(runs)]
    finally:
        bar.close()


@dataclass
class _RunObserver(TrainingObserver):
    bar: ProgressBar
    is_alone: bool
    shows_returns: bool
    done: int = 0
    learns_from: int = 0

    def begin(self, folder: RunFolder, resumed_from: int | None) -> None:
        self.done, self.learns_from = resumed_from or 0, folder.spec.agent.learns_from
        if self.is_alone and resumed_from is not None:
            self.bar.say(f"goes on from {resumed_from:,} environment steps")
        self.bar.open(folder.spec.env_steps, self.done)

    def update(self, progress: Progress) -> None:
        returns = progress.episodes.returns.tolist() if self.shows_returns else []
        self.bar.show(progress.env_steps - self.done, returns, learns=progress.agent_steps >= self.learns_from)
        self.done = progress.env_steps

    def remark(self, sentence: str) -> None:
        self.bar.say(sentence, style="yellow")


class ShrinkingText(rich_progress.TextColumn):
    """Text that gives way where a terminal is narrow, so that what is beside it is whole."""

    def __init__(self, text: str) -> None:
        super().__init__(text, table_column=Column())

    def render(self, task: rich_progress.Task) -> Text:
        text = super().render(task)
        text.no_wrap, text.overflow = True, "ellipsis"
        return text


def _columns(width: int) -> Iterator[rich_progress.ProgressColumn]:
    label = "{task.description}"
    yield ShrinkingText(label) if width < NARROW else rich_progress.TextColumn(label)
    if width >= _WIDE:
        yield rich_progress.BarColumn(bar_width=8)
    yield rich_progress.TaskProgressColumn(table_column=Column(no_wrap=True))
    if width >= NARROW:
        yield rich_progress.TimeElapsedColumn(table_column=Column(width=7))
    yield rich_progress.TextColumn(
        "{task.fields[left]}", "progress.remaining", table_column=Column(width=7, no_wrap=True)
    )
    if width >= NARROW:
        yield ShrinkingText("{task.fields[status]}")


class ProgressBar:
    def __init__(self, label: str) -> None:
        self.label = label
        self.console = ErrorConsole()
        self._returns: deque[float] = deque(maxlen=_RECENT)
        self._steps: deque[tuple[float, int]] = deque()
        self._learns = False
        self._bar: rich_progress.Progress | None = None
        self._task = rich_progress.TaskID(0)
        self._total = self._done = 0
        self._line_due = 0.0

    def open(self, total: int, done: int) -> None:
        """Show so many more environment steps, of which some are done."""
        self._total += total
        self._done += done
        if self._bar is not None:
            self._bar.update(self._task, total=self._total, completed=self._done)
        elif self.console.is_terminal:
            self._bar = rich_progress.Progress(*_columns(self.console.width), console=self.console)
            self._bar.start()
            status = "compiling or starting"
            self._task = self._bar.add_task(
                self.label, total=total, completed=done, status=status, left=_format_clock(None)
            )

    def show(self, done: int, returns: Sequence[float], *, learns: bool = True) -> None:
        """Show so many more environment steps; until learning has begun, the speed says nothing of what is left."""
        self._returns.extend(returns)
        self._done += done
        now = time.monotonic()
        if learns and not self._learns:
            self._learns = True
            self._steps.clear()
        speed = self._speed(now)
        parts = [f"return {sum(self._returns) / len(self._returns):,.2f}"] if self._returns else []
        parts += [] if speed is None else [f"{speed:,.0f} env steps/s"]
        if self._bar is not None:
            left_s = (self._total - self._done) / speed if speed and self._learns else None
            self._bar.update(self._task, completed=self._done, status=", ".join(parts), left=_format_clock(left_s))
        elif now >= self._line_due:
            self._line_due = now + LINE_S
            self.say(", ".join([f"{self._done / self._total:.0%}", *parts]))

    def say(self, sentence: str, style: str | None = None) -> None:
        self.console.print(f"{self.label}: {sentence}", style=style, highlight=False, soft_wrap=True)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _speed(self, now: float) -> float | None:
        """Environment steps in a second of the last ones, as soon as there are any."""
        self._steps.append((now, self._done))
        while len(self._steps) > 1 and now - self._steps[1][0] >= _RECENT_S:
            self._steps.popleft()
        then, before = self._steps[0]
        return (self._done - before) / (now - then) if now > then else None


def _format_clock(seconds: float | None) -> str:
    return "-:--:--" if seconds is None else str(timedelta(seconds=round(seconds)))
