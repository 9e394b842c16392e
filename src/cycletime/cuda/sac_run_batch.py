"""SAC's runs on the kernel: slices of a few seconds, in which a queue of runs is trained, until all are finished.

Runs come to the device when it is their turn, stay there from slice to slice, and leave when they are finished.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.agents.sac import SACState
from cycletime.cuda.kernels import SAC, kernel_digest
from cycletime.cuda.layout import Status, position_of
from cycletime.cuda.ppo import State, checked_state, report_interval, timed_task_of
from cycletime.cuda.run_batch import episodes_of, longest_first
from cycletime.cuda.sac import METRICS, ROW, STATE_WORDS, agent_state_of, describe_run, expected_s, initial_states
from cycletime.cuda.sac_device import DeviceRun, RunResult, SACDevice, Slice, find_sac_device
from cycletime.errors import NoGpuError, RunError
from cycletime.training.engine import Arrays, Chunk, ClosedFormInfo
from cycletime.training.spec import RunSpec

SLICES_S = (0.5, 2.0, 4.0)
"""How long the first slices take, so that progress shows soon; all further ones are like the last."""
MOST_RECORDS, MOST_REPORTS = 4096, 512
"""Room for the episodes and the reports of a run in one slice; a run without room waits for the next."""
_SURPLUS = 1.1
"""How much more work a slice has than it takes by the expected times, so that no multiprocessor is out of work."""
_USED = 0.9
"""The share of the free memory that runs may take."""
_STATE, _REPLAY = "state", "replay"


class SACRunBatch:
    """Runs that are trained together, of any tasks, cycle times and rates that the kernel takes."""

    def __init__(
        self,
        specs: Sequence[RunSpec],
        device: SACDevice | None = None,
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
        self.device = device or find_sac_device()
        self.specs, self.slices_s, self.most_periods = tuple(specs), tuple(slices_s), most_periods
        memory = self.device.memory
        card = {**memory.about, "device": memory.name, "kernel": kernel_digest(SAC)[:12]}
        self.settings = tuple(ClosedFormInfo(spec, card, report_interval(spec)) for spec in self.specs)
        self.runs = [describe_run(spec) for spec in self.specs]
        self.expected_s = [expected_s(spec) for spec in self.specs]
        self.dropped: set[int] = set()

    def chunks(self, starts: Mapping[int, Arrays | None]) -> Iterator[Mapping[int, Chunk | RunError]]:
        """Train runs, each from its start or from the arrays of a moment."""
        kept, wrong = self._kept(starts)
        if wrong:
            yield wrong
        waiting = sorted(starts.keys() - wrong.keys(), key=lambda run: (run not in kept, -self.expected_s[run], run))
        line = _Queue(waiting, kept, {run: self.expected_s[run] for run in waiting})
        for time_s in chain(self.slices_s[:-1], repeat(self.slices_s[-1])):
            line.leave(self.dropped)
            self._enter(line, time_s)
            if not line.there:
                return
            chunks = self._slice(line, time_s)
            yield {run: chunk for run, chunk in chunks.items() if run not in self.dropped}
            line.leave({run for run, chunk in chunks.items() if chunk.is_last})

    def drop(self, run: int) -> None:
        """Go on without a run."""
        self.dropped.add(run)

    def close(self) -> None:
        """There is nothing to wait for."""

    def _enter(self, line: _Queue, time_s: float) -> None:
        """Bring as many runs to the device as it has work for in the time, and room."""
        taken_s = sum(min(line.left_s[run], time_s) for run in line.there)
        room_s = _SURPLUS * self.device.memory.blocks * time_s - taken_s
        while line.waiting and (room_s > 0 or not line.there) and self._has_room(line):
            run = line.waiting.pop(0)
            line.there[run] = self._placed(run, line.kept.pop(run, None))
            room_s -= min(line.left_s[run], time_s)

    def _slice(self, line: _Queue, time_s: float) -> dict[int, Chunk]:
        """Train the runs that are there, the longest first; what became of those that were taken."""
        queue = longest_first({run: line.left_s[run] for run in line.there})
        chunks = {}
        for run, told in zip(queue, self._train(queue, line, time_s), strict=True):
            chunk = self._chunk(run, line.there[run], told)
            if chunk.agent_steps > line.agent_steps.get(run, 0):
                chunks[run], line.agent_steps[run] = chunk, chunk.agent_steps
                line.left_s[run] = self.expected_s[run] * (1 - chunk.env_steps / self.specs[run].env_steps)
        return chunks

    def _train(self, queue: Sequence[int], line: _Queue, time_s: float) -> list[RunResult]:
        records = max(min(MOST_RECORDS, _most_records(self.specs[run])) for run in queue)
        most = max(int(self.runs[run]["most_episodes"]) for run in queue)
        residents = [line.there[run] for run in queue]
        return self.device.train(Slice(residents, records + most, MOST_REPORTS, time_s, self.most_periods))

    def _has_room(self, line: _Queue) -> bool:
        """Whether the next run fits into the device's memory beside the others."""
        needed = STATE_WORDS * 4 + int(self.runs[line.waiting[0]]["capacity"]) * ROW.itemsize
        free = self.device.memory.free_bytes
        if needed <= _USED * free:
            return True
        if line.there:
            return False
        raise NoGpuError(
            f"{self.device.memory.name} has {free / 2**20:,.0f} MiB free, and a run needs {needed / 2**20:,.0f} MiB: "
            "end what else computes there, or give a smaller replay_capacity."
        )

    def _placed(self, run: int, kept: tuple[State, NDArray[np.float32]] | None) -> DeviceRun:
        return self.device.place(self.runs[run], *(kept or initial_states([self.specs[run]])))

    def _chunk(self, run: int, resident: DeviceRun, told: RunResult) -> Chunk:
        position, budget = told.position, self.specs[run].env_steps
        metrics: dict[str, NDArray[Any]] = {name: told.reports[name] for name in METRICS}
        return Chunk(
            env_steps=min(int(position["ended_env_steps"]) + int(position["world_steps"]), budget),
            agent_steps=int(position["agent_steps"]),
            episodes=episodes_of(position, told.records).up_to(budget),
            metrics={**metrics, "agent_steps": told.reports["agent_steps"].astype(np.int64)},
            moment=_Snapshot(self.device, resident, self.specs[run]),
            exact=True,
            is_last=int(position["status"]) == Status.FINISHED,
        )

    def _kept(
        self, starts: Mapping[int, Arrays | None]
    ) -> tuple[dict[int, tuple[State, NDArray[np.float32]]], dict[int, RunError]]:
        """States and replays of runs that have begun, and what is wrong with others'."""
        kept, wrong = {}, {}
        for run, arrays in starts.items():
            if arrays is not None:
                try:
                    state = checked_state(arrays.get(_STATE), STATE_WORDS)
                    kept[run] = state, _checked_rows(arrays.get(_REPLAY), state, int(self.runs[run]["capacity"]))
                except RunError as error:
                    wrong[run] = error
        return kept, wrong


