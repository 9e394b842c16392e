"""Running a study: workers are started until all runs are done or have failed too often.

What workers do stands in `cycletime.studies.running.worker`. Here is who looks after them: starts as many as there is
work for, tells what they say, starts others for those that die, and notes which runs they died over.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import uuid4

from cycletime.errors import MachineError, RunError
from cycletime.runs.files import disk_errors
from cycletime.studies.executors.executor import Executor
from cycletime.studies.plan.plan import Plan, Planned
from cycletime.studies.running.diary import DiaryReader, Event, diary_file, stop_file
from cycletime.studies.running.lease import sweep_leases
from cycletime.studies.store.folder import State, StudyFolder

LOOK_S = 0.5
"""How often to look what workers say."""
OTHERS_S = 2.0
"""How often to look whether others have finished the runs that they hold."""
MOST_SILENT = 5
"""If so many workers in a row end without having begun a run, it is not the runs."""


class Watcher(Protocol):
    """Who wants to know how a study goes."""

    def begin(self, plan: Plan, states: Mapping[str, State]) -> None:
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
    names = [planned.name for planned in plan.runs]
    with disk_errors(folder.workers):
        folder.workers.mkdir(exist_ok=True)
    sweep_leases(folder.leases)
    states = folder.states(names)
    folder.clean([name for name, state in states.items() if state == "done"])
    if watcher:
        watcher.begin(plan, states)
    done = {name for name, state in states.items() if state == "done"}
    crew = _Crew(folder, executor, watcher.update if watcher else lambda event: None, told=done)
    try:
        while not stop():
            states = folder.states(names)
            crew.tell_done(states)
            left = [planned for planned in plan.runs if states[planned.name] not in ("done", "failed")]
            if not left:
                break
            free = [planned for planned in left if states[planned.name] != "running"]
            if free:
                crew.work(plan, free, stop)
            else:
                time.sleep(OTHERS_S)
        crew.leave()
    finally:
        crew.close()
        if watcher:
            watcher.end()
    folder.store.tidy()
    states = folder.states(names)
    crew.tell_done(states)
    return Counter(states.values())


@dataclass
class _Hand:
    """A worker, and what it has in hand."""

    diary: DiaryReader
    begun: dict[str, int | None] = field(default_factory=dict)
    """The runs that are being trained, and where each began or went on, in environment steps."""
    has_spoken: bool = False
    """Whether it has begun a run."""
    has_left: bool = False
    """Whether it went in order."""

    def note(self, told: Mapping[str, Any]) -> Mapping[str, int | None]:
        """Take down what it says; where it begins anew after it was killed, the runs that it had in hand then."""
        self.has_left = "left" in told
        if "worker" in told:
            lost, self.begun = self.begun, {}
            return lost
        if "name" in told:
            self.has_spoken, name = True, told["name"]
            if "outcome" in told:
                self.begun.pop(name, None)
            elif self.begun.get(name) is None:
                self.begun[name] = told.get("env_steps")
        return {}


@dataclass
class _Crew:
    """The workers of a command."""

    folder: StudyFolder
    executor: Executor
    tell: Callable[[Event], None]
    command: str = field(default_factory=lambda: f"cycletime-{uuid4().hex[:12]}")
    hands: dict[str, _Hand] = field(default_factory=dict)
    """By worker."""
    told: set[str] = field(default_factory=set)
    """Runs of which it is known that they are done."""
    silent: int = 0
    """Workers in a row that ended and had not begun a run."""
    is_stopping: bool = False
    """Whether they were asked to leave."""

    def work(self, plan: Plan, free: list[Planned], stop: Callable[[], bool]) -> None:
        """Have workers until they find nothing more to do."""
        for name in self.executor.found(self.folder.path):
            self._recall(name)
        self._start(plan.turns(free, self.executor.workers) - len(self.hands))
        while self.hands:
            if stop() and not self.is_stopping:
                self._ask_to_stop()
            ended = self.executor.ended(LOOK_S)
            self._listen()
            for name, why in ended.items():
                self._end(name, why)
            if ended and not self.is_stopping:
                states = self.folder.states(planned.name for planned in plan.runs)
                free = [planned for planned in plan.runs if states[planned.name] in ("pending", "stopped")]
                room = self.executor.workers - len(self.hands)
                self._start(min(room, plan.turns(free, self.executor.workers)))

    def _start(self, count: int) -> None:
        if count <= 0:
            return
        for name in self.executor.start(self.folder.path, self.command, count, self.folder.study.device):
            self._know(name)

    def _know(self, name: str) -> None:
        self.hands[name] = _Hand(DiaryReader(diary_file(self.folder.workers, name)))

    def _recall(self, name: str) -> None:
        """Know a worker that an earlier command has started; what it said until now was heard then."""
        if name not in self.hands:
            self._know(name)
            for told in self.hands[name].diary.lines():
                self.hands[name].note(told)

    def _listen(self) -> None:
        for hand in self.hands.values():
            for told in hand.diary.lines():
                self._hear(hand, told)

    def _hear(self, hand: _Hand, told: Mapping[str, Any]) -> None:
        if "machine" in told:
            raise MachineError(told["machine"])  # others would meet the same
        self._mourn(hand.note(told), "its worker died")
        if "name" in told:
            self.silent = 0
            self._pass_on(Event(told["name"], told.get("env_steps"), told.get("outcome"), told.get("error")))

    def _pass_on(self, event: Event) -> None:
        if event.outcome == "done":
            if event.name in self.told:
                return
            self.told.add(event.name)
        self.tell(event)

    def tell_done(self, states: Mapping[str, State]) -> None:
        """Tell of runs that somebody else has finished."""
        for name, state in states.items():
            if state == "done":
                self._pass_on(Event(name, outcome="done"))

    def _end(self, name: str, why: str) -> None:
        """A worker has ended, in order or not."""
        hand = self.hands.pop(name)
        for told in hand.diary.lines():
            self._hear(hand, told)
        if not why or hand.has_left:
            return
        self._mourn(hand.begun, why)
        if not hand.has_spoken and not self.is_stopping:
            self.silent += 1
            if self.silent >= MOST_SILENT:
                raise RunError(
                    f"{MOST_SILENT} workers in a row ended without a word, the last one so: {why}. What they printed "
                    f"says more; every machine must have cycletime, reach {self.folder.path} and have memory enough."
                )

    def _mourn(self, begun: Mapping[str, int | None], why: str) -> None:
        """A worker died: note the runs that it had in hand, so that one which kills everyone is found."""
        if not begun:
            return
        done = self.folder.store.refresh()
        lost = {name: at for name, at in begun.items() if name not in done}
        for name, begun_at in lost.items():
            failures = self.folder.failures(name)
            failures.add_death(why, begun_at, among=len(lost))
            if failures.is_hopeless:
                self.tell(Event(name, outcome="failed", error=why))

    def _ask_to_stop(self) -> None:
        self.is_stopping = True
        with suppress(OSError):  # on a full disk they leave by themselves
            for name in self.hands:
                stop_file(self.folder.workers, name).touch()
        self.executor.stop(self.folder.path)

    def leave(self) -> None:
        """Remove what workers have written."""
        for path in self.folder.workers.glob(f"{self.command}*"):
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let whoever is left save and go."""
        if self.hands:
            self._ask_to_stop()
        self.executor.close()
