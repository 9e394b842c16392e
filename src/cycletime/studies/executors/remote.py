"""What executors on many machines share: chunks of runs as files in the study's folder, which workers everywhere see.

STUDY/jobs/BATCH/0.json     the specs of a chunk's runs
                 0.jsonl    what happens to them, a line each, written by whoever works on the chunk
                 stop       whoever works on the batch saves and leaves
"""

from __future__ import annotations

import json
import math
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

from cycletime.engines.choosing import most_together
from cycletime.errors import MachineError
from cycletime.runs.files import disk_errors, write_whole
from cycletime.runs.spec import RunSpec
from cycletime.studies.executors.executor import Job
from cycletime.studies.folder import StudyFolder
from cycletime.studies.work import error_of, prepare_jax, work_on, work_together
from cycletime.studies.worker import LOST, environment_for

Spec: TypeAlias = Mapping[str, Any]
PROGRESS_S = 5.0
"""How often a worker writes how far its run is."""
STOP_S = 1.0
"""How often it looks whether it is asked to stop."""
TURNS = 4
"""Chunks for each worker: few enough that they last, and enough that the last ones do not keep others waiting."""


@dataclass(frozen=True)
class Batch:
    """The chunks that were submitted together."""

    path: Path

    @classmethod
    def create(cls, study: str, chunks: Sequence[Sequence[Spec]]) -> Batch:
        """Write the chunks."""
        path = Path(study).resolve() / "jobs" / f"cycletime-{uuid4().hex[:12]}"
        with disk_errors(path):
            path.mkdir(parents=True)
        for index, chunk in enumerate(chunks):
            text = json.dumps(list(chunk))
            write_whole(path / f"{index}.json", lambda file, text=text: file.write_text(text))  # type: ignore[misc]
        return cls(path)

    @classmethod
    def all_of(cls, study: str) -> Iterator[Batch]:
        """Those of a study that nobody has removed yet."""
        for path in sorted((Path(study).resolve() / "jobs").glob("cycletime-*")):
            yield cls(path)

    @property
    def name(self) -> str:
        """Unique everywhere."""
        return self.path.name

    def specs(self, index: int) -> list[Spec]:
        """The runs of a chunk; none where the batch was removed, since nobody waits for it any more."""
        try:
            told: list[Spec] = json.loads((self.path / f"{index}.json").read_text())
        except FileNotFoundError:
            return []
        return told

    def events(self, index: int) -> Path:
        """The file of what happens to a chunk."""
        return self.path / f"{index}.jsonl"

    def ask_to_stop(self) -> None:
        """Let all who work on it save and leave, and all who come later leave at once."""
        with suppress(OSError):  # removed, which says the same; or the disk is full, and they leave by themselves
            (self.path / "stop").touch()

    def is_asked_to_stop(self) -> bool:
        """Whether to save and leave."""
        return (self.path / "stop").exists() or not self.path.exists()

    def remove(self) -> None:
        """Forget it."""
        shutil.rmtree(self.path, ignore_errors=True)


def chunked(jobs: Sequence[Job], workers: int, most: int | None = None) -> list[tuple[Spec, ...]]:
    """The jobs' runs in chunks of one program each: at most so many, by default such that all workers have a few.

    Runs that are trained together count as one for that, and are in one chunk, unless several workers can have enough.
    """
    turns = sum(math.ceil(len(job.specs) / job.together) for job in jobs)
    each = max(1, math.ceil(turns / (workers * TURNS)))
    chunks = []
    for job in jobs:
        size = most or (each * job.together if job.enough is None else job.share(len(job.specs), workers))
        chunks += [job.specs[start : start + size] for start in range(0, len(job.specs), size)]
    return chunks


def worker_environment(device: str) -> dict[str, str]:
    """The variables that a worker needs, wherever it is."""
    cache = {name: os.environ[name] for name in ("CYCLETIME_CACHE",) if name in os.environ}
    return {**environment_for(device), **cache}


def work_through(batch: str, index: int, worker: str, stop: Callable[[], bool] = lambda: False) -> None:
    """Train the runs of a chunk; this is what a worker on another machine is told to do.

    Whoever is killed is simply told the same again: finished runs are passed over, others go on from their checkpoints.
    """
    given = Batch(Path(batch))
    specs = given.specs(index)
    if not specs:
        return
    asked = _Asked(given, stop)
    study = StudyFolder.open(given.path.parents[1])
    prepare_jax(study.study.jax_device)
    with given.events(index).open("a") as file:
        diary = _Diary(file.write, file.flush)
        diary.write({"worker": worker})
        try:
            _train_in_turn(study, specs, worker, asked, diary)
        except MachineError as error:
            told = f"On {platform.node()}: {error}"
            diary.write({"machine": told})  # a line may still find room
            raise MachineError(told) from error
        diary.write({"left": True})


def _train_in_turn(study: StudyFolder, specs: Sequence[Spec], worker: str, asked: _Asked, diary: _Diary) -> None:
    """Train runs one after another, or as many together as their engine takes."""
    common: dict[str, Any] = {"worker": worker, "stop": asked, "on_loss": lambda: os._exit(LOST)}
    while specs and not asked():
        first = RunSpec.from_json(specs[0])
        now, specs = specs[: most_together(first.engine)], specs[most_together(first.engine) :]
        if len(now) == 1:
            diary.begin(first.name)
            outcome = work_on(study, first, tell=partial(diary.tell, first.name), **common)
            diary.tell(first.name, {"outcome": outcome, **error_of(study, first.name, outcome)})
        else:
            runs = [first, *(RunSpec.from_json(told) for told in now[1:])]
            for run in runs:
                diary.begin(run.name)
            work_together(study, runs, tell=diary.tell, **common)


class _Asked:
    """Whether a worker is to stop; looks at the disk only now and then."""

    def __init__(self, batch: Batch, stop: Callable[[], bool]) -> None:
        self.batch, self.stop = batch, stop
        self.due_s, self.answer = 0.0, False

    def __call__(self) -> bool:
        now = time.monotonic()
        if not self.answer and now >= self.due_s:
            self.due_s = now + STOP_S
            self.answer = self.batch.is_asked_to_stop()
        return self.answer or self.stop()


@dataclass
class _Diary:
    """What a worker writes of its runs."""

    out: Callable[[str], object]
    flush: Callable[[], object]
    due_s: dict[str, float] = field(default_factory=dict)
    """By run, when it may tell again how far it is."""

    def begin(self, name: str) -> None:
        """A further run."""
        self.write({"name": name})

    def tell(self, name: str, told: Mapping[str, Any]) -> None:
        """What became of a run; how far it is, now and then; and no remarks."""
        now = time.monotonic()
        if "outcome" in told:
            self.write({"name": name, **told})
        elif "env_steps" in told and now >= self.due_s.get(name, 0.0):
            self.due_s[name] = now + PROGRESS_S
            self.write({"name": name, "env_steps": told["env_steps"]})

    def write(self, told: Mapping[str, Any]) -> None:
        """A line, after an end of whatever line a killed worker has left torn."""
        self.out("\n" * ("worker" in told) + json.dumps(told) + "\n")
        self.flush()