@dataclass
class _Queue:
    """Runs that are not finished."""

    waiting: list[int]
    """Those that are not on the device: first what has begun, and then the longest first."""
    kept: dict[int, tuple[State, NDArray[np.float32]]]
    """Of those that wait and have begun, the states and replays."""
    left_s: dict[int, float]
    """About how long each has to be trained."""
    there: dict[int, DeviceRun] = field(default_factory=dict)
    """Those on the device."""
    agent_steps: dict[int, int] = field(default_factory=dict)
    """Where those are that were told of: others on the device were not taken in a slice."""

    def leave(self, runs: set[int]) -> None:
        """Go on without some."""
        self.there = {run: each for run, each in self.there.items() if run not in runs}
        self.waiting = [run for run in self.waiting if run not in runs]


@dataclass(frozen=True)
class _Snapshot:
    """Where a run is; fetched from the device where it is asked for."""

    device: SACDevice
    resident: DeviceRun
    spec: RunSpec

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of its state, as whole numbers, since not all of its words are floating-point numbers; and its replay."""
        stored = int(position_of(self._state)["agent_steps"])
        return {_STATE: self._state.view(np.int32), _REPLAY: self.device.rows(self.resident, stored)}

    def psi(self) -> SACState:
        """What was learned."""
        return agent_state_of(self._state, self.spec)

    @cached_property
    def _state(self) -> State:
        return self.device.state(self.resident)


def _checked_rows(rows: NDArray[Any] | None, state: State, capacity: int) -> NDArray[np.float32]:
    """The replay that a checkpoint holds."""
    shape = (min(int(position_of(state)["agent_steps"]), capacity), ROW.itemsize // 4)
    if rows is None or rows.dtype != np.float32 or rows.shape != shape:
        kind = "nothing" if rows is None else f"{rows.dtype} of the shape {rows.shape}"
        raise RunError(f"The checkpoint has {kind} as the replay: it must be float32, {shape}.")
    return rows


def _most_records(spec: RunSpec) -> int:
    """No more episodes than this end in a run."""
    world = timed_task_of(spec)
    return world.most_episodes(-(-spec.env_steps // world.cycle_steps))
