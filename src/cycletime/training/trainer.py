"""The trainer: runs are resumed, trained by their engine, recorded, saved and finished, so that they survive anything.

Runs that are trained together share nothing but the program: what goes wrong with one run ends that run alone. Where
finished runs go is a result sink's business: into their own folders, or into the store of a study.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from cycletime.errors import RunError
from cycletime.training.atomic_files import Lock
from cycletime.training.engine import Chunk, JournalingBatch, RunBatch
from cycletime.training.engine_registry import engine_for, make_batch
from cycletime.training.finished_run import FinishedRun
from cycletime.training.jax_setup import use_device
from cycletime.training.learning_curve import Episodes
from cycletime.training.make_specs import make_specs
from cycletime.training.process import allow_open_files
from cycletime.training.progress_bar import show_progress
from cycletime.training.run_folder import RunFolder
from cycletime.training.run_recorder import SAVE_ALL, RunRecorder, SaveOptions, Status, TrainingJob, TrainingObserver

CHECKPOINT_S = 30.0
"""How long runs go on between two checkpoints."""
LONGEST_WAIT_S = 600.0
"""How long a run waits for a moment to go on from exactly, where episodes are long: at an episode's end."""
MOST_TIME_SAVING = 0.05
"""The share of the time that checkpoints may take; large ones come less often."""
RunOutcome: TypeAlias = Literal["finished", "stopped"]
Clock: TypeAlias = Callable[[], float]


class CompletedRun(NamedTuple):
    """A run that has reached its budget."""

    record: RunRecorder
    run: FinishedRun


class ResultSink(Protocol):
    """Where runs are put."""

    @property
    def keep(self) -> SaveOptions:
        """What is wanted of them."""

    def save(self, record: RunRecorder, chunk: Chunk) -> None:
        """A checkpoint was written."""

    def finish(self, last: Sequence[CompletedRun]) -> list[Exception | None]:
        """Keep finished runs; what went wrong with each."""


@dataclass(frozen=True)
class FolderSink:
    """Each run in its own folder, where it can be looked at meanwhile."""

    keep: SaveOptions = SAVE_ALL

    def save(self, record: RunRecorder, chunk: Chunk) -> None:
        """Show how far it is."""
        curve = record.curve
        assert isinstance(curve, Episodes), "a run's folder has all of them"
        record.folder.write_snapshot(curve, record.metrics.columns, record.policy(chunk), record.setting.env_dt)

    def finish(self, last: Sequence[CompletedRun]) -> list[Exception | None]:
        """Write them, each for itself."""
        faults: list[Exception | None] = []
        for record, run in last:
            try:
                record.folder.write_finished(run, record.setting.env_dt)
                faults.append(None)
            except Exception as error:
                faults.append(error)
        return faults


def train_folders(
    folders: Sequence[RunFolder],
    *,
    listeners: Sequence[Sequence[TrainingObserver]] = (),
    stop: Callable[[], bool] = lambda: False,
    checkpoint_s: float = CHECKPOINT_S,
    group: RunBatch | None = None,
    clock: Clock = time.monotonic,
) -> list[RunOutcome | Exception]:
    """Train runs together to their ends, each from its last checkpoint; finished runs are left alone.

    Args:
        folders: The runs.
        listeners: Of each run, who is told.
        stop: Asked about once a second; where it says yes, checkpoints are written and runs left for later.
        checkpoint_s: The seconds between two checkpoints, at least.
        group: The runs, if they were made ready before.
        clock: Seconds.

    Returns:
        What became of each: an error is the run's whose it is, and others go on; an engine's ends all of them.
    """
    ends: dict[int, RunOutcome | Exception] = {}
    allow_open_files(len(folders))
    with ExitStack() as stack:
        locks: dict[int, Lock] = {}
        for run, folder in enumerate(folders):
            try:
                lock = _lock_unfinished(folder, stack)
            except Exception as error:
                ends[run] = error
                continue
            if lock is None:
                ends[run] = "finished"
            else:
                locks[run] = lock
        told = listeners or [()] * len(folders)
        trainees = [TrainingJob(folders[run], told[run], lock.check) for run, lock in locks.items()]
        if len(trainees) < len(folders) and group is not None:
            group.close()
            group = None
        ended = train_together(trainees, FolderSink(), stop=stop, checkpoint_s=checkpoint_s, group=group, clock=clock)
        ends |= dict(zip(locks, ended, strict=True))
    return [ends[run] for run in range(len(folders))]


