"""Claiming the next runs of a worker: free runs of one program, at most a batch, each under a lease."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

from cycletime.studies.leases import Lease, hold_lease
from cycletime.studies.plan import Plan, PlannedRun
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.process import HEARTBEAT
from cycletime.training.spec import RunSpec


@dataclass(frozen=True)
class ClaimedRun:
    spec: RunSpec
    lease: Lease

    def check(self) -> None:
        """Raise if another worker has the lease by now; a call is a sign of progress."""
        HEARTBEAT.tick()
        self.lease.check()


@dataclass
class RunClaimer:
    folder: StudyFolder
    plan: Plan
    worker: str
    workers: int
    on_loss: Callable[[], object]
    program: str | None = None
    free: dict[str, deque[PlannedRun]] = field(default_factory=dict)

    def claim(self, stack: ExitStack) -> list[ClaimedRun]:
        """Claim the next runs, until the stack is closed; none if others have all that is left."""
        return self._claim_free_runs(stack) or (self._find_free_runs() and self._claim_free_runs(stack)) or []

    def _find_free_runs(self) -> bool:
        states = self.folder.states(planned.name for planned in self.plan.runs)
        others = Counter(self.plan.programs[run.cell] for run in self.plan.runs if states[run.name] == "running")
        groups = self.plan.groups(self.folder.runs_left(self.plan, states, is_unclaimed=True))
        # Programs that few others work on come first, and among these those of which much is left.
        self.free = {each: deque(groups[each]) for each in sorted(groups, key=lambda each: others[each])}
        return bool(self.free)

    def _claim_free_runs(self, stack: ExitStack) -> list[ClaimedRun]:
        """Claim runs of the compiled program, or else of the first of which some are free."""
        for program in sorted(self.free, key=lambda each: each != self.program):
            while self.free[program]:
                if claimed := self._lease_runs(self.free[program], stack):
                    self.program = program
                    return claimed
        return []

    def _lease_runs(self, waiting: deque[PlannedRun], stack: ExitStack) -> list[ClaimedRun]:
        """Take leases on the first of some runs, without those that others have claimed or finished since."""
        claimed: list[ClaimedRun] = []
        most = self.plan.batch_size(waiting, self.workers)
        while waiting and len(claimed) < most:
            limit = self.folder.failures(waiting[0].name).max_batch_size() or most
            if claimed and len(claimed) + 1 > limit:
                break
            planned = waiting.popleft()
            lease = stack.enter_context(
                hold_lease(self.folder.leases, planned.name, self.worker, self.on_loss, self.folder.stale_s)
            )
            if lease is not None:
                claimed.append(ClaimedRun(self.plan.spec(planned), lease))
                most = min(most, limit)
        self.folder.store.refresh()
        left = [run for run in claimed if run.spec.name not in self.folder.store]
        return [run for run in left if not self.folder.failures(run.spec.name).is_final]
