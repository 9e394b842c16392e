"""Events of a study: one stream from workers, through the command that supervises them, to whoever observes it.

A worker writes STUDY/workers/NAME.jsonl, a line for each event; the supervisor reads the lines, and passes those that
are about runs on to its observers: a progress bar, lines of text, the record of wall time.

{"worker": NAME}                      a worker starts, or restarts after it was killed
{"name": RUN}                         it has claimed a run
{"name": RUN, "env_steps": N}         the run's progress
{"name": RUN, "outcome": OUTCOME}     how the run ended, with the "error" of one that failed
{"machine": SENTENCE}                 the machine lacks something
{"died": SENTENCE}                    it ends itself, since its work hangs
{"left": true}                        it exits in order

STUDY/sessions has a file for each command that supervised the study, with its times. A command may be killed, so the
end is written again and again; several may supervise one study at once, so what counts is the time in which at least
one did.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias
from uuid import uuid4

from cycletime.bounded import open_regular, read_bounded
from cycletime.errors import RunError
from cycletime.studies.plan import Plan
from cycletime.studies.study_folder import RunState
from cycletime.training.atomic_files import disk_errors, write_whole
from cycletime.training.sealed_json import check_seal, parse_json, sealed_text

PROGRESS_INTERVAL_S = 1.0
WALL_TIME_INTERVAL_S = 5.0
_MOST_BYTES = 10_000
Outcome: TypeAlias = Literal["done", "failed", "stopped"]


@dataclass(frozen=True)
class Event:
    name: str = ""
    """The run's; empty where it is the worker's event alone."""
    env_steps: int | None = None
    outcome: Outcome | None = None
    error: str | None = None
    """What went wrong with the run; without an outcome it is tried again."""
    worker: str | None = None
    machine: str | None = None
    died: str | None = None
    left: bool | None = None

    def as_json(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if value not in (None, "")}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Event:
        return cls(**{each.name: data[each.name] for each in fields(cls) if each.name in data})


def events_file(folder: Path, worker: str) -> Path:
    return folder / f"{worker}.jsonl"


def stop_file(folder: Path, worker: str) -> Path:
    """The file that asks a worker, and all others of its command, to save and exit."""
    return folder / f"{worker.rpartition('-')[0]}.stop"


@dataclass
class EventWriter:
    file: IO[str]
    clock: Callable[[], float] = time.monotonic
    due_s: dict[str, float] = field(default_factory=dict)

    def progress(self, name: str, env_steps: int) -> None:
        now = self.clock()
        if now >= self.due_s.get(name, now):
            self.due_s[name] = now + PROGRESS_INTERVAL_S
            self.write(Event(name=name, env_steps=env_steps))

    def write(self, event: Event) -> None:
        """Write a line; a worker that starts first ends the line that a killed one of its name has left torn."""
        with suppress(OSError):  # on a full disk the runs themselves say so
            self.file.write("\n" * (event.worker is not None) + json.dumps(event.as_json()) + "\n")
            self.file.flush()


@contextmanager
def open_event_writer(folder: Path, worker: str) -> Iterator[EventWriter]:
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
    path: Path
    position: int = 0

    def new_events(self) -> Iterator[Event]:
        try:
            with open_regular(self.path) as file:
                file.seek(self.position)
                new = file.read()
        except FileNotFoundError:
            return
        whole = new[: new.rfind(b"\n") + 1]
        self.position += len(whole)
        for line in whole.splitlines():
            with suppress(ValueError):  # empty, or torn by a kill
                data = json.loads(line)
                if isinstance(data, dict):
                    yield Event.from_json(data)


class StudyObserver:
    def begin(self, plan: Plan, states: Mapping[str, RunState]) -> None:
        """The study starts or continues, with the state of each run by name."""

    def update(self, event: Event) -> None:
        """Handle an event of a run."""

    def wait(self, holders: Mapping[str, str]) -> None:
        """Nothing is left but runs that others train: by run, who does."""

    def end(self) -> None:
        """The command stops supervising, for whatever reason."""


class WallTimeRecorder(StudyObserver):
    def __init__(self, study: Path, clock: Callable[[], float] = time.time) -> None:
        self.file = study / "sessions" / f"{uuid4().hex[:12]}.json"
        self.clock = clock
        self.began: float | None = None

    def begin(self, plan: Plan, states: Mapping[str, RunState]) -> None:
        if any(state != "done" for state in states.values()):
            self.began = self.clock()
            self._save()

    def update(self, event: Event) -> None:
        if self.began is not None and self.clock() >= self.due:
            self._save()

    def end(self) -> None:
        if self.began is not None:
            self._save()

    def _save(self) -> None:
        now = self.clock()
        self.due = now + WALL_TIME_INTERVAL_S
        text = sealed_text({"began": self.began, "ended": now})
        with suppress(RunError):  # whoever writes runs will say what is wrong with the disk
            with disk_errors(self.file.parent):
                self.file.parent.mkdir(exist_ok=True)
            write_whole(self.file, lambda unfinished: unfinished.write_text(text))


def recorded_wall_s(study: Path) -> float | None:
    """The seconds in which a study was run; None where that was not written down, or cannot be read."""
    try:
        files = (study / "sessions").glob("[!.]*.json")
        spans = [check_seal(parse_json(read_bounded(file, _MOST_BYTES)), ("began", "ended")) for file in files]
        times = sorted((float(span["began"]), float(span["ended"])) for span in spans)
    except (OSError, ValueError, KeyError, TypeError):  # InputError is a ValueError
        return None
    if not times:
        return None
    total_s, until = 0.0, -float("inf")
    for began, ended in times:
        total_s += max(0.0, ended - max(began, until))
        until = max(until, ended)
    return total_s