def _lock_unfinished(folder: RunFolder, stack: ExitStack) -> Lock | None:
    """The lock of a run that is to be trained, held until the stack is closed; None where it is finished."""
    if folder.is_finished:
        with suppress(RunError), folder.locked():  # its disk may be read-only by now
            folder.sweep()
        return None
    lock = stack.enter_context(folder.locked())
    folder.sweep()
    if folder.is_finished:  # meanwhile
        return None
    return lock


def train_together(
    trainees: Sequence[TrainingJob],
    shelf: ResultSink,
    *,
    stop: Callable[[], bool] = lambda: False,
    checkpoint_s: float = CHECKPOINT_S,
    group: RunBatch | None = None,
    clock: Clock = time.monotonic,
) -> list[RunOutcome | Exception]:
    """Train runs of one program that are this process's; what became of each."""
    if not trainees:
        return []
    try:
        group = group or make_batch([trainee.folder.spec for trainee in trainees])
    except Exception as error:
        return [error] * len(trainees)
    with closing(group):
        training = _BatchTraining(group, shelf, checkpoint_s, clock)
        try:
            for run, trainee in enumerate(trainees):
                training.begin(run, trainee)
            training.run(stop)
        except Exception as error:
            training.end_all(error)
        except BaseException as error:
            training.tell_all("stopped" if isinstance(error, KeyboardInterrupt) else "failed")
            raise
        return [training.ends[run] for run in range(len(trainees))]


