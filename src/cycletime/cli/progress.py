"""How a training is shown: a bar on a terminal, and a line now and then where there is none."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from cycletime.engines.training import Listener, Status
from cycletime.engines.training import Progress as RunProgress
from cycletime.runs.folder import RunFolder

LINE_S = 10.0
"""How often a line is written where there is no terminal."""
_RECENT = 100
"""The episodes whose mean return is shown."""
_RECENT_S = 10.0
"""The time that the speed is of, at least, so that neither compilation nor a long past counts."""


def shown(label: str) -> Listener:
    """The bar of a run; where standard error goes away nothing is shown any more, and the run goes on."""
    return Unseen(ProgressBar(label))


class Unseen:
    """A listener that falls silent where nobody can be told."""

    def __init__(self, listener: Listener) -> None:
        """Stand before a listener."""
        self._listener: Listener | None = listener

    def begin(self, folder: RunFolder, resumed_from: int | None) -> None:
        """Pass it on."""
        self._try(lambda listener: listener.begin(folder, resumed_from))

    def update(self, progress: RunProgress) -> None:
        """Pass it on."""
        self._try(lambda listener: listener.update(progress))

    def remark(self, sentence: str) -> None:
        """Pass it on."""
        self._try(lambda listener: listener.remark(sentence))

    def end(self, status: Status) -> None:
        """Pass it on."""
        self._try(lambda listener: listener.end(status))

    def _try(self, call: Callable[[Listener], None]) -> None:
        if self._listener is None:
            return
        try:
            call(self._listener)
        except (OSError, SystemExit):  # rich leaves the program where a pipe is broken
            self._listener = None


class ProgressBar:
    """A listener that shows the return, the speed and the time left, on standard error."""

    def __init__(self, label: str) -> None:
        """Prepare to show a run under a label."""
        self.label = label
        self.console = Console(stderr=True)
        self._returns: deque[float] = deque(maxlen=_RECENT)
        self._steps: deque[tuple[float, int]] = deque()
        self._bar: Progress | None = None
        self._line_due = 0.0

    def begin(self, folder: RunFolder, resumed_from: int | None) -> None:
        """Show the run's beginning."""
        self._total = folder.spec.env_steps
        if resumed_from is not None:
            self.console.print(f"{self.label}: goes on from {resumed_from:,} environment steps", highlight=False)
        if self.console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TaskProgressColumn(),
                TextColumn("{task.fields[told]}"),
                TimeRemainingColumn(),
                console=self.console,
            )
            self._bar.start()
            self._task = self._bar.add_task(
                self.label, total=self._total, completed=resumed_from or 0, told="compiling or starting"
            )

    def update(self, progress: RunProgress) -> None:
        """Show how far it is."""
        self._returns.extend(progress.episodes.returns.tolist())
        now = time.monotonic()
        told = self._told(now, progress.env_steps)
        if self._bar is not None:
            self._bar.update(self._task, completed=progress.env_steps, told=", ".join(told))
        elif now >= self._line_due:
            self._line_due = now + LINE_S
            share = progress.env_steps / self._total
            self.console.print(f"{self.label}: {', '.join([f'{share:.0%}', *told])}", highlight=False, soft_wrap=True)

    def remark(self, sentence: str) -> None:
        """Show what the user should know."""
        self.console.print(f"{self.label}: {sentence}", style="yellow", highlight=False, soft_wrap=True)

    def end(self, status: Status) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()

    def _told(self, now: float, env_steps: int) -> list[str]:
        """The mean return of the last episodes and the speed of the last seconds, as far as there are any."""
        self._steps.append((now, env_steps))
        while len(self._steps) > 1 and now - self._steps[1][0] >= _RECENT_S:
            self._steps.popleft()
        then, before = self._steps[0]
        mean = [f"return {sum(self._returns) / len(self._returns):,.2f}"] if self._returns else []
        return [*mean, f"{(env_steps - before) / (now - then):,.0f} env steps/s"] if now > then else mean
