"""The workers of a command: who is there, what each has in hand, what they say, and which runs they died over."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from cycletime.errors import MachineError, RunError
from cycletime.studies.executors.executor import Executor
from cycletime.studies.plan.plan import Plan, Planned
from cycletime.studies.running.diary import DiaryReader, Event, diary_file, stop_file
from cycletime.studies.running.lease import signs_of_life
from cycletime.studies.store.folder import State, StudyFolder

LOOK_S = 0.5
"""How often to look what workers say."""
SIGNS_S = 10.0
"""How often to look when workers have touched their leases."""
LEAVE_S = 60.0
"""Who is asked to stop, and gives no sign of life for so long, is ended."""
MOST_PASSED_S = 30.0
"""More does not count between two looks: so long this process was frozen itself."""
MOST_SILENT = 5
"""If so many workers in a row end without having begun a run, it is not the runs."""


@dataclass
class Hand:
    """A worker, and what it has in hand."""

    diary: DiaryReader
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
class Crew:
    """The workers of a command."""

    folder: StudyFolder
    executor: Executor
    tell: Callable[[Event], None]
    command: str = field(default_factory=lambda: f"cycletime-{uuid4().hex[:12]}")
    hands: dict[str, Hand] = field(default_factory=dict)
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

    def work(self, plan: Plan, free: list[Planned], stop: Callable[[], bool]) -> None:
        """Have workers until they find nothing more to do."""
        self.looked_s = self.clock()
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
            self._end_silent()
            if ended and not self.is_stopping:
                states = self.folder.states(planned.name for planned in plan.runs)
                free = [planned for planned in plan.runs if states[planned.name] in ("pending", "stopped")]
                room = self.executor.workers - len(self.hands)
                self._start(min(room, plan.turns(free, self.executor.workers)))

    def _end_silent(self) -> None:
        """End workers that give no sign of life: frozen, or so stuck that no thread of theirs runs."""
        now = self.clock()
        passed_s, self.looked_s = min(now - self.looked_s, MOST_PASSED_S), now
        if now >= self.signs_due_s:
            self.signs_due_s = now + SIGNS_S
            for worker, when_s in signs_of_life(self.folder.leases).items():
                if worker in self.hands:
                    self.hands[worker].touched(when_s)
        for name, hand in self.hands.items():
            hand.silent_s += passed_s
            if not hand.died and hand.silent_s > self._most_silent_s(hand):
                hand.died = f"its worker gave no sign of life for {hand.silent_s:.0f} s"
                self.executor.kill(name)

    def _most_silent_s(self, hand: Hand) -> float:
        """How long a worker may be silent: only one that trains has leases to touch."""
        if self.is_stopping:
            return LEAVE_S
        if hand.begun:
            return self.folder.stale_s + SIGNS_S
        return float(self.folder.study.patience) if hand.has_come else math.inf

    def _start(self, count: int) -> None:
        if count <= 0:
            return
        for name in self.executor.start(self.folder.path, self.command, count, self.folder.study.device):
            self._know(name)

    def _know(self, name: str) -> None:
        self.hands[name] = Hand(DiaryReader(diary_file(self.folder.workers, name)))

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

    def _hear(self, hand: Hand, told: Mapping[str, Any]) -> None:
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
        is_amid = bool(hand.begun) and not self.is_stopping  # an environment can end its process with status 0
        why = hand.died or why or ("its worker ended before it was done" if is_amid else "")
        if not why or hand.has_left or (self.is_stopping and hand.died):
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
            elif len(lost) == 1:
                self.tell(Event(name, error=why))

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
