"""Running a study: whatever is not done yet goes to an executor, until all of it is done or has failed too often."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from cycletime.studies.executors.executor import Event, Executor, Job
from cycletime.studies.folder import State, StudyFolder
from cycletime.studies.plan import Plan, Planned

WAIT_S = 2.0
"""How often to look whether others have finished the runs that they hold."""
MOST_RUNS_IN_JOB = 50


class Watcher(Protocol):
    """Who wants to know how a study goes."""

    def begin(self, plan: Plan, states: dict[str, State]) -> None:
        """It begins, or goes on: how far each run is, by name."""

    def update(self, event: Event) -> None:
        """Something happened to a run."""

    def end(self) -> None:
        """It is over, for now."""


def run_study(
    folder: StudyFolder, executor: Executor, *, watcher: Watcher | None = None, stop: Callable[[], bool] = lambda: False
) -> Counter[State]:
    """Run what is not done yet; how many runs are in which state in the end.

    Others may run the same study at the same time: runs that they hold are left to them, and waited for.
    """
    plan = Plan.of(folder.study)
    states = {planned.name: state for planned, state in plan.states(folder)}
    if watcher:
        watcher.begin(plan, states)
    tell = watcher.update if watcher else lambda event: None
    while not stop():
        left = [planned for planned in plan.runs if states[planned.name] not in ("done", "failed")]
        free = [planned for planned in left if states[planned.name] != "running"]
        if not left:
            break
        if free:
            executor.execute(str(folder.path), list(jobs_of(plan, free)), tell, stop)
        else:
            time.sleep(WAIT_S)
        states |= {planned.name: folder.state_of(planned.name) for planned in left}
        for planned in left:
            if states[planned.name] == "done" and planned not in free:
                tell(Event(planned.name, outcome="done"))  # by somebody else
    if watcher:
        watcher.end()
    return Counter(states.values())


def jobs_of(plan: Plan, runs: Sequence[Planned], most: int = MOST_RUNS_IN_JOB) -> Iterator[Job]:
    """Runs in jobs of one program each."""
    for key, group in plan.groups(tuple(runs)).items():
        for start in range(0, len(group), most):
            yield Job(key, tuple(plan.spec(planned).as_json() for planned in group[start : start + most]))
