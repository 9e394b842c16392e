"""`cycletime study run`: run what is not done yet of a study."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from cycletime.cli.options import NONE, Count, Parts, Rate, Text

if TYPE_CHECKING:
    from cycletime.studies.executors.executor import Executor
    from cycletime.studies.spec import Study


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
    runs_per_job: Annotated[Count, arg(help_behavior_hint="(default: a few jobs for each worker)")] = None
    """Runs that a Ray task or a Slurm job trains."""
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
    array_size: Annotated[Count, arg(help_behavior_hint="(default: the executor's)")] = None
    """The most jobs in a Slurm array."""
    sbatch: Annotated[Parts, arg(metavar="NAME=VALUE ...")] = NONE
    """Further options of sbatch, such as account=lab."""

    def run(self) -> int:
        """Run what is left; status 1 if some runs failed."""
        from cycletime.cli.running import say
        from cycletime.cli.stopping import stopping
        from cycletime.cli.study.progress import StudyProgress
        from cycletime.studies.folder import StudyFolder
        from cycletime.studies.running import run_study

        study = study_of(self.file, None if self.change_engine else self.out, elsewhere=self.executor != "local")
        executor = self._executor(study.device)
        folder = StudyFolder.create(self.out, study, change_engine=self.change_engine)
        with stopping() as stopper:
            watcher = StudyProgress(executor.workers * study.width)
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


def study_of(file: Path, out: Path | None, *, elsewhere: bool = False) -> Study:
    """The study in a file, with its engine and width; the folder's, where it has begun there."""
    from cycletime.studies.study_file import read_study

    return with_choices(read_study(file), file, out, elsewhere=elsewhere)


def with_choices(study: Study, file: Path, out: Path | None, *, elsewhere: bool = False) -> Study:
    """A study of a file, with the engine and the width that the file leaves out."""
    from cycletime.cli.running import say
    from cycletime.runs.tuned_file import read_toml
    from cycletime.studies.kernel_choice import with_engine
    from cycletime.studies.width import with_width

    told = read_toml(file)
    study = with_engine(study, given="engine" in told, folder=out, note=say, elsewhere=elsewhere)
    return with_width(study, given="width" in told, folder=out)
