"""Slurm: arrays of jobs through submitit. Jobs outlive whoever submitted them, and are found again by their name."""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cycletime.errors import InputError, MachineError, RunError
from cycletime.runs.spec import RunSpec
from cycletime.studies.executors.executor import Event, Job
from cycletime.studies.executors.following import Chunk, Follower, Troubles
from cycletime.studies.executors.remote import Batch, Spec, chunked, work_through, worker_environment
from cycletime.studies.folder import StudyFolder

LOOK_S = 3.0
"""How often to look what happened, and what is in the queue."""
SAVE_S = 120
"""So long before its time is over a job is told, to save and go back into the queue."""
MOST_TIMEOUTS = 10_000
"""A job may go back into the queue as often as it needs."""
REFUSED_S = 60.0
"""So long after Slurm took no more jobs they are not offered again."""


@dataclass(frozen=True, kw_only=True)
class OnSlurm:
    """Jobs of the Slurm cluster that this machine belongs to."""

    workers: int = 100
    """Jobs at a time, the array's %N."""
    partition: str | None = None
    """None is the cluster's default."""
    minutes: int = 240
    """How long a job may take; one that needs longer saves, and goes back into the queue."""
    cpus: int = 1
    """CPUs of a job, which uses one."""
    memory_gb: int | None = None
    """None is the cluster's default."""
    gres: str | None = None
    """Such as gpu:1."""
    array_size: int = 1000
    """Jobs that are in the queue at a time; clusters rarely allow more than 1000 in an array."""
    runs_per_job: int | None = None
    """None lets every worker have a few jobs."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Further options of sbatch by name, such as account or qos."""
    troubles: Troubles = field(default_factory=Troubles)

    def __post_init__(self) -> None:
        """Refuse where there is no Slurm.

        Raises:
            InputError: if submitit or Slurm's commands are missing, or a number is none.
        """
        try:
            import submitit  # noqa: F401
        except ImportError:
            raise InputError("submitit is not installed: pip install 'cycletime[slurm]'.") from None
        for command in ("sbatch", "squeue", "scancel"):
            if shutil.which(command) is None:
                raise InputError(f"Slurm's {command} is not on this machine: give the command on a login node.")
        for name in ("workers", "minutes", "cpus", "memory_gb", "array_size", "runs_per_job"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} is {value}: it must be at least 1.")

    def execute(
        self, folder: str, jobs: Sequence[Job], tell: Callable[[Event], None], stop: Callable[[], bool]
    ) -> None:
        """Compute all jobs; those that are in the queue from before are not submitted again."""
        follower = Follower(StudyFolder.open(folder), tell, self.troubles)
        _Arrays(self, folder, follower).work(jobs, stop)


