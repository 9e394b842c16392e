"""Runs on a kernel: slices of a few seconds, in which a queue of runs is trained, until all reached their budget.

Where runs travel with each slice, the next one is begun before the chunks of the last one are given, so that the card
computes while files are written; runs that stay on the device are read from there first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, repeat
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cycletime.cuda import layout
from cycletime.cuda.device import Device, DeviceRun, RunResult, Slice, find_device
from cycletime.cuda.kernels import kernel_digest
from cycletime.cuda.layout import Kernel, State, Status, position_of
from cycletime.cuda.ppo import PPO_KERNEL
from cycletime.cuda.sac import SAC_KERNEL
from cycletime.errors import NoGpuError, RunError
from cycletime.training.checkpoints import tree_from_arrays
from cycletime.training.engine import Arrays, Chunk, RunBatch, closed_form_info
from cycletime.training.learning_curve import Episodes
from cycletime.training.spec import RunSpec

KERNELS: Mapping[str, Kernel] = MappingProxyType({"ppo": PPO_KERNEL, "sac": SAC_KERNEL})
MOST_QUEUED = 2048
MOST_REPORTS = 512
"""Room for the reports of a run in one slice; a run without room waits for the next."""
_USED = 0.9
"""The share of the free memory that runs may take which stay on the device."""
_STATE, _REPLAY = "state", "replay"


class CudaRunBatch(RunBatch):
    def __init__(
        self,
        specs: Sequence[RunSpec],
        device: Device | None = None,
        *,
        slices_s: Sequence[float] | None = None,
        most_periods: int = 0,
    ) -> None:
        """Describe the runs to the kernel; `slices_s` and `most_periods` are as in `Kernel` and `Slice`."""
        self.device = device or find_device(KERNELS[specs[0].algorithm])
        self.kernel, card = self.device.kernel, self.device.card
        self.specs, self.most_periods = tuple(specs), most_periods
        self.slices_s = tuple(slices_s or self.kernel.slices_s)
        about = {**card.about, "device": card.name, "kernel": kernel_digest(self.kernel.file)[:12]}
        self.env_infos = tuple(closed_form_info(spec, about, layout.report_interval(spec)) for spec in self.specs)
        self.records = [self.kernel.describe_run(spec) for spec in self.specs]
        self.expected_s = [self.kernel.expected_s(spec) for spec in self.specs]
        self.dropped: set[int] = set()

    def chunks(self, starts: Mapping[int, Arrays | None]) -> Iterator[Mapping[int, Chunk | RunError]]:
        resumed, wrong = self._resumed(starts)
        if wrong:
            yield wrong
        left_s = {run: self.expected_s[run] for run in starts.keys() - wrong.keys()}
        left_s |= {run: self._left_s(run, position_of(state)) for run, (state, _) in resumed.items()}
        waiting = sorted(left_s, key=lambda run: (run not in resumed, -left_s[run], run))
        queue = _Queue(waiting, resumed, left_s)
        times_s = chain(self.slices_s, repeat(self.slices_s[-1]))
        overlaps = not self.kernel.keeps_runs_on_device
        with closing(self):
            order = self._begin(queue, next(times_s))
            while order:
                chunks = self._finish(queue, order)
                failure: Exception | None = None
                if overlaps:
                    try:
                        order = self._begin(queue, next(times_s))
                    except Exception as error:  # raised after what was computed is given, lest finished runs be lost
                        failure = error
                yield {run: chunk for run, chunk in chunks.items() if run not in self.dropped}
                if failure:
                    raise failure
                if not overlaps:
                    order = self._begin(queue, next(times_s))

    def drop(self, run: int) -> None:
        self.dropped.add(run)

    def close(self) -> None:
        """Wait for a slice that is computing, and drop its results."""
        if self.device.is_computing:
            self.device.finish()

    def _resumed(self, starts: Mapping[int, Arrays | None]) -> tuple[dict[int, _Resumed], dict[int, RunError]]:
        """Per run with arrays, its state and replay to resume from, or the error in them."""
        resumed, wrong = {}, {}
        for run, arrays in starts.items():
            if arrays is not None:
                try:
                    words = tree_from_arrays({_STATE: np.zeros(self.kernel.state_words, np.int32)}, arrays)[_STATE]
                    state, replay = np.array(words).view(np.float32), None
                    if self.kernel.keeps_runs_on_device:
                        stored = min(int(position_of(state)["agent_steps"]), int(self.records[run]["capacity"]))
                        rows = np.zeros((stored, self.kernel.replay_words), np.float32)
                        replay = tree_from_arrays({_REPLAY: rows}, arrays)[_REPLAY]
                    resumed[run] = state, replay
                except RunError as error:
                    wrong[run] = error
        return resumed, wrong

    def _left_s(self, run: int, position: Any) -> float:  # noqa: ANN401 - one record
        return self.expected_s[run] * max(0.0, 1 - layout.env_steps_of(position) / self.specs[run].env_steps)

    def _begin(self, queue: _Queue, time_s: float) -> list[int]:
        """Begin a slice; the runs in it, the longest first, none where none are left."""
        queue.leave(self.dropped)
        self._enter(queue, time_s)
        order = sorted(queue.entered, key=lambda run: (-queue.left_s[run], run))  # so that no long one is left alone
        if order:
            runs = [queue.entered[run] for run in order]
            records = max(self._most_records(run) for run in order)
            self.device.begin(Slice(runs, records, MOST_REPORTS, time_s, self.most_periods))
        return order

    def _enter(self, queue: _Queue, time_s: float) -> None:
        """Admit waiting runs while the device has time in the slice and memory for them."""
        taken_s = sum(min(queue.left_s[run], time_s) for run in queue.entered)
        room_s = self.kernel.surplus * self.device.card.blocks * time_s - taken_s
        while queue.waiting and len(queue.entered) < MOST_QUEUED and (room_s > 0 or not queue.entered):
            if not self._has_room(queue):
                break
            run = queue.waiting.pop(0)
            begun = queue.resumed.pop(run, None)
            state, replay = begun or (self.kernel.initial_state(self.specs[run]), None)
            queue.entered[run] = self.device.place(self.records[run], state, replay)
            queue.agent_steps[run] = int(position_of(state)["agent_steps"])
            room_s -= min(queue.left_s[run], time_s)

    def _has_room(self, queue: _Queue) -> bool:
        """Whether the next run fits into the device's memory beside the others."""
        if not self.kernel.keeps_runs_on_device:
            return True
        rows = int(self.records[queue.waiting[0]]["capacity"])
        needed = 4 * (self.kernel.state_words + rows * self.kernel.replay_words)
        free = self.device.card.free_bytes
        if needed <= _USED * free:
            return True
        if queue.entered:
            return False
        remedy = "end what else computes there, or give a smaller replay_capacity"
        sizes = f"{free / 2**20:,.0f} MiB free, and a run needs {needed / 2**20:,.0f} MiB"
        raise NoGpuError(f"{self.device.card.name} has {sizes}: {remedy}.")

    def _most_records(self, run: int) -> int:
        """Room for the episodes of a run: of all of it, where they are few, and at least of one learning period."""
        world = layout.timed_task_of(self.specs[run])
        episodes = world.most_episodes(-(-self.specs[run].env_steps // world.cycle_steps))
        return min(self.kernel.most_records, episodes) + int(self.records[run]["most_episodes"])

    def _finish(self, queue: _Queue, order: Sequence[int]) -> dict[int, Chunk]:
        """Chunks of the runs that went on; those that are finished leave the queue."""
        chunks = {}
        for run, result in zip(order, self.device.finish(), strict=True):
            queue.entered[run] = result.run
            agent_steps = int(result.position["agent_steps"])
            if agent_steps > queue.agent_steps[run]:
                chunks[run], queue.agent_steps[run] = self._chunk(run, result), agent_steps
                queue.left_s[run] = self._left_s(run, result.position)
        queue.leave({run for run, chunk in chunks.items() if chunk.is_last})
        return chunks

    def _chunk(self, run: int, result: RunResult) -> Chunk:
        position, spec = result.position, self.specs[run]
        metrics: dict[str, NDArray[Any]] = {name: result.reports[name] for name in self.kernel.metrics}
        # Fetched on demand where the run stays on the device.
        state = cache(lambda: self.device.state(result.run))

        def arrays() -> dict[str, NDArray[Any]]:
            """Its state, as whole numbers since not all of its words are floating-point, and its replay."""
            found: dict[str, NDArray[Any]] = {_STATE: state().view(np.int32)}
            if result.run.replay is not None:
                found[_REPLAY] = self.device.replay_rows(result.run, int(position["agent_steps"]))
            return found

        return Chunk(
            env_steps=min(layout.env_steps_of(position), spec.env_steps),
            agent_steps=int(position["agent_steps"]),
            episodes=episodes_of(position, result.records).up_to(spec.env_steps),
            metrics={**metrics, "agent_steps": result.reports["agent_steps"].astype(np.int64)},
            arrays=arrays,
            agent_state=lambda: self.kernel.agent_state_of(state(), spec),
            exact=True,
            is_last=int(position["status"]) == Status.FINISHED,
        )


_Resumed: TypeAlias = tuple[State, NDArray[np.float32] | None]
"""A run's state and the rows of its replay."""


@dataclass
class _Queue:
    waiting: list[int]
    """Those that have not entered: first what has begun before, and then the longest first."""
    resumed: dict[int, _Resumed]
    """Of those that wait, what a checkpoint has of them."""
    left_s: dict[int, float]
    entered: dict[int, DeviceRun] = field(default_factory=dict)
    agent_steps: dict[int, int] = field(default_factory=dict)
    """Where those are: some are not taken in a slice."""

    def leave(self, runs: set[int]) -> None:
        self.entered = {run: each for run, each in self.entered.items() if run not in runs}
        self.waiting = [run for run in self.waiting if run not in runs]


def episodes_of(position: Any, records: NDArray[Any]) -> Episodes:  # noqa: ANN401 - one record
    """The episodes of a slice, which ended before the run came to where it is."""
    ended_agent_steps = int(position["agent_steps"]) - int(position["episode_steps"])

    def ends(last: int, lengths: NDArray[Any]) -> NDArray[np.int64]:
        """Where stretches end that follow each other, given where the last of them ends."""
        total = np.cumsum(lengths, dtype=np.int64)
        return np.asarray(total + (last - total[-1:].sum()))

    return Episodes(
        env_steps=ends(int(position["ended_env_steps"]), records["env_steps"]),
        agent_steps=ends(ended_agent_steps, records["agent_steps"]),
        returns=records["episode_return"].astype(np.float64),
        length_steps=records["env_steps"].astype(np.int64),
    )
