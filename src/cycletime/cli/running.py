"""Trainings one after another, as `train` and `resume` do them: what they share, and what they print."""

from __future__ import annotations

import shlex
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

from cycletime.cli.options import NONE, Parts
from cycletime.duration import Duration
from cycletime.errors import InputError, MachineError

if TYPE_CHECKING:
    from cycletime.engines.training import Listener
    from cycletime.runs.folder import RunFolder
    from cycletime.runs.spec import RunSpec


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

    def listeners(self, label: str) -> list[Listener]:
        """Who is told of a run."""
        from cycletime.cli.progress import shown

        return self.beside(shown(label))

    def beside(self, bar: Listener) -> list[Listener]:
        """A bar and the trackers."""
        if not self.track:
            return [bar]
        from cycletime.engines.tracking import tracked
        from cycletime.runs.trackers import trackers_for

        return [bar, *tracked(trackers_for(self.track), bar.remark)]


def train_all(folders: list[RunFolder], options: Running) -> int:
    """Train runs one after another; the exit status."""
    from cycletime.cli.stopping import stopping
    from cycletime.engines.training import train

    if len(folders) > 1 and all(folder.spec.engine.name == "cuda" for folder in folders):
        return _train_together(folders, options)
    checkpoint_s = options.checkpoint_s
    with stopping() as stopper:
        for place, folder in enumerate(folders):
            if folder.is_finished:
                print(f"finished before: {result_line(folder)}")
                continue
            listeners = options.listeners(label(folder.spec))
            if stopper() or train(folder, listeners=listeners, stop=stopper, checkpoint_s=checkpoint_s) == "stopped":
                left = shlex.join(str(each.path) for each in folders[place:])
                say(f"Stopped. To go on: cycletime resume {left}")
                return stopper.status
            print(result_line(folder))
    return 0


def _train_together(folders: list[RunFolder], options: Running) -> int:
    """Train runs on the kernel, all at a time."""
    from cycletime.cli.progress import shown_together
    from cycletime.cli.stopping import stopping
    from cycletime.engines.record import Trainee
    from cycletime.engines.training import train_together

    kinds = sorted({kind(folder.spec) for folder in folders})
    label = f"{kinds[0]}, {len(folders)} seeds" if len(kinds) == 1 else f"{len(folders)} runs"
    with stopping() as stopper, shown_together(label, len(folders), alike=len(kinds) == 1) as bars:
        trainees = [Trainee(folder, options.beside(bar)) for folder, bar in zip(folders, bars, strict=True)]
        ends = train_together(trainees, stop=stopper, checkpoint_s=options.checkpoint_s)
    if isinstance(ends[0], MachineError) and all(ended is ends[0] for ended in ends):
        raise ends[0]
    for folder, ended in zip(folders, ends, strict=True):
        if ended == "finished":
            print(result_line(folder))
        elif ended != "stopped":
            say(f"seed {folder.spec.seed} failed: {ended}")
    left = [folder for folder, ended in zip(folders, ends, strict=True) if ended == "stopped"]
    if left:
        say(f"Stopped. To go on: cycletime resume {shlex.join(str(folder.path) for folder in left)}")
        return stopper.status
    return 1 if any(isinstance(ended, Exception) for ended in ends) else 0


def say(text: str) -> None:
    """Tell on standard error, if anybody is there to read."""
    with suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def result_line(folder: RunFolder) -> str:
    """What became of a run, and where it is."""
    told = folder.result()
    numbers = "learning went astray, and some returns are no numbers" if told["episodes"] else "no episode ended"
    if told["average_return"] is not None:
        numbers = (
            f"average return {told['average_return']:,.2f}, last tenth {told['last_tenth_return']:,.2f} "
            f"({told['episodes']:,} episodes)"
        )
    resumed = "" if told["resumed"] == "never" else f", {told['resumed']}"
    return f"seed {told['seed']}: {numbers}, {told['wall_s']:,.0f} s{resumed}\n  {folder.path}"


def label(spec: RunSpec) -> str:
    """What a run is called while it goes on."""
    return f"{kind(spec)} seed {spec.seed}"


def kind(spec: RunSpec) -> str:
    """What runs with several seeds are called."""
    return f"{spec.world.name} {spec.algorithm} {spec.dt}"


def prepare_jax(device: str) -> None:
    """Choose JAX's device.

    Raises:
        InputError: if there is none of this kind.
    """
    import jax

    from cycletime.engines import devices

    devices.prepare_jax(device)
    if device == "gpu":
        try:
            found = jax.default_backend() == "gpu"
        except (RuntimeError, AssertionError):
            found = False
        if not found:
            raise InputError("JAX finds no GPU here: leave out --device, or pip install 'jax[cuda13]'.")
