"""Training, kept on disk so that it survives anything: runs are resumed, recorded, saved and finished.

Runs that are trained together share nothing but the program. Each has its own files, which `cycletime.engines.record`
writes, and what goes wrong with those of one run ends that run alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Literal, TypeAlias

from cycletime.engines.choosing import engine_for as engine_for
from cycletime.engines.choosing import group_for
from cycletime.engines.engine import Chunk, Group
from cycletime.engines.open_files import allow_open_files
from cycletime.engines.record import Listener as Listener
from cycletime.engines.record import Progress as Progress
from cycletime.engines.record import Record, Trainee
from cycletime.engines.record import Status as Status
from cycletime.errors import RunError
from cycletime.runs.folder import RunFolder
from cycletime.runs.lock import Lock

CHECKPOINT_S = 30.0
"""How long runs go on between two checkpoints."""
LONGEST_WAIT_S = 600.0
"""How long a run waits for a moment to go on from exactly, where episodes are long: at an episode's end."""
MOST_TIME_SAVING = 0.05
"""The share of the time that checkpoints may take; large ones come less often."""
Ended: TypeAlias = Literal["finished", "stopped"]


def train(
    folder: RunFolder,
    *,
    listeners: Sequence[Listener] = (),
    stop: Callable[[], bool] = lambda: False,
    checkpoint_s: float = CHECKPOINT_S,
    guard: Callable[[], object] | None = None,
) -> Ended:
    """Train a run to its end, from its last checkpoint if there is one; a finished run is left alone.

    Args:
        folder: The run.
        listeners: Who is told.
        stop: Asked about once a second; where it says yes, a checkpoint is written and the run left for later.
        checkpoint_s: The seconds between two checkpoints, at least.
        guard: Called before anything is written; raises where the run is no longer this process's.

    Raises:
        RunError: if the run cannot go on: another process trains it, the disk is full, its checkpoints are damaged.
    """
    (ended,) = train_together([Trainee(folder, listeners, guard)], stop=stop, checkpoint_s=checkpoint_s)
    if isinstance(ended, Exception):
        raise ended
    return ended


def train_together(
    trainees: Sequence[Trainee], *, stop: Callable[[], bool] = lambda: False, checkpoint_s: float = CHECKPOINT_S
) -> list[Ended | Exception]:
    """Train runs of one program together, as `train` does with one; what became of each.

    An error belongs to the run that it happened to, and the others go on; one of the engine itself ends all of them.
    """
    ends: dict[int, Ended | Exception] = {}
    allow_open_files(len(trainees))
    with ExitStack() as stack:
        locks: dict[int, Lock] = {}
        for run, trainee in enumerate(trainees):
            try:
                lock = _opened(trainee, stack)
            except Exception as error:
                ends[run] = error
                continue
            if lock is None:
                ends[run] = "finished"
            else:
                locks[run] = lock
        if locks:
            given = list(locks)
            told = _train([trainees[run] for run in given], list(locks.values()), stop, checkpoint_s)
            ends |= dict(zip(given, told, strict=True))
    return [ends[run] for run in range(len(trainees))]


def _opened(trainee: Trainee, stack: ExitStack) -> Lock | None:
    """The lock of a run that is to be trained, held until the stack is closed; None where it is finished."""
    folder = trainee.folder
    if folder.is_finished:
        with suppress(RunError), folder.locked():  # its disk may be read-only by now
            folder.sweep()
        return None
    lock = stack.enter_context(folder.locked(needed=trainee.guard is None))
    folder.sweep()
    if folder.is_finished:  # meanwhile
        return None
    return lock


def _train(
    trainees: Sequence[Trainee], locks: Sequence[Lock], stop: Callable[[], bool], checkpoint_s: float
) -> list[Ended | Exception]:
    try:
        group = group_for([trainee.folder.spec for trainee in trainees])
    except Exception as error:
        return [error] * len(trainees)
    with closing(group):
        training = _Training(group, checkpoint_s)
        try:
            for run, (trainee, lock) in enumerate(zip(trainees, locks, strict=True)):
                training.begin(run, trainee, lock)
            training.run(stop)
        except Exception as error:
            training.end_all(error)
        except BaseException as error:
            training.tell_all("stopped" if isinstance(error, KeyboardInterrupt) else "failed")
            raise
        return [training.ends[run] for run in range(len(trainees))]


class _Training:
    """Runs while they are trained together."""

    def __init__(self, group: Group, checkpoint_s: float) -> None:
        """Begin with none of them."""
        self.group, self.checkpoint_s = group, checkpoint_s
        self.records: dict[int, Record] = {}
        """Those that go on."""
        self.unsaved: dict[int, Chunk] = {}
        """Where they are, unless that has been saved."""
        self.ends: dict[int, Ended | Exception] = {}

    def begin(self, run: int, trainee: Trainee, lock: Lock) -> None:
        """Read what there is of a run."""
        try:
            self.records[run] = Record(trainee, lock, self.group.settings[run])
        except Exception as error:
            self._leave(run, error)

    def run(self, stop: Callable[[], bool]) -> None:
        """Train all to their ends, or until asked to stop."""
        looked = time.monotonic()
        due = looked + self.checkpoint_s
        starts = {}
        for run, record in list(self.records.items()):
            with self._trying(run):
                starts[run] = record.resume()
        for told in self.group.chunks({run: start for run, start in starts.items() if run in self.records}):
            self._take(told)
            now = time.monotonic()
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
                saved = time.monotonic()
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
        for run in [run for run, chunk in self.unsaved.items() if chunk.is_last]:
            with self._trying(run):
                self.records[run].finish(self.unsaved[run])
                self._leave(run, "finished")

    def _stop(self) -> None:
        for run, record in list(self.records.items()):
            with self._trying(run):
                chunk = self.unsaved.get(run)
                if chunk is not None and (chunk.exact or not record.has_exact):
                    record.save(chunk)
                self._leave(run, "stopped")

    def _save(self, *, patient: bool) -> bool:
        """Write checkpoints of all runs that can go on from theirs exactly, or of all; whether there were any."""
        ready = [run for run, chunk in self.unsaved.items() if chunk.exact or not patient]
        for run in ready:
            with self._trying(run):
                self.records[run].save(self.unsaved.pop(run))
        return bool(ready)

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
