"""Slurm: arrays of jobs through submitit. Jobs outlive whoever submitted them, and are found again by their name."""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cycletime.agents.checks import check_counts
from cycletime.errors import InputError, RunError
from cycletime.extras import require_extras
from cycletime.processes import owning_children
from cycletime.studies.worker import work, worker_environment
from cycletime.studies.worker_pool import Executor

POLL_S = 3.0
QUEUE_GRACE_S = 5.0
"""How long a job is out of the queue until it counts as ended: network file systems show its last lines late."""
SIGNAL_DELAY_S = 120
MAX_REQUEUES = 10_000


@dataclass(kw_only=True)
class SlurmExecutor(Executor):
    workers: int = 100
    """Jobs at a time; clusters rarely allow more than 1000 in an array."""
    partition: str | None = None
    minutes: int = 240
    """How long a job may take; one that needs longer saves, and goes back into the queue."""
    cpus: int = 1
    memory_gb: int | None = None
    gres: str | None = None
    sbatch: Sequence[str] = ()
    """Further options of sbatch, each as NAME=VALUE, such as account=lab."""
    jobs: dict[str, Path] = field(default_factory=dict)
    gone_s: dict[str, float] = field(default_factory=dict)
    """By worker, since when its job is out of the queue."""

    def __post_init__(self) -> None:
        for option in self.sbatch:
            name, equals, _ = option.partition("=")
            if not equals or not name.strip("-"):
                raise InputError(f"sbatch is {option!r}: give it as NAME=VALUE, such as account=lab.")
        with require_extras("The executor slurm"):
            import submitit  # noqa: F401
        for command in ("sbatch", "squeue", "scancel"):
            if shutil.which(command) is None:
                raise InputError(f"Slurm's {command} is not on this machine: give the command on a login node.")
        check_counts(self, "minutes", "cpus", *(["memory_gb"] if self.memory_gb is not None else []))

    def find_workers(self, study: Path) -> Iterable[str]:
        while (there := queued_jobs()) is None:
            time.sleep(POLL_S)
        for array in (study / "jobs").glob("*"):
            self.jobs |= {name: array for name in there if name.rpartition("-")[0] == array.name}
        return list(self.jobs)

    def start(self, study: Path, command: str, count: int, device: str) -> list[str]:
        import submitit

        array = study / "jobs" / f"{command}.{sum(1 for _ in (study / 'jobs').glob(f'{command}.*'))}"
        slurm = submitit.SlurmExecutor(folder=array, max_num_timeout=MAX_REQUEUES)
        wanted = {"partition": self.partition, "mem": self.memory_gb, "gres": self.gres}
        slurm.update_parameters(
            job_name=array.name,
            time=self.minutes,
            cpus_per_task=self.cpus,
            array_parallelism=self.workers,
            signal_delay_s=min(SIGNAL_DELAY_S, self.minutes * 30),
            setup=[f"export {name}={shlex.quote(value)}" for name, value in worker_environment(device).items()],
            stderr_to_stdout=True,
            additional_parameters={
                "requeue": True,
                **{name.lstrip("-"): value for name, _, value in (option.partition("=") for option in self.sbatch)},
            },
            **{name: value for name, value in wanted.items() if value is not None},
        )
        names = [f"{array.name}-{index}" for index in range(count)]
        try:
            slurm.map_array(SlurmJob(), [str(study.resolve())] * count, names, [self.workers] * count)
        except submitit.core.utils.FailedJobError as error:
            shutil.rmtree(array, ignore_errors=True)
            if not self.jobs:
                lines = [line.strip() for line in str(error).splitlines() if line.strip()]
                last = lines[-1].rstrip(".") if lines else type(error).__name__
                raise RunError(f"Slurm takes no jobs: {last}.") from error
            return []  # a limit of the user's, perhaps; those that are there go on
        self.jobs |= dict.fromkeys(names, array)
        return names

    def poll(self, wait_s: float) -> Mapping[str, str]:
        time.sleep(max(wait_s, POLL_S))
        there, now = queued_jobs(), time.monotonic()
        if there is None:
            return {}
        self.gone_s = {name: self.gone_s.get(name, now) for name in self.jobs if name not in there}
        over = [name for name, since in self.gone_s.items() if now - since >= QUEUE_GRACE_S]
        return {name: f"its Slurm job ended early; its log is in {self.jobs.pop(name)}" for name in over}

    def stop(self, study: Path) -> None:
        for array in {path.name for path in self.jobs.values()}:
            subprocess.run(["scancel", "--state=PENDING", f"--name={array}"], check=False, capture_output=True)

    def kill(self, name: str) -> None:
        if job := (queued_jobs() or {}).get(name):
            subprocess.run(["scancel", job], check=False, capture_output=True)


class SlurmJob:
    """What a job does; submitit calls it, and its `checkpoint` when Slurm wants the machine back."""

    def __call__(self, study: str, name: str, workers: int) -> None:
        """Train runs in a thread: signals come to the main one, which must be free for them."""
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, args=(study, name, workers))
        signal.signal(signal.SIGTERM, lambda number, frame: self._stop.set())  # scancel, scontrol requeue
        self._thread.start()
        self._thread.join()
        if self._error:
            raise self._error

    def checkpoint(self, study: str, name: str, workers: int) -> Any:  # noqa: ANN401 - submitit's DelayedSubmission
        """Save; when the job comes back it does the same, since runs are resumed."""
        from submitit.helpers import DelayedSubmission

        self._stop.set()
        self._thread.join()
        return DelayedSubmission(SlurmJob(), study, name, workers)

    def _work(self, study: str, name: str, workers: int) -> None:
        try:
            with owning_children():
                work(study, name, workers, self._stop.is_set)
        except BaseException as error:
            self._error = error


def queued_jobs() -> dict[str, str] | None:
    """By worker, which is an array and an index, the job that has not ended; None where Slurm does not answer now."""
    command = ["squeue", "--me", "--array", "--noheader", "--format=%i|%j"]
    asked = subprocess.run(command, check=False, capture_output=True, text=True)
    if asked.returncode:
        return None
    found = {}
    for line in asked.stdout.splitlines():
        job, _, array = line.strip().partition("|")
        index = job.partition("_")[2] or "0"  # a job alone is no array
        if index.isdecimal():
            found[f"{array}-{index}"] = job
    return found
