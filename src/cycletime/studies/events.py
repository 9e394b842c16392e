"""Events of a study: what workers write and their supervisor reads (STUDY/workers/NAME.jsonl, a line each).

{"worker": NAME}                      a worker starts, or restarts after it was killed
{"name": RUN}                         it has claimed a run
{"name": RUN, "env_steps": N}         the run's progress
{"name": RUN, "outcome": OUTCOME}     how the run ended, with the "error" of one that failed
{"machine": SENTENCE}                 the machine lacks something
{"died": SENTENCE}                    it ends itself, since its work hangs
{"left": true}                        it exits in order
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

from cycletime.training.atomic_files import disk_errors

PROGRESS_INTERVAL_S = 1.0
"""How often a worker writes how far a run is."""
Outcome: TypeAlias = Literal["done", "failed", "stopped"]


@dataclass(frozen=True)
class RunEvent:
    """Something that happened to a run."""

    name: str
    """The run's."""
    env_steps: int | None = None
    """How far it is now."""
    outcome: Outcome | None = None
    """What became of it, at the end."""
    error: str | None = None
    """What went wrong, where something did."""


def events_file(folder: Path, worker: str) -> Path:
    """Where a worker writes."""
    return folder / f"{worker}.jsonl"


def stop_file(folder: Path, worker: str) -> Path:
    """The file that asks a worker, and all others of its command, to save and leave."""
    return folder / f"{worker.rpartition('-')[0]}.stop"


@dataclass
class EventWriter:
    """The writer's side."""

    file: IO[str]
    clock: Callable[[], float] = time.monotonic
    due_s: dict[str, float] = field(default_factory=dict)
    """By run, when it may tell again how far it is."""

    def begin(self, name: str) -> None:
        """A run is in hand."""
        self.write({"name": name})

    def tell(self, name: str, env_steps: int) -> None:
        """How far a run is, now and then."""
        now = self.clock()
        if now >= self.due_s.get(name, now):
            self.due_s[name] = now + PROGRESS_INTERVAL_S
            self.write({"name": name, "env_steps": env_steps})

    def end(self, name: str, outcome: Outcome, error: str | None = None) -> None:
        """What became of a run."""
        self.write({"name": name, "outcome": outcome, **({} if error is None else {"error": error})})

    def write(self, told: Mapping[str, Any]) -> None:
        """A line, after an end of whatever line a killed worker of this name has left torn."""
        with suppress(OSError):  # on a full disk the runs themselves say so
            self.file.write("\n" * ("worker" in told) + json.dumps(told) + "\n")
            self.file.flush()


@contextmanager
def open_event_writer(folder: Path, worker: str) -> Iterator[EventWriter]:
    """A worker's, to write into."""
    path = events_file(folder, worker)
    with disk_errors(path):
        file = path.open("a")
    try:
        yield EventWriter(file)
    finally:
        with suppress(OSError):  # of lines that found no room
            file.close()


@dataclass
class EventReader:
    """The reader's side."""

    path: Path
    read: int = 0
    """Bytes that are read."""

    def lines(self) -> Iterator[Mapping[str, Any]]:
        """Whole lines that are new."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.read)
                new = file.read()
        except FileNotFoundError:
            return
        whole = new[: new.rfind(b"\n") + 1]
        self.read += len(whole)
        for line in whole.splitlines():
            with suppress(ValueError):  # empty, or torn by a kill
                told = json.loads(line)
                if isinstance(told, dict):
                    yield told
