"""Who computes studies: the options of all commands that run some."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

from cycletime.cli.options import NONE, Count, Parts, Rate, Text

if TYPE_CHECKING:
    from cycletime.studies.executors.executor import Executor


@dataclass(frozen=True, kw_only=True)
class Executing:
    """The options of all."""

    executor: Annotated[str, arg(metavar="EXECUTOR")] = "local"
    """Where workers run: local, ray or slurm."""
    workers: Annotated[Count, arg(help_behavior_hint="(default: one for each core, or for each GPU)")] = None
    """Processes, tasks or jobs at a time."""
    change_engine: bool = False
    """Continue although the study began on another device or with another width."""
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

    def executor_for(self, device: str) -> Executor:
        """Who computes studies on a device."""
        from cycletime.studies.executors.choose import ExecutorOptions, executor_for

        own = {each.name: getattr(self, each.name) for each in fields(ExecutorOptions) if each.name != "options"}
        return executor_for(self.executor, ExecutorOptions(**own, options=tuple(self.sbatch)), device)
