"""Running a study: workers are started until all runs are done or have failed too often.

What workers do stands in `worker`, and who looks after them in `crew`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Protocol

from cycletime.studies.executors.executor import Executor
from cycletime.studies.plan.plan import Plan
from cycletime.studies.running.crew import LEAVE_S, Crew
from cycletime.studies.running.diary import Event
from cycletime.studies.running.lease import holders, sweep_leases
from cycletime.studies.store.folder import State, StudyFolder

OTHERS_S = 2.0
"""How often to look whether others have finished the runs that they hold."""


class Watcher(Protocol):
    """Who wants to know how a study goes."""

    def begin(self, plan: Plan, states: Mapping[str, State]) -> None:
        """It begins, or goes on: how far each run is, by name."""

    def update(self, event: Event) -> None:
        """Something happened to a run."""

    def wait(self, holders: Mapping[str, str]) -> None:
        """Nothing is left but what others train: by run, who does."""

    def end(self) -> None:
        """It is over, for now."""


def run_study(
    folder: StudyFolder, executor: Executor, *, watcher: Watcher | None = None, stop: Callable[[], bool] = lambda: False
) -> Counter[State]:
    """Run what is not done yet; how many runs are in which state in the end.

    Others may run the same study at the same time: runs that they hold are left to them, and waited for.

    Raises:
        RunError: if the disk refuses what workers write, or no worker comes to begin a run.
        MachineError: if a machine has no room or no GPU for runs.
    """
    plan = Plan.of(folder.study)
    names = [planned.name for planned in plan.runs]
    sweep_leases(folder.leases)
    states = folder.states(names)
    done = {name for name, state in states.items() if state == "done"}
    if _left(states):  # where nothing is, it can be looked at by those who may not write
        folder.open_to_workers()
    folder.clean(done)
    if watcher:
        watcher.begin(plan, states)
    crew = Crew(folder, executor, watcher.update if watcher else lambda event: None, told=done)
    wait_s = LEAVE_S
    try:
        while not stop():
            states = folder.states(names)
            crew.tell_done(states)
            if not (left := _left(states)):
                break
            free = [planned for planned in plan.runs if planned.name in left and states[planned.name] != "running"]
            if free:
                crew.work(plan, free, stop)
            else:
                if watcher:
                    watcher.wait({name: who for name, who in holders(folder.leases).items() if name in states})
                time.sleep(OTHERS_S)
        crew.leave()
    except KeyboardInterrupt:  # asked to stop twice
        wait_s = 0.0
        raise
    finally:
        crew.close(wait_s)
        if watcher:
            watcher.end()
    folder.store.tidy()
    states = folder.states(names)
    crew.tell_done(states)
    return Counter(states.values())


def _left(states: Mapping[str, State]) -> set[str]:
    """The runs that may still be done."""
    return {name for name, state in states.items() if state not in ("done", "failed")}
