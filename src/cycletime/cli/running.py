"""Trainings one after another, as `train` and `resume` do them: what they share, and what they print."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import arg

from cycletime.cli.options import NONE, Parts
from cycletime.duration import Duration
from cycletime.errors import printable

if TYPE_CHECKING:
    from cycletime.engines.engine import Group
    from cycletime.engines.record import Listener
    from cycletime.engines.training import Ended
    from cycletime.runs.folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class Running:
    """The options of both."""

    checkpoint_every: Annotated[str, arg(metavar="TIME")] = "30s"
    """The time between two checkpoints, at least."""
    track: Annotated[Parts, arg(metavar="TRACKER ...")] = NONE
    """Log to these as well: tensorboard, wandb, mlflow, trackio."""

    @property
    def checkpoint_s(self) -> float:
        """The seconds between two checkpoints."""
        return float(Duration(self.checkpoint_every))

    def check(self) -> None:
        """Refuse trackers that there are not, and a time that is none."""
        from cycletime.runs.trackers import trackers_for

        _ = self.checkpoint_s, trackers_for(self.track)

    def beside(self, bar: Listener) -> list[Listener]:
        """A bar and the trackers."""
        if not self.track:
            return [bar]
        from cycletime.engines.tracking import tracked
        from cycletime.runs.trackers import trackers_for

        return [bar, *tracked(trackers_for(self.track), bar.remark)]


def train_all(folders: list[RunFolder], options: Running, group: Group | None = None) -> int:
    """Train runs one after another, or as many together as their engine takes; the exit status.

    Args:
        folders: The runs, all of one engine.
        options: How.
        group: The first of them, if they were made ready before.
    """
    from cycletime.engines.registry import engine_of
    from cycletime.runs.stopping import stopping

    failed, left, size = False, list(folders), engine_of(folders[0].spec).together(folders[0].spec)
    with stopping() as stopper:
        while left:
            ends = _train_some(left[:size], options, stopper, group)
            failed |= any(isinstance(ended, Exception) for ended in ends)
            stopped = [folder for folder, ended in zip(left, ends, strict=False) if ended == "stopped"]
            left, group = [*stopped, *left[size:]], None
            if stopped or (stopper() and left):
                say(f"Stopped. To go on: cycletime resume {shlex.join(str(folder.path) for folder in left)}")
                return stopper.status
    return 1 if failed else 0


def _train_some(
    folders: list[RunFolder], options: Running, stop: Callable[[], bool], group: Group | None
) -> list[Ended | Exception]:
    """Train runs together, and print what became of them."""
    from cycletime.engines.progress import shown_together
    from cycletime.engines.training import train_folders

    before = [folder.is_finished for folder in folders]
    kinds = sorted({folder.spec.label for folder in folders})
    name = f"{kinds[0]}, {len(folders)} seeds" if len(kinds) == 1 else f"{len(folders)} runs"
    name = name if len(folders) > 1 else f"{kinds[0]} seed {folders[0].spec.seed}"
    with shown_together(name, len(folders), alike=len(kinds) == 1) as bars:
        listeners = [options.beside(bar) for bar in bars]
        ends = train_folders(folders, listeners=listeners, stop=stop, checkpoint_s=options.checkpoint_s, group=group)
    if isinstance(ends[0], Exception) and all(ended is ends[0] for ended in ends):
        raise ends[0]
    for folder, ended, was in zip(folders, ends, before, strict=True):
        if ended == "finished":
            print(f"{'finished before: ' if was else ''}{result_line(folder.result(), folder.path)}", flush=True)
        elif ended != "stopped":
            say(f"seed {folder.spec.seed} failed: {ended}")
    return ends


def say(text: str) -> None:
    """Tell on standard error."""
    print(text, file=sys.stderr, flush=True)


def result_line(told: Mapping[str, Any], path: Path) -> str:
    """What became of a run, and where it is."""
    numbers = "learning diverged, and some returns are not finite"
    if not told["episodes"]:
        numbers = f"no episode ended within {told['env_steps']:,} environment steps, so that there is no return"
    if told["average_return"] is not None:
        numbers = (
            f"average return {told['average_return']:,.2f}, last tenth {told['last_tenth_return']:,.2f} "
            f"({told['episodes']:,} episodes)"
        )
    resumed = "" if told["resumed"] == "never" else f", {told['resumed']}"
    return f"seed {told['seed']}: {numbers}, {told['wall_s']:,.0f} s{resumed}\n  {printable(str(path))}"