class _Arrays:
    """The jobs of a study that are in the queue, and the chunks that are to come."""

    def __init__(self, executor: OnSlurm, folder: str, follower: Follower) -> None:
        self.executor, self.folder, self.follower = executor, folder, follower
        self.waiting: deque[tuple[Spec, ...]] = deque()
        self.ids: dict[tuple[str, int], str] = {}
        self.due_s = 0.0

    def work(self, jobs: Sequence[Job], stop: Callable[[], bool]) -> None:
        """Submit and follow until all is over."""
        self._adopt()
        taken = {name for chunk in self.follower.chunks for name in chunk.names}
        left = [replace(job, specs=tuple(spec for spec in job.specs if _name(spec) not in taken)) for job in jobs]
        self.waiting.extend(chunked(left, self.executor.workers, self.executor.runs_per_job))
        try:
            self._follow(stop)
        except MachineError:
            self._stop()
            raise

    def _follow(self, stop: Callable[[], bool]) -> None:
        stopping = False
        while self.waiting or self.follower.chunks:
            if stop() and not stopping:
                stopping = True
                self._stop()
            # The next array when workers would fall idle: the limit of Slurm, %N, is for each array.
            idle = len(self.follower.chunks) < min(self.executor.workers, self.executor.array_size)
            if self.waiting and idle and time.monotonic() >= self.due_s:
                self._submit()
            self._look()
            time.sleep(LOOK_S if self.follower.chunks else 0)

    def _adopt(self) -> None:
        """Follow the jobs that an earlier command has submitted."""
        while (there := queued()) is None:
            time.sleep(LOOK_S)
        for batch in Batch.all_of(self.folder):
            for name, index in there:
                if name == batch.name:
                    self.follower.add(Chunk.of(batch, index))

    def _submit(self) -> None:
        import submitit

        executor, variables = self.executor, worker_environment(self.follower.study.study.device)
        room = executor.array_size - len(self.follower.chunks)
        chunks = [self.waiting.popleft() for _ in range(min(room, len(self.waiting)))]
        batch = Batch.create(self.folder, chunks)
        slurm = submitit.SlurmExecutor(folder=batch.path / "logs", max_num_timeout=MOST_TIMEOUTS)
        wanted = {"partition": executor.partition, "mem": executor.memory_gb, "gres": executor.gres}
        slurm.update_parameters(
            job_name=batch.name,
            time=executor.minutes,
            cpus_per_task=executor.cpus,
            array_parallelism=executor.workers,
            signal_delay_s=min(SAVE_S, executor.minutes * 30),
            setup=[f"export {name}={shlex.quote(value)}" for name, value in variables.items()],
            stderr_to_stdout=True,
            additional_parameters={"requeue": True, **executor.options},
            **{name: value for name, value in wanted.items() if value is not None},
        )
        try:
            slurm.map_array(SlurmJob(), [str(batch.path)] * len(chunks), range(len(chunks)))
        except submitit.core.utils.FailedJobError as error:
            batch.remove()
            if not self.follower.chunks:
                raise RunError(f"Slurm takes no jobs: {_last_line(error)}.") from error
            self.waiting.extendleft(reversed(chunks))  # a limit of the user's, perhaps
            self.due_s = time.monotonic() + REFUSED_S
            return
        for index in range(len(chunks)):
            self.follower.add(Chunk.of(batch, index))

    def _look(self) -> None:
        there = queued()
        if there is not None:
            self.ids.update(there)
            for chunk in self.follower.chunks:
                if chunk.key not in there:
                    job = self.ids.get(chunk.key, "")
                    self.follower.ended(
                        chunk, f"its Slurm job {job} ended early; its log is in {chunk.batch.path}/logs"
                    )
        self.follower.look()
        self.follower.tidy()

    def _stop(self) -> None:
        """Those that train save and leave; those that wait for their turn are taken back."""
        self.waiting.clear()
        for batch in {chunk.batch.name: chunk.batch for chunk in self.follower.chunks}.values():
            batch.ask_to_stop()
            subprocess.run(["scancel", "--state=PENDING", f"--name={batch.name}"], check=False, capture_output=True)


class SlurmJob:
    """What a job does; submitit calls it, and its `checkpoint` when Slurm wants the machine back."""

    def __call__(self, batch: str, index: int) -> None:
        """Train a chunk's runs, in a thread: signals come to the main one, which has to be free for them."""
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, args=(batch, index))
        signal.signal(signal.SIGTERM, lambda number, frame: self._stop.set())  # scancel, scontrol requeue
        self._thread.start()
        self._thread.join()
        if self._error:
            raise self._error

    def checkpoint(self, batch: str, index: int) -> Any:  # noqa: ANN401 - submitit's DelayedSubmission
        """Save, and say what is to be done when the job comes back: the same, since runs go on where they were."""
        from submitit.helpers import DelayedSubmission

        self._stop.set()
        self._thread.join()
        return DelayedSubmission(SlurmJob(), batch, index)

    def _work(self, batch: str, index: int) -> None:
        try:
            work_through(batch, index, f"Slurm job {index} of {batch.rpartition('/')[2]}", self._stop.is_set)
        except BaseException as error:
            self._error = error


def queued() -> dict[tuple[str, int], str] | None:
    """The user's jobs that have not ended, by name and index; None where Slurm does not answer now."""
    command = ["squeue", "--me", "--array", "--noheader", "--format=%i|%j"]
    asked = subprocess.run(command, check=False, capture_output=True, text=True)
    if asked.returncode:
        return None
    found = {}
    for line in asked.stdout.splitlines():
        job, _, name = line.strip().partition("|")
        index = job.partition("_")[2] or "0"  # a job alone is no array
        if index.isdecimal():
            found[name, int(index)] = job
    return found


def _name(spec: Spec) -> str:
    return RunSpec.from_json(spec).name


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else type(error).__name__
