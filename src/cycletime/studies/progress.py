"""The progress of a study on standard error: a bar, the rate, failures and the time left.

Rates and what is left are of the environment steps of learning: those before it take hardly any time.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, deque
from collections.abc import Mapping, Set
from contextlib import suppress
from typing import TYPE_CHECKING

from cycletime.agents.agent import periods_before_learning
from cycletime.studies.events import Event, StudyObserver
from cycletime.studies.plan import Plan, agent_steps_per_run
from cycletime.studies.spec import Cell
from cycletime.studies.study_folder import RunState, StudyFolder
from cycletime.training.external import ExternalAgent

if TYPE_CHECKING:
    from rich.progress import Progress

    from cycletime.training.progress_bar import ErrorConsole

LINE_INTERVAL_S = 10.0
BAR_INTERVAL_S = 0.2
_WIDE_COLUMNS = 100
_RATE_WINDOW_S = 60.0


class StudyProgress(StudyObserver):
    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.console: ErrorConsole | None = None
        self._bar: Progress | None = None
        with suppress(ImportError):  # a machine that a pack is taken to may have no Rich
            from cycletime.training.progress_bar import ErrorConsole

            self.console = ErrorConsole()

    def begin(self, plan: Plan, states: Mapping[str, RunState]) -> None:
        self._budget = plan.study.env_steps
        firsts = [min(self._budget, _steps_before_learning(cell)) for cell in plan.cells]
        self._learns_from = {planned.name: firsts[planned.cell] for planned in plan.runs}
        left = StudyFolder.runs_left(plan, states)
        self._left = {planned.name: self._budget - self._learns_from[planned.name] for planned in left}
        self._left_in_all, self._runs_left = sum(self._left.values()), len(self._left)
        counts = Counter(states.values())
        self._done, self._all, self._failed = counts["done"], len(states), counts["failed"]
        self._since = time.monotonic()
        self._began: float | None = None
        self._due = 0.0
        self._heard_of: set[str] = set()
        self._failing: set[str] = set()
        self._waited_for: Set[str] = set()
        self._steps: deque[tuple[float, int]] = deque()
        failed = f", {self._failed:,} failed before" if self._failed else ""
        self._say(f"{plan.study.name}: {format_groups(plan)}, {self._done:,} done{failed}; {self.workers} at a time")
        for note in plan.notes():
            self._say(note, "yellow")
        if self.console is not None and self.console.is_terminal:
            self._open_bar(self.console)

    def _open_bar(self, console: ErrorConsole) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress
        from rich.table import Column

        from cycletime.training.progress_bar import NARROW, ShrinkingText

        self._is_narrow = console.width < NARROW
        bar = [] if self._is_narrow else [BarColumn(bar_width=10 if console.width < _WIDE_COLUMNS else 40)]
        count = MofNCompleteColumn(table_column=Column(no_wrap=True))
        self._bar = Progress(*bar, count, ShrinkingText("{task.description}"), console=console)
        self._bar.start()
        self._task = self._bar.add_task("starting", total=self._all, completed=self._done)

    def update(self, event: Event) -> None:
        if event.env_steps is not None and event.name in self._left:
            left = self._budget - max(event.env_steps, self._learns_from[event.name])
            done = self._left[event.name] - left
            self._left[event.name], self._left_in_all = left, self._left_in_all - done
            self._count(event.name, done)
        if event.outcome == "done" and event.name in self._left:
            self._left_in_all -= self._left.pop(event.name)
            self._done += 1
            self._failing.discard(event.name)
        if event.outcome == "failed" and event.name not in self._failing:  # each is tried three times
            self._failing.add(event.name)
            self._say(f"{event.name} failed: {event.error}", "red")
        elif event.error is not None and event.outcome is None:
            self._say(f"{event.name}: {event.error}; it is tried again", "yellow")
        if time.monotonic() >= self._due:
            self._show()

    def wait(self, holders: Mapping[str, str]) -> None:
        who = Counter(holders.values())
        if who and who.keys() != self._waited_for:
            self._waited_for = who.keys()
            them = "; ".join(f"{name} ({count:,})" for name, count in sorted(who.items()))
            self._say(f"waiting for {format_runs(who.total())} that others train: {them}")

    def _say(self, sentence: str, style: str | None = None) -> None:
        if self.console is None:
            print(sentence, file=sys.stderr, flush=True)
        else:
            self.console.print(sentence, style=style, highlight=False, soft_wrap=True)

    def _count(self, name: str, done: int) -> None:
        """Count steps for the rate: not a run's first, nor any during compilation, nor what a resume lost."""
        if name not in self._heard_of:
            self._heard_of.add(name)
        elif done > 0 and self._began is None:
            self._began = time.monotonic()
        elif done > 0:
            self._steps.append((time.monotonic(), done))

    def end(self) -> None:
        if self._bar is not None:
            self._show()
            self._bar.stop()

    def _show(self) -> None:
        now = time.monotonic()
        while self._steps and self._steps[0][0] < now - _RATE_WINDOW_S:
            self._steps.popleft()
        span_s = max(1e-9, min(_RATE_WINDOW_S, now - (self._began or now)))
        rate = sum(done for _, done in self._steps) / span_s
        begins = "running" if len(self._left) < self._runs_left else "starting or compiling"  # none is done yet
        pace = f"{rate:,.0f} env steps/s" if rate > 0 else begins
        failures = self._failed + len(self._failing)
        failed = [f"{failures} failure{'' if failures == 1 else 's'}"] if failures else []
        # Before, a second worker may still compile, and so much more seem left.
        left = [f"{format_seconds(self._left_in_all / rate)} left"] if rate > 0 and span_s >= LINE_INTERVAL_S else []
        text = ", ".join([pace, *failed, f"{format_seconds(now - self._since)} so far", *left])
        self._due = now + (LINE_INTERVAL_S if self._bar is None else BAR_INTERVAL_S)
        if self._bar is not None:
            short = ", ".join([*(left or [pace]), *failed])
            self._bar.update(self._task, completed=self._done, description=short if self._is_narrow else text)
        else:
            self._say(f"{self._done:,} of {self._all:,} runs, {text}")


def format_groups(plan: Plan) -> str:
    groups = len(plan.groups())
    return f"{format_runs(len(plan.runs))} in {groups:,} group{'' if groups == 1 else 's'}"


def format_runs(count: int) -> str:
    return f"{count:,} run{'' if count == 1 else 's'}"


def format_seconds(seconds: float) -> str:
    """'90 s', '5 min', '2.5 h'."""
    minutes, hours = seconds / 60, seconds / 3600
    return f"{seconds:.0f} s" if seconds < 120 else f"{minutes:.0f} min" if minutes < 120 else f"{hours:.1f} h"


def _steps_before_learning(cell: Cell) -> int:
    if isinstance(cell.agent, ExternalAgent):
        return 0
    return round(
        periods_before_learning(cell.agent) * cell.agent.period * cell.spec.env_steps / agent_steps_per_run(cell)
    )
