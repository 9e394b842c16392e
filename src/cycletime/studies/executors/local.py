"""Processes on this machine: one for each core with one thread each, or one for each GPU."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

from cycletime.errors import MachineError, RunError
from cycletime.runs.machine import cores
from cycletime.studies.executors.gpus import VARIABLE
from cycletime.studies.running.environment import environment_for
from cycletime.studies.running.worker import LACKING

WORKER = (sys.executable, "-m", "cycletime.studies.running.worker")
"""The command of a worker, which takes the study's folder, a name, and how many there are."""
LOOK_S = 0.05
"""How often to look whether a process has ended."""


@dataclass
class Local:
    """The default executor."""

    workers: int = field(default_factory=cores)
    """Processes."""
    gpus: tuple[str, ...] = ()
    """The GPUs that they share, as CUDA_VISIBLE_DEVICES calls them; none for whatever there is."""
    processes: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    """By name, those that have not ended."""
    started: int = 0

    def __post_init__(self) -> None:
        """Let processes have GPUs in turn."""
        self._gpus = cycle(self.gpus or (None,))

    def found(self, study: Path) -> Iterable[str]:
        """None: they do not outlive their command."""
        return ()

    def start(self, study: Path, command: str, count: int, device: str) -> list[str]:
        """Start processes."""
        names = [f"{command}-{self.started + index}" for index in range(count)]
        self.started += count
        variables = {**os.environ, **environment_for(device)}
        if not {"", str(Path.cwd())} & set(sys.path):
            variables["PYTHONSAFEPATH"] = "1"  # else workers would find modules in this folder that we do not
        try:
            for name in names:
                gpu = next(self._gpus)
                self.processes[name] = subprocess.Popen(
                    [*WORKER, str(study), name, str(self.workers)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env={**variables, **({} if gpu is None else {VARIABLE: gpu})},
                    start_new_session=True,  # Ctrl-C is for the one who started it, who then lets it save and go
                )
        except OSError as error:
            raise RunError(f"No worker can be started: {error.strerror}.") from error
        return names

    def ended(self, wait_s: float) -> Mapping[str, str]:
        """Look at all processes, until one has ended or the time is over."""
        until = time.monotonic() + wait_s
        while not (over := [name for name, each in self.processes.items() if each.poll() is not None]):
            if time.monotonic() >= until:
                return {}
            time.sleep(LOOK_S)
        told = {}
        for name in over:
            with self.processes.pop(name) as process:
                assert process.stdout is not None, "it was made with a pipe"
                said = process.stdout.read()  # not communicate(), which wants an input that `stop` has not closed
            if process.returncode:
                _kill(process)  # those that its environment has started, and that nobody closed
            if process.returncode == LACKING:
                raise MachineError(said)
            told[name] = "" if process.returncode == 0 else f"its worker died with status {process.returncode}"
        return told

    def stop(self, study: Path) -> None:
        """End the input of all processes."""
        for process in self.processes.values():
            assert process.stdin is not None, "it was made with a pipe"
            with suppress(BrokenPipeError):
                process.stdin.close()

    def kill(self, name: str) -> None:
        """End a process, and those that its environment has started."""
        _kill(self.processes[name])

    def close(self, wait_s: float) -> None:
        """Wait until all have saved what they have, and gone; end those that do not go."""
        self.stop(Path())
        until = time.monotonic() + wait_s
        try:
            with suppress(subprocess.TimeoutExpired):
                for process in self.processes.values():
                    process.wait(max(0.0, until - time.monotonic()))
        finally:
            for process in self.processes.values():
                _kill(process)
                process.wait()
                assert process.stdout is not None, "it was made with a pipe"
                process.stdout.close()
            self.processes.clear()


def _kill(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError, PermissionError):  # all of its session have ended
        os.killpg(process.pid, signal.SIGKILL)
