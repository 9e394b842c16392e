"""What a worker does with a run, or with several together: take leases, train to the end, note what goes wrong."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from cycletime.engines.devices import prepare_jax as prepare_jax
from cycletime.engines.record import Trainee
from cycletime.engines.training import Progress, Status, train, train_together
from cycletime.errors import MachineError, RunError
from cycletime.runs.folder import RunFolder
from cycletime.runs.spec import RunSpec
from cycletime.studies.folder import StudyFolder, add_failure, failure_of, failures_of, is_hopeless
from cycletime.studies.lease import Lease, leased

Outcome: TypeAlias = Literal["done", "failed", "busy", "stopped"]
"""Busy: another worker trains it. Failed: this time, or so often before that it is left alone."""
Tell: TypeAlias = Callable[[Mapping[str, Any]], object]
"""Takes what there is to say of a run: `env_steps`, a `remark`, in the end its `outcome` and the `error`."""


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

    Raises:
        MachineError: if the machine has no room or no GPU for it, which is no failure of the run.
    """
    with ExitStack() as stack:
        taken = _taken(study, spec, worker, on_loss, stack)
        if isinstance(taken, str):
            return taken
        folder, lease = taken
        try:
            ended = train(folder, listeners=[_Watch(tell)], stop=stop, guard=lease.check)
        except MachineError:
            raise
        except Exception as error:
            return "busy" if lease.is_lost() else _failed(folder.path, error)
        return "done" if ended == "finished" else "stopped"


def work_together(
    study: StudyFolder,
    specs: Sequence[RunSpec],
    *,
    worker: str,
    stop: Callable[[], bool] = lambda: False,
    tell: Callable[[str, Mapping[str, Any]], object] = lambda name, e: None,
    on_loss: Callable[[], object] = lambda: None,
) -> dict[str, Outcome]:
    """Train runs of one program together, each as `work_on` does; by name, what became of them.

    Each outcome is told as well, as soon as it is known, so that a run that ends early is heard of early.

    Raises:
        MachineError: as in `work_on`, after the outcomes of those that ended otherwise are told.
    """
    outcomes: dict[str, Outcome] = {}

    def settle(name: str, outcome: Outcome) -> None:
        if name not in outcomes:
            outcomes[name] = outcome
            tell(name, {"outcome": outcome, **error_of(study, name, outcome)})

    with ExitStack() as stack:
        held: list[tuple[RunFolder, Lease]] = []
        for spec in specs:
            taken = _taken(study, spec, worker, on_loss, stack)
            if isinstance(taken, str):
                settle(spec.name, taken)
            else:
                held.append(taken)
        trainees = [Trainee(folder, [_together_watch(folder, tell, settle)], lease.check) for folder, lease in held]
        ends = train_together(trainees, stop=stop) if trainees else []
        lacking: MachineError | None = None
        for (folder, lease), ended in zip(held, ends, strict=True):
            if isinstance(ended, MachineError):
                lacking = ended
            elif isinstance(ended, Exception):
                settle(folder.spec.name, "busy" if lease.is_lost() else _failed(folder.path, ended))
            else:
                settle(folder.spec.name, "done" if ended == "finished" else "stopped")
        if lacking:
            raise lacking
    return outcomes


def error_of(study: StudyFolder, name: str, outcome: Outcome) -> dict[str, str]:
    """What went wrong last with a run whose outcome is that it failed."""
    failures = failures_of(study.runs / name) if outcome == "failed" else []
    return {"error": failures[-1]["error"]} if failures else {}


def _together_watch(
    folder: RunFolder, tell: Callable[[str, Mapping[str, Any]], object], settle: Callable[[str, Outcome], None]
) -> _Watch:
    name = folder.spec.name
    return _Watch(lambda told: tell(name, told), lambda: settle(name, "done"))


def _taken(
    study: StudyFolder, spec: RunSpec, worker: str, on_loss: Callable[[], object], stack: ExitStack
) -> tuple[RunFolder, Lease] | Outcome:
    """A run's folder and the lease on it, held until the stack is closed; or why there is nothing to train."""
    if study.state_of(spec.name) == "done":
        return "done"
    try:
        folder = study.run_folder(spec)
    except MachineError:
        raise
    except Exception as error:
        return _failed(study.runs / spec.name, error)
    try:
        lease = stack.enter_context(leased(folder.path, worker, on_loss))
    except MachineError:
        raise
    except RunError as error:  # the disk takes no lease
        return _failed(folder.path, error)
    if lease is None:
        return "busy"
    if folder.is_finished:
        return "done"
    if is_hopeless(failures_of(folder.path)):
        return "failed"
    return "busy" if _is_locked(folder) else (folder, lease)


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
    finished: Callable[[], object] = lambda: None
    """Called when the run's result is written."""

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
        """Tell that it is done; of other ends, the outcome tells more."""
        if status == "finished":
            self.finished()
