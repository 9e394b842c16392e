"""Ray: tasks on a cluster, or on one that is started on this machine for the time being."""

from __future__ import annotations

import math
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cycletime.errors import InputError, MachineError, RunError
from cycletime.runs.machine import cores
from cycletime.studies.executors.executor import Event, Job
from cycletime.studies.executors.following import Chunk, Follower, Troubles
from cycletime.studies.executors.remote import Batch, chunked, work_through, worker_environment
from cycletime.studies.folder import StudyFolder

RETRIES = 3
"""How often Ray itself begins a task anew whose worker or machine died."""
QUEUED = 2
"""Tasks that Ray has at a time, for each worker; the others wait here."""
LOOK_S = 1.0
"""How often to look what happened."""
KNOCK_S = 10.0
"""How long a cluster may take to answer."""
GPU_SHARE = 0.9
"""Of the part of a GPU that a task has, the part that JAX allocates."""


@dataclass(frozen=True)
class OnRay:
    """Tasks on the Ray cluster that this process is connected to."""

    workers: int
    """Tasks at a time."""
    gpus: float = 0.0
    """GPUs for each of them; 0.25 lets four share one."""
    runs_per_task: int | None = None
    """None lets every worker have a few tasks."""
    troubles: Troubles = field(default_factory=Troubles)

    @classmethod
    def connect(
        cls,
        address: str | None = None,
        *,
        workers: int | None = None,
        gpus: float = 0.0,
        runs_per_task: int | None = None,
    ) -> OnRay:
        """Connect to a cluster, or start one here that ends with this process.

        Args:
            address: 'auto' for the cluster that this machine belongs to, HOST:PORT, or ray://HOST:PORT from outside;
                None starts one.
            workers: Tasks at a time; None takes what the cluster has.
            gpus: GPUs for each of them.
            runs_per_task: Runs that one task trains.

        Raises:
            InputError: if Ray is not installed, or there is no such cluster, or it has too few GPUs.
        """
        try:
            import ray
        except ImportError:
            raise InputError("Ray is not installed: pip install 'cycletime[ray]'.") from None
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        if address is None:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            ray.init(address="local", num_cpus=workers or cores(), include_dashboard=False, **quiet)
        else:
            try:
                _knock(address)
                ray.init(address=address, **quiet)
            except (OSError, ValueError, RuntimeError) as error:
                raise InputError(
                    f"There is no Ray cluster at {address!r} ({str(error).strip().splitlines()[0].rstrip('.')}): give "
                    "auto, HOST:PORT or ray://HOST:PORT, or leave out the address to start one here."
                ) from error
        there = ray.cluster_resources()
        room = int(there.get("CPU", 0))
        if gpus:
            room = min(room, math.floor(there.get("GPU", 0) / gpus))
        if room < 1:
            raise InputError(f"The Ray cluster has {_spelled(there)}: a task needs a CPU and {gpus:g} GPUs.")
        return cls(min(workers or room, room), gpus, runs_per_task)

    def execute(
        self, folder: str, jobs: Sequence[Job], tell: Callable[[Event], None], stop: Callable[[], bool]
    ) -> None:
        """Compute all jobs."""
        batch = Batch.create(folder, chunked(jobs, self.workers, self.runs_per_task))
        follower = Follower(StudyFolder.open(folder), tell, self.troubles)
        count = sum(1 for _ in batch.path.glob("*.json"))
        _Tasks(self, batch, follower, count).work(stop)

    def task(self, device: str) -> Any:  # noqa: ANN401 - of Ray, whose types are its own
        """What Ray computes for a chunk."""
        import ray

        variables = worker_environment(device)
        if 0 < self.gpus < 1:
            variables["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{GPU_SHARE * self.gpus:.3f}"
        return ray.remote(work_through).options(
            num_cpus=1, num_gpus=self.gpus, max_retries=RETRIES, runtime_env={"env_vars": variables}
        )


class _Tasks:
    """The tasks of a batch."""

    def __init__(self, executor: OnRay, batch: Batch, follower: Follower, count: int) -> None:
        self.task, self.batch, self.follower = executor.task(follower.study.study.device), batch, follower
        self.most = executor.workers * QUEUED
        self.waiting = deque(range(count))
        self.running: dict[Any, Chunk] = {}

    def work(self, stop: Callable[[], bool]) -> None:
        """Submit and follow until all is over; whatever happens here, nobody goes on unseen."""
        stopping = False
        try:
            while self.waiting or self.follower.chunks:
                if stop() and not stopping:
                    stopping = True
                    self._stop()
                self._submit()
                self._wait()
                self.follower.look()
            self.follower.tidy()
        except BaseException:
            self.batch.ask_to_stop()
            raise

    def _submit(self) -> None:
        while self.waiting and len(self.running) < self.most:
            chunk = Chunk.of(self.batch, self.waiting.popleft())
            reference = self.task.remote(str(self.batch.path), chunk.index, f"Ray task {chunk.index}")
            self.running[reference] = chunk
            self.follower.add(chunk)

    def _wait(self) -> None:
        import ray

        if not self.running:
            time.sleep(LOOK_S)
            return
        ready, _ = ray.wait(list(self.running), num_returns=len(self.running), timeout=LOOK_S)
        for reference in ready:
            chunk = self.running.pop(reference)
            try:
                ray.get(reference)
            except ray.exceptions.TaskCancelledError:
                chunk.left = True
                self.follower.ended(chunk)
            except ray.exceptions.RayError as error:
                cause = getattr(error, "cause", None) or error
                if isinstance(cause, MachineError):
                    raise RunError(str(cause)) from error
                told = str(cause).strip().splitlines() or [""]
                self.follower.ended(chunk, f"{type(cause).__name__}: {told[0].rstrip('.')}")
            else:
                self.follower.ended(chunk)

    def _stop(self) -> None:
        """Those that train save and leave; those that wait at Ray for their turn need not come."""
        import ray

        self.batch.ask_to_stop()
        self.waiting.clear()
        for reference, chunk in self.running.items():
            if not chunk.batch.events(chunk.index).exists():
                ray.cancel(reference)


def _knock(address: str) -> None:
    """Find out within seconds whether somebody listens there; Ray itself tries for ten minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon:
        socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK_S).close()


def _spelled(resources: dict[str, float]) -> str:
    return f"{resources.get('CPU', 0):g} CPUs and {resources.get('GPU', 0):g} GPUs"
