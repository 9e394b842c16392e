"""Running a study: workers are started and supervised until all runs are done or have failed too often."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import uuid4

from cycletime.errors import MachineError, RunError
from cycletime.studies.events import EventReader, RunEvent, events_file, stop_file
from cycletime.studies.executors import Executor
from cycletime.studies.leases import last_heartbeats, lease_holders, sweep_leases
from cycletime.studies.plan import Plan, PlannedRun
from cycletime.studies.study_folder import RunState, StudyFolder

POLL_S = 0.5
"""How often to look what workers say."""
HEARTBEAT_CHECK_S = 10.0
"""How often to look when workers have touched their leases."""
STOP_TIMEOUT_S = 60.0
"""Who is asked to stop, and gives no sign of life for so long, is ended."""
MAX_ELAPSED_S = 30.0
"""More does not count between two looks: so long this process was frozen itself."""
MAX_SILENT_WORKERS = 5
"""If so many workers in a row end without having begun a run, it is not the runs."""


@dataclass
class WorkerState:
    """A worker, and what it has in hand."""

    diary: EventReader
    begun: dict[str, int | None] = field(default_factory=dict)
    """The runs that are being trained, and where each began or went on, in environment steps."""
    has_come: bool = False
    """Whether it has said anything; it may wait for its turn at a scheduler."""
    has_spoken: bool = False
    """Whether it has begun a run."""
    has_left: bool = False
    """Whether it went in order."""
    died: str = ""
    """Why it ended itself, or was ended."""
    touched_s: float = 0.0
    """When it last touched a lease, by the file system's clock."""
    silent_s: float = 0.0
    """How long it has given no sign of life."""

    def note(self, told: Mapping[str, Any]) -> Mapping[str, int | None]:
        """Take down what it says; where it begins anew after it was killed, the runs that it had in hand then."""
        self.has_left, self.silent_s, self.has_come = "left" in told, 0.0, True
        self.died = told.get("died", self.died)
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

    def touched(self, when_s: float) -> None:
        """Take down when it last touched a lease."""
        if when_s != self.touched_s:
            self.touched_s, self.silent_s = when_s, 0.0