class _BatchTraining:
    """Runs while they are trained together."""

    def __init__(self, group: RunBatch, shelf: ResultSink, checkpoint_s: float, clock: Clock) -> None:
        """Begin with none of them."""
        self.group, self.shelf, self.checkpoint_s, self.clock = group, shelf, checkpoint_s, clock
        self.records: dict[int, RunRecorder] = {}
        """Those that go on."""
        self.unsaved: dict[int, Chunk] = {}
        """Where they are, unless that has been saved."""
        self.ends: dict[int, RunOutcome | Exception] = {}

    def begin(self, run: int, trainee: TrainingJob) -> None:
        """Read what there is of a run."""
        try:
            self.records[run] = RunRecorder(trainee, self.group.settings[run], self.shelf.keep)
        except Exception as error:
            self._leave(run, error)

    def run(self, stop: Callable[[], bool]) -> None:
        """Train all to their ends, or until asked to stop."""
        looked = self.clock()
        due = looked + self.checkpoint_s
        starts = {}
        for run, record in list(self.records.items()):
            with self._trying(run):
                starts[run] = record.resume()
                if isinstance(self.group, JournalingBatch):
                    self.group.keep_journal(run, record)
        for told in self.group.chunks({run: start for run, start in starts.items() if run in self.records}):
            self._take(told)
            now = self.clock()
            for run in told:
                if run in self.records:
                    self.records[run].wall_s += now - looked
            looked = now
            self._finish()
            if not self.records:
                return
            if stop():
                self._stop()
                return
            if now >= due and self._save(patient=now < due + LONGEST_WAIT_S):
                saved = self.clock()
                due = saved + max(self.checkpoint_s, (saved - now) / MOST_TIME_SAVING)
        if self.records:
            raise AssertionError("an engine's last chunks say so")

    def end_all(self, error: Exception) -> None:
        """Something failed that all of them need."""
        for run in list(self.records):
            self._leave(run, error)

    def tell_all(self, status: Status) -> None:
        """Tell the listeners of all runs that go on how it ended."""
        for record in self.records.values():
            record.tell(lambda listener: listener.end(status))

    def _take(self, told: Mapping[int, Chunk | RunError]) -> None:
        for run, chunk in told.items():
            if run not in self.records:
                continue
            if isinstance(chunk, RunError):
                self._leave(run, chunk)
                continue
            with self._trying(run):
                self.unsaved[run] = chunk
                self.records[run].add(chunk)

    def _finish(self) -> None:
        last: dict[int, CompletedRun] = {}
        for run in [run for run, chunk in self.unsaved.items() if chunk.is_last]:
            with self._trying(run):
                record = self.records[run]
                last[run] = CompletedRun(record, record.finished(self.unsaved[run]))
        for run, fault in zip(last, self.shelf.finish(list(last.values())) if last else (), strict=True):
            self._leave(run, fault or "finished")

    def _stop(self) -> None:
        for run, record in list(self.records.items()):
            with self._trying(run):
                chunk = self.unsaved.get(run)
                if chunk is not None and (chunk.exact or not record.has_exact):
                    self._write(record, chunk)
                self._leave(run, "stopped")

    def _save(self, *, patient: bool) -> bool:
        """Write checkpoints of all runs that can go on from theirs exactly, or of all; whether there were any."""
        ready = [run for run, chunk in self.unsaved.items() if chunk.exact or not patient]
        for run in ready:
            with self._trying(run):
                self._write(self.records[run], self.unsaved.pop(run))
        return bool(ready)

    def _write(self, record: RunRecorder, chunk: Chunk) -> None:
        record.save(chunk)
        self.shelf.save(record, chunk)

    @contextmanager
    def _trying(self, run: int) -> Iterator[None]:
        """Let what goes wrong with a run end that run alone."""
        try:
            yield
        except Exception as error:
            self._leave(run, error)

    def _leave(self, run: int, end: RunOutcome | Exception) -> None:
        """A run is over, for now."""
        record, _ = self.records.pop(run, None), self.unsaved.pop(run, None)
        self.ends[run] = end
        if isinstance(end, Exception):
            self.group.drop(run)
        if record is not None:
            with self._trying(run):
                record.tell(lambda listener: listener.end("failed" if isinstance(end, Exception) else end))


def train(
    *,
    out: Path | str = "runs",
    progress: bool = True,
    stop: Callable[[], bool] = lambda: False,
    checkpoint_s: float = CHECKPOINT_S,
    **asked: Any,  # noqa: ANN401 - as `specs_of` has them
) -> tuple[RunFolder, ...]:
    """Train an agent on a task or an environment at a cycle time, with one seed or several.

    What was trained before is not trained again, and what was stopped or killed goes on where it was.

    Args:
        out: Where runs are kept, each in a folder of its own.
        progress: Whether to show how it goes, on standard error or in the notebook.
        stop: Asked about once a second; where it says yes, runs are saved and left for later.
        checkpoint_s: The seconds between two checkpoints, at least.
        asked: What to train, as in `cycletime.training.make_specs.make_specs`: task or env, algorithm, dt, seeds...

    Returns:
        The runs, one for each seed. `result()` tells the performance, `finished()` has the learning curve.

    Example:
        >>> (run,) = train(task="reacher", dt="16ms", env_steps=4_000, values={"batch": 100}, out=out)
        >>> run.result()["env_steps"]
        4000
    """
    specs = make_specs(**asked)
    engine = engine_for(specs[0])
    use_device(engine.jax_device(specs[0]))
    folders = [RunFolder.create(Path(out), spec) for spec in specs]
    size, left = engine.together(specs[0]), folders
    while left and not stop():
        now, left = left[:size], left[size:]
        with show_progress(now[0].spec.label, len(now), alike=True) as bars:
            listeners = [[bar] for bar in bars] if progress else ()
            ends = train_folders(now, listeners=listeners, stop=stop, checkpoint_s=checkpoint_s)
        for ended in ends:
            if isinstance(ended, Exception):
                raise ended
    return tuple(folders)
