"""Runs on the kernel: slices of a few seconds, in which a queue of runs is trained, until all reached their budget.

Between two slices finished runs leave the queue and others enter. The next slice is begun before the last one is told
of, so that the card computes while files are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.agents.ppo import PPOState
from cycletime.cuda.device import Device, Slice, SliceResult, find_device
from cycletime.cuda.kernels import PPO, kernel_digest
from cycletime.cuda.layout import Status, position_of, rows_for
from cycletime.cuda.ppo import (
    AgentSizes,
    State,
    agent_state_of,
    checked_state,
    describe_run,
    expected_s,
    initial_states,
    report_interval,
    sizes_of,
    timed_task_of,
)
from cycletime.errors import RunError
from cycletime.training.engine import Arrays, Chunk, ClosedFormInfo
from cycletime.training.learning_curve import Episodes
from cycletime.training.spec import RunSpec

SLICES_S = (0.3, 1.0, 2.0, 4.0)
"""How long the first slices take, so that progress shows soon; all further ones are like the last, since the card waits
for some 40 ms between two."""
MOST_QUEUED = 2048
"""Runs in one slice, at most."""
MOST_RECORDS, MOST_REPORTS = 16_384, 512
"""Room for the episodes and the reports of a run in one slice; a run without room waits for the next."""
_SURPLUS = 1.25
"""How much more work a slice has than it takes by the expected times, so that no multiprocessor is out of work."""
_STATE = "state"
_METRICS = ("policy_loss", "value_loss", "entropy", "kl", "clip_fraction")


class CudaRunBatch:
    """Runs that are trained together, of any tasks, cycle times and hyper-parameters that the kernel takes."""

    def __init__(
        self,
        specs: Sequence[RunSpec],
        device: Device | None = None,
        *,
        slices_s: Sequence[float] = SLICES_S,
        most_periods: int = 0,
    ) -> None:
        """Describe them.

        Args:
            specs: The runs.
            device: Where they are trained, by default the GPU that is here.
            slices_s: How long the first slices take, and all further ones.
            most_periods: The learnings of a run in one slice, at most; 0 for any number.
        """
        self.device = device or find_device()
        self.specs, self.slices_s, self.most_periods = tuple(specs), tuple(slices_s), most_periods
        card = {**self.device.about, "device": self.device.name, "kernel": kernel_digest(PPO)[:12]}
        self.settings = tuple(ClosedFormInfo(spec, card, report_interval(spec)) for spec in self.specs)
        self.runs = np.stack([describe_run(spec) for spec in self.specs])
        self.expected_s = [expected_s(spec) for spec in self.specs]
        self.dropped: set[int] = set()
        self._computes = False

    def chunks(self, starts: Mapping[int, Arrays | None]) -> Iterator[Mapping[int, Chunk | RunError]]:
        """Train runs, each from its start or from the arrays of a moment."""
        begun, wrong = _resumed_states(starts)
        if wrong:
            yield wrong
        new = starts.keys() - begun.keys() - wrong.keys()
        line = _Queue(begun, longest_first({run: self.expected_s[run] for run in new}))
        try:
            queue = self._begin(line)
            while queue:
                done, told = self._finish(), {}
                for index, run in enumerate(queue):
                    before, after = line.begun[run], done.states[index].copy()
                    line.begun[run] = after
                    if _agent_steps(after) > _agent_steps(before):
                        told[run] = self._chunk(run, after, done.records[index], done.reports[index])
                line.leave({run for run, chunk in told.items() if chunk.is_last})
                failure: Exception | None = None
                try:
                    queue = self._begin(line)
                except Exception as error:  # to be told after what was computed, lest finished runs be lost
                    failure = error
                yield {run: chunk for run, chunk in told.items() if run not in self.dropped}
                if failure:
                    raise failure
        finally:
            self.close()

    def drop(self, run: int) -> None:
        """Go on without a run."""
        self.dropped.add(run)

    def close(self) -> None:
        """Wait for what is computed, and forget it."""
        if self._computes:
            self._finish()

    def _begin(self, line: _Queue) -> list[int]:
        """Begin a slice; the runs in it, none where none are left."""
        line.leave(self.dropped)
        time_s = self.slices_s[min(line.slices, len(self.slices_s) - 1)]
        queue = self._queue(line, time_s)
        if queue:
            line.slices += 1
            self.device.begin(self._work(queue, line, time_s))
            self._computes = True
        return queue

    def _finish(self) -> SliceResult:
        self._computes = False
        return self.device.finish()

    def _queue(self, line: _Queue, time_s: float) -> list[int]:
        """Runs that are begun already, and as many further ones as the time allows for; the longest first."""
        left_s = {run: self.expected_s[run] * _left(self.specs[run], state) for run, state in line.begun.items()}
        left_s = {run: left_s[run] for run in longest_first(left_s)[:MOST_QUEUED]}
        room_s = _SURPLUS * self.device.blocks * time_s - sum(min(each, time_s) for each in left_s.values())
        entering: list[int] = []
        while line.waiting and room_s > 0 and len(left_s) < MOST_QUEUED:
            run = line.waiting.pop(0)
            entering.append(run)
            left_s[run] = self.expected_s[run]
            room_s -= min(left_s[run], time_s)
        line.begun |= dict(zip(entering, initial_states([self.specs[run] for run in entering]), strict=True))
        return longest_first(left_s)

    def _work(self, queue: list[int], line: _Queue, time_s: float) -> Slice:
        runs = self.runs[queue]
        rows = max(rows_for(int(run["batch"]), int(run["most_episodes"])) for run in runs)
        return Slice(
            runs=runs,
            states=np.stack([line.begun[run] for run in queue]),
            most_records=max(_records_for(self.specs[run], self.runs[run]) for run in queue),
            most_reports=MOST_REPORTS,
            most_rows=rows + -rows % 8,
            time_s=time_s,
            most_periods=self.most_periods,
        )

    def _chunk(self, run: int, state: State, records: NDArray[Any], reports: NDArray[Any]) -> Chunk:
        position, budget = position_of(state), self.specs[run].env_steps
        metrics: dict[str, NDArray[Any]] = {name: reports[name] for name in _METRICS}
        return Chunk(
            env_steps=min(_env_steps(state), budget),
            agent_steps=int(position["agent_steps"]),
            episodes=episodes_of(position, records).up_to(budget),
            metrics={**metrics, "agent_steps": reports["agent_steps"].astype(np.int64)},
            moment=_Snapshot(state, sizes_of(self.specs[run])),
            exact=True,
            is_last=int(position["status"]) == Status.FINISHED,
        )


@dataclass
class _Queue:
    """Runs that are not finished."""

    begun: dict[int, State]
    """Where those are that have begun."""
    waiting: list[int]
    """Those that have not, the longest first."""
    slices: int = 0
    """The slices so far."""

    def leave(self, runs: set[int]) -> None:
        """Go on without some."""
        self.begun = {run: state for run, state in self.begun.items() if run not in runs}
        self.waiting = [run for run in self.waiting if run not in runs]


@dataclass(frozen=True)
class _Snapshot:
    """Where a run is."""

    state: State
    sizes: AgentSizes

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of its state, as whole numbers, since not all of its words are floating-point numbers."""
        return {_STATE: self.state.view(np.int32)}

    def psi(self) -> PPOState:
        """What was learned."""
        return agent_state_of(self.state, self.sizes)