@dataclass
class WorkerPool:
    """The workers of a command."""

    folder: StudyFolder
    executor: Executor
    tell: Callable[[RunEvent], None]
    command: str = field(default_factory=lambda: f"cycletime-{uuid4().hex[:12]}")
    hands: dict[str, WorkerState] = field(default_factory=dict)
    """By worker."""
    told: set[str] = field(default_factory=set)
    """Runs of which it is known that they are done."""
    silent: int = 0
    """Workers in a row that ended and had not begun a run."""
    is_stopping: bool = False
    """Whether they were asked to leave."""
    clock: Callable[[], float] = lambda: time.monotonic()
    looked_s: float = 0.0
    """When it was last looked who is silent."""
    signs_due_s: float = 0.0
    """When it is looked again who has touched a lease."""

    def work(self, plan: Plan, free: list[PlannedRun], stop: Callable[[], bool]) -> None:
        """Have workers until they find nothing more to do."""
        self.looked_s = self.clock()
        for name in self.executor.found(self.folder.path):
            self._recall(name)
        self._start(plan.turns(free, self.executor.workers) - len(self.hands))
        while self.hands:
            if stop() and not self.is_stopping:
                self._ask_to_stop()
            ended = self.executor.ended(POLL_S)
            self._listen()
            for name, why in ended.items():
                self._end(name, why)
            self._end_silent()
            if ended and not self.is_stopping:
                states = self.folder.states(planned.name for planned in plan.runs)
                free = [planned for planned in plan.runs if states[planned.name] in ("pending", "stopped")]
                room = self.executor.workers - len(self.hands)
                self._start(min(room, plan.turns(free, self.executor.workers)))

    def _end_silent(self) -> None:
        """End workers that give no sign of life: frozen, or so stuck that no thread of theirs runs."""
        now = self.clock()
        passed_s, self.looked_s = min(now - self.looked_s, MAX_ELAPSED_S), now
        if now >= self.signs_due_s:
            self.signs_due_s = now + HEARTBEAT_CHECK_S
            for worker, when_s in last_heartbeats(self.folder.leases).items():
                if worker in self.hands:
                    self.hands[worker].touched(when_s)
        for name, hand in self.hands.items():
            hand.silent_s += passed_s
            if not hand.died and hand.silent_s > self._most_silent_s(hand):
                hand.died = f"its worker gave no sign of life for {hand.silent_s:.0f} s"
                self.executor.kill(name)

    def _most_silent_s(self, hand: WorkerState) -> float:
        """How long a worker may be silent: only one that trains has leases to touch."""
        if self.is_stopping:
            return STOP_TIMEOUT_S
        if hand.begun:
            return self.folder.stale_s + HEARTBEAT_CHECK_S
        return float(self.folder.study.patience) if hand.has_come else math.inf

    def _start(self, count: int) -> None:
        if count <= 0:
            return
        for name in self.executor.start(self.folder.path, self.command, count, self.folder.study.device):
            self._know(name)

    def _know(self, name: str) -> None:
        self.hands[name] = WorkerState(EventReader(events_file(self.folder.workers, name)))

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

    def _hear(self, hand: WorkerState, told: Mapping[str, Any]) -> None:
        if "machine" in told:
            raise MachineError(told["machine"])  # others would meet the same
        self._mourn(hand.note(told), "its worker died")
        if "name" in told:
            self.silent = 0
            self._pass_on(RunEvent(told["name"], told.get("env_steps"), told.get("outcome"), told.get("error")))

    def _pass_on(self, event: RunEvent) -> None:
        if event.outcome == "done":
            if event.name in self.told:
                return
            self.told.add(event.name)
        self.tell(event)

    def tell_done(self, states: Mapping[str, RunState]) -> None:
        """Tell of runs that somebody else has finished."""
        for name, state in states.items():
            if state == "done":
                self._pass_on(RunEvent(name, outcome="done"))

    def _end(self, name: str, why: str) -> None:
        """A worker has ended, in order or not."""
        hand = self.hands.pop(name)
        for told in hand.diary.lines():
            self._hear(hand, told)
        is_amid = bool(hand.begun) and not self.is_stopping  # an environment can end its process with status 0
        why = hand.died or why or ("its worker ended before it was done" if is_amid else "")
        if not why or hand.has_left or (self.is_stopping and hand.died):
            return
        self._mourn(hand.begun, why)
        if not hand.has_spoken and not self.is_stopping:
            self.silent += 1
            if self.silent >= MAX_SILENT_WORKERS:
                raise RunError(
                    f"{MAX_SILENT_WORKERS} workers in a row ended without a word, the last one so: {why}. "
                    f"What they printed "
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
                self.tell(RunEvent(name, outcome="failed", error=why))
            elif len(lost) == 1:
                self.tell(RunEvent(name, error=why))

    def _ask_to_stop(self) -> None:
        self.is_stopping, self.signs_due_s = True, 0.0
        for hand in self.hands.values():
            hand.silent_s = 0.0
        with suppress(OSError):  # on a full disk they leave by themselves
            for name in self.hands:
                stop_file(self.folder.workers, name).touch()
        self.executor.stop(self.folder.path)

    def leave(self) -> None:
        """Remove what workers have written."""
        for path in self.folder.workers.glob(f"{self.command}*"):
            path.unlink(missing_ok=True)

    def close(self, wait_s: float) -> None:
        """Let whoever is left save and go, in so many seconds."""
        if self.hands:
            self._ask_to_stop()
        self.executor.close(wait_s)


OTHERS_POLL_S = 2.0
"""How often to look whether others have finished the runs that they hold."""


class StudyObserver(Protocol):
    """Who wants to know how a study goes."""

    def begin(self, plan: Plan, states: Mapping[str, RunState]) -> None:
        """It begins, or goes on: how far each run is, by name."""

    def update(self, event: RunEvent) -> None:
        """Something happened to a run."""

    def wait(self, holders: Mapping[str, str]) -> None:
        """Nothing is left but what others train: by run, who does."""

    def end(self) -> None:
        """It is over, for now."""


def run_study(
    folder: StudyFolder,
    executor: Executor,
    *,
    watcher: StudyObserver | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Counter[RunState]:
    """Run what is not done yet; how many runs are in which state in the end.

    Others may run the same study at the same time: runs that they hold are left to them, and waited for.
    """
    plan = Plan.of(folder.study)
    names = [planned.name for planned in plan.runs]
    sweep_leases(folder.leases)
    states = folder.states(names)
    done = {name for name, state in states.items() if state == "done"}
    if _unfinished(states):  # where nothing is, it can be looked at by those who may not write
        folder.open_to_workers()
    folder.clean(done)
    if watcher:
        watcher.begin(plan, states)
    crew = WorkerPool(folder, executor, watcher.update if watcher else lambda event: None, told=done)
    wait_s = STOP_TIMEOUT_S
    try:
        while not stop():
            states = folder.states(names)
            crew.tell_done(states)
            if not (left := _unfinished(states)):
                break
            free = [planned for planned in plan.runs if planned.name in left and states[planned.name] != "running"]
            if free:
                crew.work(plan, free, stop)
            else:
                if watcher:
                    watcher.wait({name: who for name, who in lease_holders(folder.leases).items() if name in states})
                time.sleep(OTHERS_POLL_S)
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


def _unfinished(states: Mapping[str, RunState]) -> set[str]:
    """The runs that may still be done."""
    return {name for name, state in states.items() if state not in ("done", "failed")}
