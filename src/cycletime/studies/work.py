"""What a worker does with one run: take its lease, train it to its end, note what goes wrong."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from cycletime.engines.training import Progress, Status, train
from cycletime.errors import RunError
from cycletime.runs.folder import RunFolder
from cycletime.runs.spec import RunSpec
from cycletime.studies.folder import MOST_FAILURES, StudyFolder, add_failure, failures_of
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
) -> Outcome:
    """Train one run of a study, unless it is done, hopeless, or somebody else's at the moment."""
    if study.state_of(spec.name) == "done":
        return "done"
    folder = study.run_folder(spec)
    with leased(folder.path, worker) as lease:
        if lease is None:
            return "busy"
        if folder.is_finished:
            return "done"
        if len(failures_of(folder.path)) >= MOST_FAILURES:
            return "failed"
        return _train(folder, lease, stop, tell)


def _train(folder: RunFolder, lease: Lease, stop: Callable[[], bool], tell: Tell) -> Outcome:
    try:
        ended = train(folder, listeners=[_Watch(lease, tell)], stop=stop)
    except Exception as error:
        if not lease.is_lost():
            add_failure(folder.path, _failure(error))
        return "failed"
    return "done" if ended == "finished" else "stopped"


def _failure(error: Exception) -> dict[str, str]:
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "error": f"{type(error).__name__}: {error}",
        "traceback": "".join(traceback.format_exception(error)),
    }


@dataclass(frozen=True)
class _Watch:
    """Tells how far the run is, and ends it where the lease is lost, before anything more is written."""

    lease: Lease
    tell: Tell

    def begin(self, folder: RunFolder, resumed_from: int | None) -> None:
        """Tell where it begins."""
        self.tell({"env_steps": resumed_from or 0})

    def update(self, progress: Progress) -> None:
        """Tell how far it is."""
        if self.lease.is_lost():
            raise RunError("The lease on this run was taken by another worker, since this one did not answer for long.")
        self.tell({"env_steps": progress.env_steps})

    def remark(self, sentence: str) -> None:
        """Pass it on."""
        self.tell({"remark": sentence})

    def end(self, status: Status) -> None:
        """The outcome tells it."""


def prepare_jax(device: str) -> None:
    """Choose JAX's device, and let calls on a CPU return when they are done, which takes half the time."""
    import jax

    jax.config.update("jax_platforms", "cpu" if device == "cpu" else "cuda")  # type: ignore[no-untyped-call]
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # type: ignore[no-untyped-call]
