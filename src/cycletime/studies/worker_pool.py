"""Running a study: an executor starts workers, supervised until all runs are done or have failed too often."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from cycletime.errors import MachineError, RunError
from cycletime.studies.events import Event, EventReader, StudyObserver, events_file, stop_file
from cycletime.studies.leases import last_heartbeats, lease_holders, sweep_leases
from cycletime.studies.plan import Plan, PlannedRun
from cycletime.studies.study_folder import RunState, StudyFolder

POLL_S = 0.5
HEARTBEAT_CHECK_S = 10.0
STOP_TIMEOUT_S = 60.0
"""A worker that is asked to stop, and gives no sign of life for so long, is killed."""
MAX_ELAPSED_S = 30.0
"""More does not count between two checks: so long this process was frozen itself."""
MAX_SILENT_WORKERS = 5
"""If so many workers in a row end without having begun a run, it is not the runs."""
OTHERS_POLL_S = 2.0


class Executor(Protocol):
    workers: int
    """About how many workers it runs at a time."""

    def find_workers(self, study: Path) -> Iterable[str]:
        """Workers that an earlier command has started and that still run; by default none outlives its command."""
        return ()

    def start(self, study: Path, command: str, count: int, device: str) -> list[str]:
        """Start workers of a command; their names, each COMMAND... and -N."""

    def poll(self, wait_s: float) -> Mapping[str, str]:
        """Wait a little; the workers that have ended since the last call, each with a reason or ''."""

    def stop(self, study: Path) -> None:
        """Ask all workers to save and exit."""

    def kill(self, name: str) -> None:
        """Kill a worker that does not answer; `poll` reports it in time."""

    def close(self, wait_s: float) -> None:
        """Release what is left; workers have so many seconds to save and exit. By default they go by themselves."""
        return


def run_study(
    folder: StudyFolder,
    executor: Executor,
    *,
    observers: Sequence[StudyObserver] = (),
    stop: Callable[[], bool] = lambda: False,
) -> Counter[RunState]:
    """Run what is not done yet, and wait for runs that others hold; how many runs are in which state in the end."""
    plan = Plan.of(folder.study)
    names = [planned.name for planned in plan.runs]
    sweep_leases(folder.leases)
    states = folder.states(names)
    done = {name for name, state in states.items() if state == "done"}
    if folder.runs_left(plan, states):  # where nothing is, it can be looked at by those who may not write
        folder.make_worker_folders()
    folder.clean(done)
    for observer in observers:
        observer.begin(plan, states)
    pool = WorkerPool(folder, executor, observers, known_done=done)
    wait_s = STOP_TIMEOUT_S
    try:
        while not stop():
            folder.check_in_place()
            states = folder.states(names)
            pool.report_done(states)
            if not folder.runs_left(plan, states):
                break
            if free := folder.runs_left(plan, states, is_unclaimed=True):
                pool.supervise(plan, free, stop)
            else:
                holders = {name: who for name, who in lease_holders(folder.leases).items() if name in states}
                for observer in observers:
                    observer.wait(holders)
                time.sleep(OTHERS_POLL_S)
        for path in folder.workers.glob(f"{pool.command}*"):
            path.unlink(missing_ok=True)
    except KeyboardInterrupt:  # asked to stop twice
        wait_s = 0.0
        raise
    finally:
        pool.close(wait_s)
        for observer in observers:
            observer.end()
    folder.store.tidy()
    states = folder.states(names)
    pool.report_done(states)
    return Counter(states.values())


@dataclass
class WorkerState:
    reader: EventReader
    begun: dict[str, int | None] = field(default_factory=dict)
    """The runs that it trains, and where each began or was resumed, in environment steps."""
    has_started: bool = False
    has_trained: bool = False
    has_left: bool = False
    died: str = ""
    touched_s: float = 0.0
    silent_s: float = 0.0

    def apply(self, event: Event) -> Mapping[str, int | None]:
        """Update the state; where it restarts after it was killed, the runs that it was training then."""
        self.has_left, self.silent_s, self.has_started = event.left is not None, 0.0, True
        self.died = self.died if event.died is None else event.died
        if event.worker is not None:
            lost, self.begun = self.begun, {}
            return lost
        if event.name:
            self.has_trained = True
            if event.outcome is not None:
                self.begun.pop(event.name, None)
            elif self.begun.get(event.name) is None:
                self.begun[event.name] = event.env_steps
        return {}


@dataclass
class WorkerPool:
    folder: StudyFolder
    executor: Executor
    observers: Sequence[StudyObserver]
    command: str = field(default_factory=lambda: f"cycletime-{uuid4().hex[:12]}")
    workers: dict[str, WorkerState] = field(default_factory=dict)
    known_done: set[str] = field(default_factory=set)
    silent_workers: int = 0
    is_stopping: bool = False
    clock: Callable[[], float] = lambda: time.monotonic()
    checked_s: float = 0.0
    heartbeats_due_s: float = 0.0

    def supervise(self, plan: Plan, free: Sequence[PlannedRun], stop: Callable[[], bool]) -> None:
        self.checked_s = self.clock()
        for name in self.executor.find_workers(self.folder.path):
            if name not in self.workers:  # an earlier command's, which passed its events until now on
                worker = self._track(name)
                for event in worker.reader.new_events():
                    worker.apply(event)
        self._start(plan.workers_needed(free, self.executor.workers) - len(self.workers))
        while self.workers:
            if stop() and not self.is_stopping:
                self._request_stop()
            ended = self.executor.poll(POLL_S)
            self.folder.check_in_place()
            for worker in self.workers.values():
                self._read_events(worker)
            for name, reason in ended.items():
                self._worker_ended(name, reason)
            self._kill_silent()
            if ended and not self.is_stopping:
                states = self.folder.states(planned.name for planned in plan.runs)
                free = self.folder.runs_left(plan, states, is_unclaimed=True)
                room = self.executor.workers - len(self.workers)
                self._start(min(room, plan.workers_needed(free, self.executor.workers)))

    def _start(self, count: int) -> None:
        if count <= 0:
            return
        for name in self.executor.start(self.folder.path, self.command, count, self.folder.study.device):
            self._track(name)

    def _track(self, name: str) -> WorkerState:
        self.workers[name] = WorkerState(EventReader(events_file(self.folder.workers, name)))
        return self.workers[name]

    def _read_events(self, worker: WorkerState) -> None:
        for event in worker.reader.new_events():
            if event.machine is not None:
                raise MachineError(event.machine)  # others would meet the same
            self._record_worker_death(worker.apply(event), "its worker died")
            if event.name:
                self.silent_workers = 0
                self._publish(event)

    def _publish(self, event: Event) -> None:
        if event.outcome == "done":
            if event.name in self.known_done:
                return
            self.known_done.add(event.name)
        for observer in self.observers:
            observer.update(event)

    def report_done(self, states: Mapping[str, RunState]) -> None:
        for name, state in states.items():
            if state == "done":
                self._publish(Event(name=name, outcome="done"))

    def _kill_silent(self) -> None:
        """Kill workers that give no sign of life: frozen, or so stuck that no thread of theirs runs."""
        now = self.clock()
        passed_s, self.checked_s = min(now - self.checked_s, MAX_ELAPSED_S), now
        if now >= self.heartbeats_due_s:
            self.heartbeats_due_s = now + HEARTBEAT_CHECK_S
            for name, touched_s in last_heartbeats(self.folder.leases).items():
                if name in self.workers and touched_s != self.workers[name].touched_s:
                    self.workers[name].touched_s, self.workers[name].silent_s = touched_s, 0.0
        for name, worker in self.workers.items():
            worker.silent_s += passed_s
            if not worker.died and worker.silent_s > self._silence_limit_s(worker):
                worker.died = f"its worker gave no sign of life for {worker.silent_s:.0f} s"
                self.executor.kill(name)

    def _silence_limit_s(self, worker: WorkerState) -> float:
        if self.is_stopping:
            return STOP_TIMEOUT_S
        if worker.begun:  # only one that trains has leases to touch
            return self.folder.stale_s + HEARTBEAT_CHECK_S
        return float(self.folder.study.hang_timeout) if worker.has_started else math.inf

    def _worker_ended(self, name: str, reason: str) -> None:
        worker = self.workers.pop(name)
        self._read_events(worker)
        is_amid = bool(worker.begun) and not self.is_stopping  # an environment can end its process with status 0
        reason = worker.died or reason or ("its worker ended before it was done" if is_amid else "")
        if not reason or worker.has_left or (self.is_stopping and worker.died):
            return
        self._record_worker_death(worker.begun, reason)
        if not worker.has_trained and not self.is_stopping:
            self.silent_workers += 1
            if self.silent_workers >= MAX_SILENT_WORKERS:
                needed = f"every machine must have cycletime, reach {self.folder.path} and have memory enough"
                ended = f"{MAX_SILENT_WORKERS} workers in a row ended without a word, the last one so: {reason}"
                raise RunError(f"{ended}. What they printed says more; {needed}.")

    def _record_worker_death(self, begun: Mapping[str, int | None], reason: str) -> None:
        """Note the runs that a dead worker was training, so that one which kills every worker is found."""
        if not begun:
            return
        self.folder.check_in_place()
        done = self.folder.store.refresh()
        lost = {name: at for name, at in begun.items() if name not in done}
        for name, begun_at in lost.items():
            failures = self.folder.failures(name)
            failures.add_death(reason, begun_at, among=len(lost))
            if failures.is_final:
                self._publish(Event(name=name, outcome="failed", error=reason))
            elif len(lost) == 1:
                self._publish(Event(name=name, error=reason))

    def _request_stop(self) -> None:
        self.is_stopping, self.heartbeats_due_s = True, 0.0
        for worker in self.workers.values():
            worker.silent_s = 0.0
        with suppress(OSError):  # on a full disk they exit by themselves
            for name in self.workers:
                stop_file(self.folder.workers, name).touch()
        self.executor.stop(self.folder.path)

    def close(self, wait_s: float) -> None:
        if self.workers:
            self._request_stop()
        self.executor.close(wait_s)
