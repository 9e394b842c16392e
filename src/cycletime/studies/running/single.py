"""One run of a study, trained here and now."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from cycletime.engines.devices import prepare_jax
from cycletime.engines.record import Listener, Trainee
from cycletime.engines.registry import engine_of
from cycletime.engines.training import CHECKPOINT_S, Ended, train_together
from cycletime.errors import InputError, RunError
from cycletime.studies.plan.plan import Plan
from cycletime.studies.running.lease import holders, leased
from cycletime.studies.running.shelf import StudyShelf
from cycletime.studies.running.taking import Taken
from cycletime.studies.running.watchdog import Watchdog, watched
from cycletime.studies.store.folder import StudyFolder


def finish_run(
    folder: StudyFolder,
    name: str,
    listeners: Sequence[Listener] = (),
    stop: Callable[[], bool] = lambda: False,
    checkpoint_s: float = CHECKPOINT_S,
) -> Ended:
    """Train a run of a study to its end, from its checkpoint if there is one; one that is done is left alone.

    Raises:
        InputError: if the study does not plan it.
        RunError: if a worker trains it at this moment, or it cannot go on.
    """
    plan = Plan.of(folder.study)
    planned = next((each for each in plan.runs if each.name == name), None)
    if planned is None:
        raise InputError(f"{name!r} is not a run of {folder.path}: the study does not plan it.")
    spec = plan.spec(planned)
    prepare_jax(engine_of(spec).jax_device(spec))
    with leased(folder.leases, name, "resume", stale_s=folder.stale_s) as lease:
        if name in folder.store.refresh():
            return "finished"
        if lease is None:
            who = holders(folder.leases).get(name, "a worker of the study")
            raise RunError(f"{name} is being trained by {who}: wait for it, or stop the study.")
        trainee = Trainee(folder.run_folder(spec), listeners, Taken(spec, lease).check)
        with watched(Watchdog(float(folder.study.patience), stop, lambda _, told: _give_up(name, told))):
            (ended,) = train_together([trainee], StudyShelf(folder), stop=stop, checkpoint_s=checkpoint_s)
    if isinstance(ended, Exception):
        raise ended
    return ended


def _give_up(name: str, told: str) -> None:
    """End the process, which nothing else can where an environment hangs."""
    print(f"cycletime: {name}: {told}.", file=sys.stderr, flush=True)
    os._exit(1)
