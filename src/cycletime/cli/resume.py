"""`cycletime resume`: go on with runs that were stopped or killed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cycletime.cli.running import Running, prepare_jax, train_all
from cycletime.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Resume(Running):
    """Go on with runs that were stopped or killed: cycletime resume runs/reacher-ppo-16ms-seed0-..."""

    folders: Annotated[Positional[tuple[Path, ...]], arg(metavar="RUN ...", help_behavior_hint="(required)")]
    """The runs' folders."""

    def run(self) -> int:
        """Train them to their ends."""
        from cycletime.runs.folder import RunFolder

        if not self.folders:
            raise InputError("There is nothing to resume: give the folder of a run.")
        opened = [RunFolder.open(path) for path in self.folders]
        devices = sorted({folder.spec.engine.device for folder in opened})
        if len(devices) != 1:
            raise InputError(f"The runs are for different devices ({', '.join(devices)}): resume them apart.")
        on_kernel = [folder.spec.engine.name == "cuda" for folder in opened]
        if len(set(on_kernel)) != 1:
            raise InputError("Some of the runs are for the engine cuda, and others are not: resume them apart.")
        prepare_jax("cpu" if on_kernel[0] else devices[0])
        return train_all(opened, self)
