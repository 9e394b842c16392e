"""How a study is shown while it runs: a bar for all of it, the rate, failures and the time left."""

from __future__ import annotations

import time
from collections import deque

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from cycletime.studies.executors.executor import Event
from cycletime.studies.folder import State
from cycletime.studies.plan import Plan

LINE_S = 10.0
"""How often a line is written where there is no terminal."""
_RATE_S = 60.0
"""The rate is that of the last minute."""


class StudyProgress:
    """A watcher that shows a study on standard error."""

    def __init__(self, workers: int) -> None:
        """Prepare to show it."""
        self.workers = workers
        self.console = Console(stderr=True)
        self._bar: Progress | None = None

    def begin(self, plan: Plan, states: dict[str, State]) -> None:
        """Show what there is to do."""
        self._budget = plan.study.env_steps
        self._left = {name: self._budget for name, state in states.items() if state not in ("done", "failed")}
        self._done, self._all, self._failed = len(states) - len(self._left), len(states), 0
        self._began, self._line_due = time.monotonic(), 0.0
        self._steps: deque[tuple[float, int]] = deque()
        self.console.print(
            f"{plan.study.name}: {self._all:,} runs in {len(plan.groups()):,} groups, {self._done:,} done; "
            f"{self.workers} at a time",
            highlight=False,
        )
        if self.console.is_terminal:
            columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
            self._bar = Progress(*columns, console=self.console)
            self._bar.start()
            self._task = self._bar.add_task("starting", total=self._all, completed=self._done)

    def update(self, event: Event) -> None:
        """Show what happened."""
        if event.env_steps is not None and event.name in self._left:
            left = self._budget - event.env_steps
            self._steps.append((time.monotonic(), self._left[event.name] - left))
            self._left[event.name] = left
        if event.outcome == "done" and self._left.pop(event.name, None) is not None:
            self._done += 1
        if event.outcome == "failed":
            self._failed += 1
            self.console.print(f"{event.name} failed: {event.error}", style="red", highlight=False, soft_wrap=True)
        self._show()

    def end(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()

    def _show(self) -> None:
        now = time.monotonic()
        while self._steps and self._steps[0][0] < now - _RATE_S:
            self._steps.popleft()
        rate = sum(steps for _, steps in self._steps) / max(1e-9, min(_RATE_S, now - self._began))
        left_s = sum(self._left.values()) / rate if rate > 0 else None
        failed = f", {self._failed} failures" if self._failed else ""
        told = f"{rate:,.0f} env steps/s{failed}, {_spelled(left_s)} left"
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, description=told)
        elif now >= self._line_due:
            self._line_due = now + LINE_S
            self.console.print(f"{self._done:,} of {self._all:,} runs, {told}", highlight=False)


def _spelled(seconds: float | None) -> str:
    if seconds is None:
        return "unknown time"
    minutes, hours = seconds / 60, seconds / 3600
    return f"{seconds:.0f} s" if seconds < 120 else f"{minutes:.0f} min" if minutes < 120 else f"{hours:.1f} h"
