"""Executors of studies: processes on this machine, and the choice by name. `worker_pool` has their interface."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

from cycletime.errors import InputError, MachineError, RunError
from cycletime.processes import END_TIMEOUT_S, kill_session
from cycletime.studies.worker import EXIT_MACHINE_ERROR, worker_environment
from cycletime.studies.worker_pool import Executor
from cycletime.training.machine import cores

VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"


def visible_gpus() -> tuple[str, ...]:
    if VISIBLE_DEVICES in os.environ:
        given = [name.strip() for name in os.environ[VISIBLE_DEVICES].split(",")]
        return tuple(name for name in given if name not in ("", "-1"))
    try:
        command = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
        listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(listed.stdout.split())


WORKER_COMMAND = (sys.executable, "-m", "cycletime.studies.worker")
POLL_S = 0.05


@dataclass
class LocalExecutor(Executor):
    workers: int = field(default_factory=cores)
    gpus: tuple[str, ...] = ()
    """The GPUs that they share, as CUDA_VISIBLE_DEVICES calls them; none for whatever there is."""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    started: int = 0

    def __post_init__(self) -> None:
        self._gpus = cycle(self.gpus or (None,))

    def start(self, study: Path, command: str, count: int, device: str) -> list[str]:
        names = [f"{command}-{self.started + index}" for index in range(count)]
        self.started += count
        variables = {**os.environ, **worker_environment(device)}
        if not {"", str(Path.cwd())} & set(sys.path):
            variables["PYTHONSAFEPATH"] = "1"  # else workers would find modules in this folder that we do not
        try:
            for name in names:
                gpu = next(self._gpus)
                self.processes[name] = subprocess.Popen(
                    [*WORKER_COMMAND, str(study), name, str(self.workers)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env={**variables, **({} if gpu is None else {VISIBLE_DEVICES: gpu})},
                    start_new_session=True,  # Ctrl-C is for the one who started it, who then lets it save and go
                )
        except OSError as error:
            raise RunError(f"No worker can be started: {error.strerror}.") from error
        return names

    def poll(self, wait_s: float) -> Mapping[str, str]:
        until = time.monotonic() + wait_s
        while not (over := [name for name, each in self.processes.items() if each.poll() is not None]):
            if time.monotonic() >= until:
                return {}
            time.sleep(POLL_S)
        reasons = {}
        for name in over:
            process = self.processes.pop(name)
            said = _end(process)
            if process.returncode == EXIT_MACHINE_ERROR:
                raise MachineError(said)
            reasons[name] = "" if process.returncode == 0 else f"its worker died with status {process.returncode}"
        return reasons

    def stop(self, study: Path) -> None:
        for process in self.processes.values():
            assert process.stdin is not None, "it was made with a pipe"
            with suppress(BrokenPipeError):
                process.stdin.close()

    def kill(self, name: str) -> None:
        kill_session(self.processes[name])

    def close(self, wait_s: float) -> None:
        self.stop(Path())
        until = time.monotonic() + wait_s
        try:
            with suppress(subprocess.TimeoutExpired):
                for process in self.processes.values():
                    process.wait(max(0.0, until - time.monotonic()))
        finally:
            for process in self.processes.values():
                _end(process)
            self.processes.clear()


def _end(process: subprocess.Popen[bytes]) -> str:
    """End a process with all that its environment has started, in so many seconds; what it has printed."""
    assert process.stdin is not None, "it was made with a pipe"
    assert process.stdout is not None, "it was made with a pipe"
    kill_session(process)
    until, said, pipe = time.monotonic() + END_TIMEOUT_S, b"", process.stdout.fileno()
    with suppress(subprocess.TimeoutExpired):  # where the kernel holds it
        process.wait(END_TIMEOUT_S)
    # Its guard has the pipe, too, until nothing is left running.
    while select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
        if not (more := os.read(pipe, 4096)):
            break
        said += more
    process.stdin.close()
    process.stdout.close()
    return said.decode(errors="replace")


OPTIONS: Mapping[str, tuple[str, ...]] = {
    "local": (),
    "ray": ("address", "gpus"),
    "slurm": ("partition", "minutes", "cpus", "memory_gb", "gres", "sbatch"),
}
MOST_WORKERS = 10_000
"""Each is a process; a number beyond is a slip of the keyboard."""


def check_workers(workers: int | None) -> None:
    if workers is not None and workers < 1:
        raise InputError(f"workers is {workers}: it must be at least 1.")
    if workers is not None and workers > MOST_WORKERS:
        raise InputError(f"workers is {workers}: it must be at most {MOST_WORKERS:,}.")


def make_executor(name: str, device: str = "cpu", workers: int | None = None, **options: Any) -> Executor:  # noqa: ANN401
    """An executor with options of its own; None or empty stands for its defaults."""
    if name not in OPTIONS:
        raise InputError(f"{name!r} is not an executor: give local, ray or slurm.")
    given = {each: value for each, value in options.items() if value not in (None, ())}
    for other, names in OPTIONS.items():
        for each in names:
            if each in given and other != name:
                raise InputError(f"{each} is {given[each]!r}: that is for the executor {other}, and this is {name}.")
    check_workers(workers)
    if name == "slurm":
        from cycletime.studies.slurm_executor import SlurmExecutor

        return SlurmExecutor(**given) if workers is None else SlurmExecutor(workers=workers, **given)
    if name == "ray":
        from cycletime.studies.ray_executor import RayExecutor

        return RayExecutor.connect(workers=workers, **{"gpus": 0.0 if device == "cpu" else 1.0, **given})
    if device == "cpu":
        return LocalExecutor() if workers is None else LocalExecutor(workers)
    gpu_names = visible_gpus()
    return LocalExecutor(workers or max(1, len(gpu_names)), gpu_names)  # several processes on one GPU only take turns
