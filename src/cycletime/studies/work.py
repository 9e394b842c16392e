"""What a worker does with one run: take its lease, train it to its end, note what goes wrong."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from cycletime.engines.devices import prepare_jax as prepare_jax
from cycletime.engines.training import Progress, Status, train
from cycletime.errors import RunError
from cycletime.runs.folder import RunFolder
from cycletime.runs.spec import RunSpec
from cycletime.studies.folder import StudyFolder, add_failure, failure_of, failures_of, is_hopeless
from cycletime.studies.lease import Lease, leased

Outcome: TypeAlias = Literal["done", "failed", "busy", "stopped"]
"""Busy: another worker trains it. Failed: this time, or so often before that it is left alone."""
Tell: TypeAlias = Callable[[Mapping[str, Any]], object]


def work_on(
    study: StudyFolder,
    spec: RunSpec,
    *,
    worker: str,
    stop: Callable[[], bool] = lambda: False,
    tell: Tell = lambda e: None,
    on_loss: Callable[[], object] = lambda: None,
) -> Outcome:
    """Train one run of a study, unless it is done, hopeless, or somebody else's at the moment.

    Args:
        study: The study.
        spec: The run.
        worker: Who this is, for others to read.
        stop: Asked about once a second whether to save and leave.
        tell: Told how far the run is.
        on_loss: Called from another thread if the lease was taken meanwhile; a process of its own should end there,
            so that it writes nothing more.
    """
    if study.state_of(spec.name) == "done":
        return "done"
    try:
        folder = study.run_folder(spec)
    except Exception as error:
        return _failed(study.runs / spec.name, error)
    with leased(folder.path, worker, on_loss) as lease:
        if lease is None:
            return "busy"
        if folder.is_finished:
            return "done"
        if is_hopeless(failures_of(folder.path)):
            return "failed"
        if _is_locked(folder):
            return "busy"
        return _train(folder, lease, stop, tell)


def _train(folder: RunFolder, lease: Lease, stop: Callable[[], bool], tell: Tell) -> Outcome:
    try:
        ended = train(folder, listeners=[_Watch(tell)], stop=stop, guard=lease.check)
    except Exception as error:
        return "busy" if lease.is_lost() else _failed(folder.path, error)
    return "done" if ended == "finished" else "stopped"


def _failed(run: Path, error: Exception) -> Outcome:
    with suppress(RunError):  # a full disk takes no note either; the one who gave the run hears that it failed
        add_failure(run, failure_of(error))
    return "failed"


def _is_locked(folder: RunFolder) -> bool:
    """Whether somebody trains the run without a lease: by `cycletime resume`, or frozen and believed dead."""
    with suppress(OSError), (folder.path / "lock").open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@dataclass(frozen=True)
class _Watch:
    """Tells how far the run is."""

    tell: Tell

    def begin(self, folder: RunFolder, resumed_from: int | None) -> None:
        """Tell where it begins."""
        self.tell({"env_steps": resumed_from or 0})

    def update(self, progress: Progress) -> None:
        """Tell how far it is."""
        self.tell({"env_steps": progress.env_steps})

    def remark(self, sentence: str) -> None:
        """Pass it on."""
        self.tell({"remark": sentence})

    def end(self, status: Status) -> None:
        """The outcome tells it."""
