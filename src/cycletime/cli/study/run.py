"""`cycletime study run`: run what is not done yet of a study."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from cycletime.cli.options import NONE, Count, Parts, Rate, Text

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
    workers: Annotated[Count, arg(help_behavior_hint="(default: one for each core, or for each GPU)")] = None
    """Processes, tasks or jobs at a time."""
    change_engine: bool = False
    """Go on though the study began on another device or with another width."""
    address: Annotated[Text, arg(metavar="ADDRESS", help_behavior_hint="(default: a cluster on this machine)")] = None
    """Ray's cluster: auto, HOST:PORT or ray://HOST:PORT."""
    gpus: Annotated[Rate, arg(help_behavior_hint="(default: none, or 1 where the study is for GPUs)")] = None
    """GPUs for each task on Ray; 0.25 lets four share one."""
    partition: Annotated[Text, arg(metavar="NAME", help_behavior_hint="(default: Slurm's)")] = None
    """Slurm's partition."""
    minutes: Annotated[Count, arg(help_behavior_hint="(default: the executor's)")] = None
    """How long a Slurm job may take until it goes back into the queue."""
    cpus: Annotated[Count, arg(help_behavior_hint="(default: the executor's)")] = None
    """CPUs of a Slurm job."""
    memory_gb: Annotated[Count, arg(help_behavior_hint="(default: the executor's)")] = None
    """Memory of a Slurm job."""
    gres: Annotated[Text, arg(metavar="GRES", help_behavior_hint="(default: none)")] = None
    """Slurm's generic resources, such as gpu:1."""
    sbatch: Annotated[Parts, arg(metavar="NAME=VALUE ...")] = NONE
    """Further options of sbatch, such as account=lab."""

    def run(self) -> int:
        """Run what is left; status 1 if some runs failed."""
        from cycletime.cli.running import say
        from cycletime.runs.stopping import stopping
        from cycletime.studies.running.progress import StudyProgress
        from cycletime.studies.running.running import run_study
        from cycletime.studies.spec.file import read_study
        from cycletime.studies.store.folder import StudyFolder

        study = read_study(self.file)
        executor = self._executor(study.device)
        folder = StudyFolder.create(self.out, study, change_engine=self.change_engine)
        for told in folder.damage():
            say(told)
        with stopping() as stopper:
            watcher = StudyProgress(executor.workers)
            counts = run_study(folder, executor, watcher=watcher, stop=stopper)
        told = ", ".join(f"{count:,} {state}" for state, count in sorted(counts.items()))
        print(f"{folder.study.name}: {told}")
        if stopper():
            say("Stopped. The same command goes on with it.")
            return stopper.status
        return 1 if counts["failed"] else 0

    def _executor(self, device: str) -> Executor:
        from cycletime.studies.executors.choose import ExecutorOptions, executor_for

        own = {each.name: getattr(self, each.name) for each in fields(ExecutorOptions) if each.name != "options"}
        return executor_for(self.executor, ExecutorOptions(**own, options=tuple(self.sbatch)), device)
