"""Running a study: whatever is not done yet goes to an executor, until all of it is done or has failed too often."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cycletime.studies.executors.executor import Event, Executor, Job
from cycletime.studies.folder import State, StudyFolder, add_failure, failure_of, failures_of
from cycletime.studies.plan import Plan, Planned
from cycletime.studies.work import Outcome

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
    try:
        while not stop():
            left = [planned for planned in plan.runs if states[planned.name] not in ("done", "failed")]
            free = [planned for planned in left if states[planned.name] != "running"]
            if not left:
                break
            told = _Told(watcher)
            if free:
                executor.execute(str(folder.path), list(jobs_of(plan, free)), told.hear, stop)
                _note_hopeless(plan, folder, free, told)
            states |= {planned.name: folder.state_of(planned.name) for planned in left}
            for planned in left:
                if states[planned.name] == "done" and told.outcomes.get(planned.name) != "done":
                    told.hear(Event(planned.name, outcome="done"))  # by somebody else
            if all(outcome == "busy" for outcome in told.outcomes.values()) and not stop():
                time.sleep(WAIT_S)
    finally:
        if watcher:
            watcher.end()
    return Counter(states.values())


@dataclass
class _Told:
    """What an executor told of the runs that it was given."""

    watcher: Watcher | None
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def hear(self, event: Event) -> None:
        if event.outcome is not None:
            self.outcomes[event.name] = event.outcome
        if event.outcome == "failed":
            self.errors[event.name] = event.error or "it failed, and nobody said why"
        if self.watcher:
            self.watcher.update(event)


def _note_hopeless(plan: Plan, folder: StudyFolder, runs: Sequence[Planned], told: _Told) -> None:
    """Note a run that an executor gave up, such as one whose workers all died, so that it is not tried for ever.

    What a worker could catch, the worker has noted in the run's folder.
    """
    for planned in runs:
        error = told.errors.get(planned.name)
        noted = failures_of(folder.runs / planned.name) if error else []
        if error and error not in [failure["error"] for failure in noted]:
            add_failure(folder.run_folder(plan.spec(planned)).path, failure_of(error, gives_up=True))


def jobs_of(plan: Plan, runs: Sequence[Planned], most: int = MOST_RUNS_IN_JOB) -> Iterator[Job]:
    """Runs in jobs of one program each; where several are trained together, no job breaks them apart."""
    for key, group in plan.groups(tuple(runs)).items():
        together = plan.together(group[0])
        size = max(together, most - most % together)
        for start in range(0, len(group), size):
            yield Job(key, plan.specs(group[start : start + size]), together, plan.enough(group[0]))
