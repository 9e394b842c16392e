"""Ray: tasks on a cluster, or on one that is started on this machine for the time being."""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from cycletime.errors import InputError, MachineError, first_line, kind_and_first_line
from cycletime.extras import require_extras
from cycletime.processes import owning_children
from cycletime.studies.events import events_file
from cycletime.studies.worker import work, worker_environment
from cycletime.studies.worker_pool import Executor
from cycletime.training.machine import cores

CONNECT_TIMEOUT_S = 10.0
GPU_MEMORY_FRACTION = 0.9
"""Share of a task's part of a GPU that JAX allocates."""


@dataclass
class RayExecutor(Executor):
    workers: int
    gpus: float = 0.0
    """GPUs for each of them; 0.25 lets four share one."""
    tasks: dict[Any, str] = field(default_factory=dict)

    @classmethod
    def connect(cls, address: str | None = None, *, workers: int | None = None, gpus: float = 0.0) -> RayExecutor:
        """Connect to a cluster ('auto', HOST:PORT or ray://HOST:PORT), or start one that ends with this process.

        By default as many tasks at a time as the cluster has room for, with so many GPUs for each.
        """
        if not gpus >= 0:
            raise InputError(f"gpus is {gpus}: it must be at least 0.")
        with require_extras("The executor ray"):
            import ray
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        if address is None:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            ray.init(address="local", num_cpus=workers or cores(), include_dashboard=False, **quiet)
        else:
            try:
                host, colon, port = address.removeprefix("ray://").rpartition(":")
                if colon:  # within seconds where nobody listens, while Ray itself tries for ten minutes
                    socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_TIMEOUT_S).close()
                ray.init(address=address, **quiet)
            except (OSError, ValueError, RuntimeError) as error:
                remedy = "give auto, HOST:PORT or ray://HOST:PORT, or leave out the address to start one here"
                raise InputError(f"There is no Ray cluster at {address!r} ({first_line(error)}): {remedy}.") from error
        there = ray.cluster_resources()
        room = int(there.get("CPU", 0))
        if gpus:
            room = min(room, math.floor(there.get("GPU", 0) / gpus))
        if room < 1:
            has = f"{there.get('CPU', 0):g} CPUs and {there.get('GPU', 0):g} GPUs"
            raise InputError(f"The Ray cluster has {has}: a task needs a CPU and {gpus:g} GPUs.")
        return cls(min(workers or room, room), gpus)

    def start(self, study: Path, command: str, count: int, device: str) -> list[str]:
        import ray

        variables = worker_environment(device)
        if 0 < self.gpus < 1:
            variables["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{GPU_MEMORY_FRACTION * self.gpus:.3f}"
        task = ray.remote(_work).options(
            num_cpus=1, num_gpus=self.gpus, max_retries=0, runtime_env={"env_vars": variables}
        )
        names = [f"{command}-{uuid4().hex[:8]}" for _ in range(count)]
        for name in names:
            self.tasks[task.remote(str(study.resolve()), name, self.workers)] = name
        return names

    def poll(self, wait_s: float) -> Mapping[str, str]:
        import ray

        ready, _ = ray.wait(list(self.tasks), num_returns=1, timeout=wait_s)
        reasons = {}
        for reference in ready:
            name = self.tasks.pop(reference)
            reasons[name] = ""
            try:
                ray.get(reference)
            except ray.exceptions.TaskCancelledError:
                pass
            except ray.exceptions.RayError as error:
                cause = getattr(error, "cause", None) or error
                if isinstance(cause, MachineError):
                    raise MachineError(str(cause)) from error
                reasons[name] = kind_and_first_line(cause)
        return reasons

    def stop(self, study: Path) -> None:
        """Cancel tasks that wait for their turn; those that train see the stop file."""
        import ray

        for reference, name in self.tasks.items():
            if not events_file(study / "workers", name).exists():
                ray.cancel(reference)

    def kill(self, name: str) -> None:
        import ray

        ray.cancel(next(reference for reference, each in self.tasks.items() if each == name), force=True)


def _work(study: str, name: str, workers: int) -> None:
    with owning_children():
        work(study, name, workers)
