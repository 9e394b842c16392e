"""`cycletime study run`: run what is not done yet of a study."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from cycletime.cli.options import Count
from cycletime.errors import InputError

if TYPE_CHECKING:
    from cycletime.studies.executors.executor import Executor


@dataclass(frozen=True, kw_only=True)
class RunStudy:
    """Run a study, or go on with it: what is done already is not run again."""

    file: Annotated[Positional[Path], arg(metavar="FILE")]
    """The study, a TOML file."""
    out: Annotated[Path, arg(metavar="FOLDER")]
    """Where the study is kept."""
    executor: Annotated[str, arg(metavar="EXECUTOR")] = "local"
    """Who computes: local, ray or slurm."""
    workers: Annotated[Count, arg(help_behavior_hint="(default: one for each core)")] = None
    """Runs at a time."""
    change_engine: bool = False
    """Go on though the study began on another device or with another width."""

    def run(self) -> int:
        """Run what is left; status 1 if some runs failed."""
        from cycletime.cli.stopping import stopping
        from cycletime.cli.study.progress import StudyProgress
        from cycletime.studies.folder import StudyFolder
        from cycletime.studies.running import run_study
        from cycletime.studies.study_file import read_study

        executor = self._executor()
        folder = StudyFolder.create(self.out, read_study(self.file), change_engine=self.change_engine)
        with stopping() as stopper:
            counts = run_study(folder, executor, watcher=StudyProgress(executor.workers), stop=stopper)
        told = ", ".join(f"{count:,} {state}" for state, count in sorted(counts.items()))
        print(f"{folder.study.name}: {told}")
        if stopper():
            print(
                f"Stopped. The same command goes on: cycletime study run {self.file} --out {self.out}", file=sys.stderr
            )
            return stopper.status
        return 1 if counts["failed"] else 0

    def _executor(self) -> Executor:
        from cycletime.studies.executors.local import Local

        if self.workers is not None and self.workers < 1:
            raise InputError(f"--workers is {self.workers}: it must be at least 1.")
        if self.executor == "local":
            return Local() if self.workers is None else Local(self.workers)
        raise InputError(f"{self.executor!r} is no executor: give local, ray or slurm.")
