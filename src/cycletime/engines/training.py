"""Training, kept on disk so that it survives anything: runs are resumed, recorded, saved and finished.

Runs that are trained together share nothing but the program: what goes wrong with one run ends that run alone. Where
finished runs go is a shelf's business: into their own folders, or into the store of a study.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

from cycletime.engines.engine import Chunk, Group, JournalingGroup
from cycletime.engines.open_files import allow_open_files
from cycletime.engines.record import KEEP_ALL, Keep, Listener, Record, Status, Trainee
from cycletime.engines.registry import group_for
from cycletime.errors import RunError
from cycletime.loops import Episodes
from cycletime.runs.folder import RunFolder
from cycletime.runs.lock import Lock
from cycletime.runs.result import FinishedRun

CHECKPOINT_S = 30.0
"""How long runs go on between two checkpoints."""
LONGEST_WAIT_S = 600.0
"""How long a run waits for a moment to go on from exactly, where episodes are long: at an episode's end."""
MOST_TIME_SAVING = 0.05
"""The share of the time that checkpoints may take; large ones come less often."""
Ended: TypeAlias = Literal["finished", "stopped"]
Clock: TypeAlias = Callable[[], float]


class Last(NamedTuple):
    """A run that has reached its budget."""

    record: Record
    run: FinishedRun


class Shelf(Protocol):
    """Where runs are put."""

    @property
    def keep(self) -> Keep:
        """What is wanted of them."""

    def save(self, record: Record, chunk: Chunk) -> None:
        """A checkpoint was written."""

    def finish(self, last: Sequence[Last]) -> list[Exception | None]:
        """Keep finished runs; what went wrong with each."""


@dataclass(frozen=True)
class Folders:
    """Each run in its own folder, where it can be looked at meanwhile."""

    keep: Keep = KEEP_ALL

    def save(self, record: Record, chunk: Chunk) -> None:
        """Show how far it is."""
        curve = record.curve
        assert isinstance(curve, Episodes), "a run's folder has all of them"
        record.folder.write_snapshot(curve, record.metrics.columns, record.policy(chunk), record.setting.env_dt)

    def finish(self, last: Sequence[Last]) -> list[Exception | None]:
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
    listeners: Sequence[Sequence[Listener]] = (),
    stop: Callable[[], bool] = lambda: False,
    checkpoint_s: float = CHECKPOINT_S,
    group: Group | None = None,
    clock: Clock = time.monotonic,
) -> list[Ended | Exception]:
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
    ends: dict[int, Ended | Exception] = {}
    allow_open_files(len(folders))
    with ExitStack() as stack:
        locks: dict[int, Lock] = {}
        for run, folder in enumerate(folders):
            try:
                lock = _opened(folder, stack)
            except Exception as error:
                ends[run] = error
                continue
            if lock is None:
                ends[run] = "finished"
            else:
                locks[run] = lock
        told = listeners or [()] * len(folders)
        trainees = [Trainee(folders[run], told[run], lock.check) for run, lock in locks.items()]
        if len(trainees) < len(folders) and group is not None:
            group.close()
            group = None
        ended = train_together(trainees, Folders(), stop=stop, checkpoint_s=checkpoint_s, group=group, clock=clock)
        ends |= dict(zip(locks, ended, strict=True))
    return [ends[run] for run in range(len(folders))]


def _opened(folder: RunFolder, stack: ExitStack) -> Lock | None:
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
    trainees: Sequence[Trainee],
    shelf: Shelf,
    *,
    stop: Callable[[], bool] = lambda: False,
    checkpoint_s: float = CHECKPOINT_S,
    group: Group | None = None,
    clock: Clock = time.monotonic,
) -> list[Ended | Exception]:
    """Train runs of one program that are this process's; what became of each."""
    if not trainees:
        return []
    try:
        group = group or group_for([trainee.folder.spec for trainee in trainees])
    except Exception as error:
        return [error] * len(trainees)
    with closing(group):
        training = _Training(group, shelf, checkpoint_s, clock)
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


class _Training:
    """Runs while they are trained together."""

    def __init__(self, group: Group, shelf: Shelf, checkpoint_s: float, clock: Clock) -> None:
        """Begin with none of them."""
        self.group, self.shelf, self.checkpoint_s, self.clock = group, shelf, checkpoint_s, clock
        self.records: dict[int, Record] = {}
        """Those that go on."""
        self.unsaved: dict[int, Chunk] = {}
        """Where they are, unless that has been saved."""
        self.ends: dict[int, Ended | Exception] = {}

    def begin(self, run: int, trainee: Trainee) -> None:
        """Read what there is of a run."""
        try:
            self.records[run] = Record(trainee, self.group.settings[run], self.shelf.keep)
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
                if isinstance(self.group, JournalingGroup):
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
        last: dict[int, Last] = {}
        for run in [run for run, chunk in self.unsaved.items() if chunk.is_last]:
            with self._trying(run):
                record = self.records[run]
                last[run] = Last(record, record.finished(self.unsaved[run]))
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

    def _write(self, record: Record, chunk: Chunk) -> None:
        record.save(chunk)
        self.shelf.save(record, chunk)

    @contextmanager
    def _trying(self, run: int) -> Iterator[None]:
        """Let what goes wrong with a run end that run alone."""
        try:
            yield
        except Exception as error:
            self._leave(run, error)

    def _leave(self, run: int, end: Ended | Exception) -> None:
        """A run is over, for now."""
        record, _ = self.records.pop(run, None), self.unsaved.pop(run, None)
        self.ends[run] = end
        if isinstance(end, Exception):
            self.group.drop(run)
        if record is not None:
            with self._trying(run):
                record.tell(lambda listener: listener.end("failed" if isinstance(end, Exception) else end))
