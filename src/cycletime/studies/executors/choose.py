"""Who computes a study, by name, as the command line has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from cycletime.errors import InputError
from cycletime.studies.executors.executor import Executor

_ONLY = {
    "ray": ("address", "gpus"),
    "slurm": ("partition", "minutes", "cpus", "memory_gb", "gres", "options"),
}
"""Options that only one executor has."""


@dataclass(frozen=True, kw_only=True)
class ExecutorOptions:
    """What there is to say to executors; None or nothing is their own default."""

    workers: int | None = None
    """Processes, tasks or jobs at a time."""
    address: str | None = None
    """Ray's cluster: auto, HOST:PORT or ray://HOST:PORT."""
    gpus: float | None = None
    """GPUs for each task on Ray; 0.25 lets four share one."""
    partition: str | None = None
    """Slurm's partition."""
    minutes: int | None = None
    """How long a Slurm job may take until it goes back into the queue."""
    cpus: int | None = None
    """CPUs of a Slurm job."""
    memory_gb: int | None = None
    """Memory of a Slurm job."""
    gres: str | None = None
    """Slurm's generic resources, such as gpu:1."""
    options: Sequence[str] = ()
    """Further options of sbatch, each as NAME=VALUE."""

    @property
    def given(self) -> dict[str, object]:
        """Those that are not left to the executor."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None and value != ()}


def executor_for(name: str, options: ExecutorOptions, device: str = "cpu") -> Executor:
    """The executor of a name, for a study on a device.

    Raises:
        InputError: if there is none, or it has no such option, or what it needs is missing.
    """
    if name not in ("local", *_ONLY):
        raise InputError(f"{name!r} is not an executor: give local, ray or slurm.")
    given = options.given
    for other, names in _ONLY.items():
        for each in names:
            if each in given and other != name:
                label = "sbatch" if each == "options" else each
                raise InputError(f"{label} is {given[each]!r}: that is for the executor {other}, and this is {name}.")
    if options.workers is not None and options.workers < 1:
        raise InputError(f"workers is {options.workers}: it must be at least 1.")
    return {"local": _local, "ray": _ray, "slurm": _slurm}[name](options, device)


def _local(options: ExecutorOptions, device: str) -> Executor:
    from cycletime.studies.executors.gpus import gpus_here
    from cycletime.studies.executors.local import Local

    if device == "cpu":
        return Local() if options.workers is None else Local(options.workers)
    gpus = gpus_here()
    return Local(options.workers or max(1, len(gpus)), gpus)  # several processes on one GPU only take turns


def _ray(options: ExecutorOptions, device: str) -> Executor:
    from cycletime.studies.executors.on_ray import OnRay

    if options.gpus is not None and not options.gpus >= 0:
        raise InputError(f"gpus is {options.gpus}: it must be at least 0.")
    gpus = options.gpus if options.gpus is not None else 0.0 if device == "cpu" else 1.0
    return OnRay.connect(options.address, workers=options.workers, gpus=gpus)


def _slurm(options: ExecutorOptions, device: str) -> Executor:
    from cycletime.studies.executors.on_slurm import OnSlurm

    given = options.given
    further: dict[str, str] = {}
    for each in options.options:
        key, equals, value = each.partition("=")
        if not equals or not key.strip("-"):
            raise InputError(f"sbatch is {each!r}: give it as NAME=VALUE, such as account=lab.")
        further[key.lstrip("-")] = value
    return OnSlurm(**{**given, "options": further})  # type: ignore[arg-type]