def _resumed_states(starts: Mapping[int, Arrays | None]) -> tuple[dict[int, State], dict[int, RunError]]:
    """The states of runs that have begun, and what is wrong with others'."""
    states, wrong = {}, {}
    for run, arrays in starts.items():
        if arrays is not None:
            try:
                states[run] = checked_state(arrays.get(_STATE))
            except RunError as error:
                wrong[run] = error
    return states, wrong


def longest_first(left_s: Mapping[int, float]) -> list[int]:
    """Runs by the time that they have left, so that no long one is left alone at the end."""
    return sorted(left_s, key=lambda run: (-left_s[run], run))


def _records_for(spec: RunSpec, run: Any) -> int:  # noqa: ANN401 - one record
    """Room for the episodes of a run: of all of it, where they are few, and at least of one learning period."""
    world, most = timed_task_of(spec), int(run["most_episodes"])
    return max(most, min(MOST_RECORDS, world.most_episodes(round(spec.env_steps / world.cycle_steps)) + most))


def _left(spec: RunSpec, state: State) -> float:
    """The part of a run that is left."""
    return max(0.0, 1 - _env_steps(state) / spec.env_steps)


def _env_steps(state: State) -> int:
    position = position_of(state)
    return int(position["ended_env_steps"]) + int(position["world_steps"])


def _agent_steps(state: State) -> int:
    return int(position_of(state)["agent_steps"])


def episodes_of(position: Any, records: NDArray[Any]) -> Episodes:  # noqa: ANN401 - one record
    """The episodes of a slice, which ended before the run came to where it is."""
    ended_agent_steps = int(position["agent_steps"]) - int(position["episode_steps"])
    return Episodes(
        env_steps=_until(int(position["ended_env_steps"]), records["env_steps"]),
        agent_steps=_until(ended_agent_steps, records["agent_steps"]),
        returns=records["episode_return"].astype(np.float64),
        length_steps=records["env_steps"].astype(np.int64),
    )


def _until(last: int, lengths: NDArray[Any]) -> NDArray[np.int64]:
    """Where stretches end that follow each other, given where the last of them ends."""
    ends = np.cumsum(lengths, dtype=np.int64)
    shifted: NDArray[np.int64] = ends + (last - (ends[-1] if len(ends) else 0))
    return shifted
