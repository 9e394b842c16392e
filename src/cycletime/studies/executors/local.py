"""Processes on this machine: one for each core with one thread each, or one for each GPU."""

from __future__ import annotations

import json
import math
import os
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import IO, Any

from cycletime.errors import MachineError, RunError
from cycletime.runs.machine import cores
from cycletime.runs.spec import RunSpec
from cycletime.studies.executors.executor import Event, Job
from cycletime.studies.executors.gpus import VARIABLE
from cycletime.studies.worker import environment_for

WORKER = (sys.executable, "-m", "cycletime.studies.worker")
"""The command of a worker, which takes the study's folder and a name."""
MOST_DEATHS = 5
"""A run that gets no further while its workers die so often, killed or out of memory, is given up for now."""
MOST_SILENT_DEATHS = 10
"""If so many workers die in turn and none begins a run, it is not the run."""


@dataclass
class Worker:
    """A process, and the runs that it was given."""

    process: subprocess.Popen[str]
    gpu: str | None = None
    """The only one that it sees; None for all there are."""
    key: str | None = None
    """The program that it has compiled."""
    runs: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """The specs of the runs in hand, by name."""
    begun: dict[str, int] = field(default_factory=dict)
    """Where they began or went on, in environment steps, by name."""

    def give(self, key: str, specs: Sequence[Mapping[str, Any]]) -> None:
        """Let it train runs together."""
        self.begun = {}
        self.key, self.runs = key, {RunSpec.from_json(spec).name: spec for spec in specs}
        assert self.process.stdin is not None, "it was made with a pipe"
        with suppress(BrokenPipeError):  # it died, and its end is heard of elsewhere
            self.process.stdin.write(json.dumps(specs[0] if len(specs) == 1 else list(specs)) + "\n")
            self.process.stdin.flush()

    def dismiss(self) -> None:
        """Let it save what it has, and go: its input ends."""
        assert self.process.stdin is not None, "it was made with a pipe"
        with suppress(BrokenPipeError):
            self.process.stdin.close()


@dataclass(frozen=True)
class Local:
    """The default executor."""

    workers: int = field(default_factory=cores)
    """Processes."""
    gpus: tuple[str, ...] = ()
    """The GPUs that they share, as CUDA_VISIBLE_DEVICES calls them; none for whatever there is."""

    def execute(
        self, folder: str, jobs: Sequence[Job], tell: Callable[[Event], None], stop: Callable[[], bool]
    ) -> None:
        """Compute all jobs."""
        _Shift(folder, jobs, tell, self).work(stop)


class _Shift:
    """Workers while there is something to do."""

    def __init__(self, folder: str, jobs: Sequence[Job], tell: Callable[[Event], None], local: Local) -> None:
        """Hire the workers."""
        self.folder, self.tell = folder, tell
        self.waiting: dict[str, deque[Mapping[str, Any]]] = {}
        for job in jobs:
            self.waiting.setdefault(job.key, deque()).extend(job.specs)
        self.together = {job.key: job.share(len(self.waiting[job.key]), local.workers) for job in jobs}
        first = next((spec for job in jobs for spec in job.specs), None)
        self.environment = {**os.environ, **environment_for(first["engine"]["device"] if first else "cpu")}
        self.heard: queue.SimpleQueue[tuple[Worker, str | None]] = queue.SimpleQueue()
        self.deaths: dict[str, tuple[int | None, int]] = {}  # by run, where it had begun, and how often in a row
        self.silent_deaths = self.hired = 0
        turns = sum(math.ceil(len(specs) / self.together[key]) for key, specs in self.waiting.items())
        gpus = cycle(local.gpus or (None,))
        self.crew = [self._hire(gpu) for gpu in islice(gpus, min(local.workers, turns))]

    def work(self, stop: Callable[[], bool]) -> None:
        """Hand out runs until all have an outcome."""
        try:
            for worker in self.crew:
                self._feed(worker)
            while any(worker.runs for worker in self.crew) and not stop():
                try:
                    worker, line = self.heard.get(timeout=0.5)
                except queue.Empty:
                    continue
                if line is None:
                    self._replace(worker)
                else:
                    self._hear(worker, line)
        finally:
            self._dismiss()

    def _hire(self, gpu: str | None) -> Worker:
        self.hired += 1
        name = f"worker {self.hired} of {os.getpid()}"
        process = subprocess.Popen(
            [*WORKER, self.folder, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self.environment if gpu is None else {**self.environment, VARIABLE: gpu},
            start_new_session=True,  # Ctrl-C is for the one who feeds it, who then lets it save and go
        )
        worker = Worker(process, gpu)
        threading.Thread(target=self._listen, args=(worker, process.stdout), daemon=True).start()
        return worker

    def _listen(self, worker: Worker, lines: IO[str]) -> None:
        with lines:
            for line in lines:
                self.heard.put((worker, line))
        self.heard.put((worker, None))

    def _feed(self, worker: Worker) -> None:
        """Give it the next runs, of its own program if there are some left, else of the program with most."""
        keys = [key for key, specs in self.waiting.items() if specs]
        if not keys:
            return
        key = worker.key if worker.key in keys else max(keys, key=lambda each: len(self.waiting[each]))
        count = min(self.together[key], len(self.waiting[key]))
        worker.give(key, [self.waiting[key].popleft() for _ in range(count)])

    def _hear(self, worker: Worker, line: str) -> None:
        try:
            told = json.loads(line)
        except ValueError:  # its last words, cut off by a kill
            return
        self.silent_deaths = 0
        if "machine" in told:
            raise MachineError(told["machine"])  # others would meet the same
        self.tell(Event(told["name"], told.get("env_steps"), told.get("outcome"), told.get("error")))
        if "env_steps" in told:
            worker.begun.setdefault(told["name"], told["env_steps"])
        if told.get("outcome"):
            worker.runs.pop(told["name"], None)
            if not worker.runs:
                self._feed(worker)

    def _replace(self, worker: Worker) -> None:
        """A worker died: another one takes its runs, unless they kill everyone."""
        worker.dismiss()
        status = worker.process.wait()
        self.silent_deaths += 1
        if self.silent_deaths >= MOST_SILENT_DEATHS:
            raise RunError(
                f"{MOST_SILENT_DEATHS} workers died one after another without a word, the last with status {status}: "
                "what they printed says why; perhaps there is too little memory for so many (--workers)."
            )
        if not worker.runs:
            self.crew.remove(worker)
            return
        fresh = self._hire(worker.gpu)
        self.crew[self.crew.index(worker)] = fresh
        for name in list(worker.runs):
            begun, (before, times) = worker.begun.get(name), self.deaths.get(name, (None, 0))
            self.deaths[name] = begun, times + 1 if begun == before else 1
            if self.deaths[name][1] >= MOST_DEATHS:
                del worker.runs[name]
                error = f"its worker died {MOST_DEATHS} times, the last time with status {status}"
                self.tell(Event(name, outcome="failed", error=error))
        if worker.key is None or not worker.runs:
            self._feed(fresh)
            return
        again = list(worker.runs.values())
        if max(self.deaths[name][1] for name in worker.runs) > 1:  # one of them may be at fault: half of them apart
            half = math.ceil(len(again) / 2)
            self.waiting[worker.key].extendleft(reversed(again[half:]))
            again = again[:half]
        fresh.give(worker.key, again)

    def _dismiss(self) -> None:
        """Let all save what they have, and go."""
        for worker in self.crew:
            worker.dismiss()
        for worker in self.crew:
            worker.process.wait()
