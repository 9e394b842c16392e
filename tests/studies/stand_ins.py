"""Trainings that take no time, executors whose workers work in this process, and who writes down what they say."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from cycletime.errors import RunError
from cycletime.studies import worker
from cycletime.studies.events import Event, StudyObserver
from cycletime.studies.plan import Plan
from cycletime.studies.study_folder import RunState, StudyFolder
from cycletime.studies.worker import StudyResultSink
from cycletime.training.run_recorder import TrainingJob
from cycletime.training.trainer import TrainingOutcome, train_batch
from tests.studies.small import finished, specs_of

Work: TypeAlias = Callable[[str, str, int], object]
"""What a worker does: it is given the study's folder, its name, and how many there are."""


class Death(BaseException):
    """A worker is killed."""


def train_run(folder: StudyFolder, name: str, stop: Callable[[], bool] = lambda: False) -> TrainingOutcome:
    """Train one run of a study in this process, as a worker does that has its lease."""
    spec = next(spec for spec in specs_of(folder) if spec.name == name)
    (outcome,) = train_batch([TrainingJob(folder.run_folder(spec))], StudyResultSink(folder), stop=stop)
    assert not isinstance(outcome, Exception)
    return outcome


@dataclass
class InTurn:
    """An executor whose workers work in this process, one after another, when it is asked who has ended."""

    workers: int = 1
    work: Work = worker.work
    started: list[str] = field(default_factory=list)
    waiting: list[tuple[str, str]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    patience_s: list[float] = field(default_factory=list)
    """With which it was closed."""

    def find_workers(self, study: Path) -> Iterable[str]:
        return ()

    def start(self, study: Path, command: str, count: int, device: str) -> list[str]:
        names = [f"{command}-{len(self.started) + place}" for place in range(count)]
        self.started += names
        self.waiting += [(str(study), name) for name in names]
        return names

    def poll(self, wait_s: float) -> Mapping[str, str]:
        study, name = self.waiting.pop(0)
        try:
            self.work(study, name, self.workers)
        except Death as death:
            return {name: str(death)}
        return {name: ""}

    def stop(self, study: Path) -> None:
        self.calls.append("stop")
        self.waiting.clear()

    def kill(self, name: str) -> None:
        self.calls.append(f"kill {name}")

    def close(self, wait_s: float) -> None:
        self.calls.append("close")
        self.patience_s.append(wait_s)


@dataclass
class InThreads(InTurn):
    """The same with workers that work at the same time."""

    threads: dict[str, threading.Thread] = field(default_factory=dict)

    def start(self, study: Path, command: str, count: int, device: str) -> list[str]:
        names = super().start(study, command, count, device)
        for name in names:
            self.threads[name] = threading.Thread(target=self.work, args=(str(study), name, self.workers))
            self.threads[name].start()
        return names

    def poll(self, wait_s: float) -> Mapping[str, str]:
        time.sleep(0.01)
        over = [name for name, thread in self.threads.items() if not thread.is_alive()]
        for name in over:
            self.threads.pop(name).join()
        return dict.fromkeys(over, "")


@dataclass
class Notes(StudyObserver):
    """Writes down what it is told."""

    heard: list[Any] = field(default_factory=list)

    def begin(self, plan: Plan, states: Mapping[str, RunState]) -> None:
        self.heard.append(dict(states))

    def update(self, event: Event) -> None:
        self.heard.append(event)

    def wait(self, holders: Mapping[str, str]) -> None:
        self.heard.append(("waits", dict(holders)))

    def end(self) -> None:
        self.heard.append("end")

    @property
    def outcomes(self) -> list[tuple[str, str]]:
        return [(each.name, each.outcome) for each in self.heard if isinstance(each, Event) and each.outcome]


@dataclass
class Trained:
    """Stands for training: runs are finished at once, but for what tests want of them."""

    runs: list[str] = field(default_factory=list)
    """Those that were begun, in turn."""
    groups: list[list[str]] = field(default_factory=list)
    """Those that were begun together."""
    begun_at: dict[str, int] = field(default_factory=dict)
    """From where runs go on."""
    before: Callable[[Sequence[str]], object] = lambda names: None
    """Called when runs have begun; what it raises is the worker's end."""
    faults: dict[str, Exception] = field(default_factory=dict)
    """What goes wrong with runs."""

    def __call__(
        self, trainees: Sequence[TrainingJob], shelf: StudyResultSink, *, stop: Callable[[], bool]
    ) -> list[str | Exception]:
        names = [trainee.folder.spec.name for trainee in trainees]
        self.runs += names
        self.groups.append(names)
        for trainee in trainees:
            for listener in trainee.observers:
                listener.begin(trainee.folder, self.begun_at.get(trainee.folder.spec.name))
        self.before(names)
        return [self._end(trainee, shelf) for trainee in trainees]

    def _end(self, trainee: TrainingJob, shelf: StudyResultSink) -> str | Exception:
        spec = trainee.folder.spec
        if spec.name in self.faults:
            return self.faults[spec.name]
        try:
            trainee.check()
        except RunError as error:
            return error
        shelf.study.store.add([finished(spec)])
        for listener in trainee.observers:
            listener.end("finished")
        return "finished"
