"""Runs on the kernel without any files: for checks and measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.engines.cuda.describing import State, described, fresh_states, world_of
from cycletime.engines.cuda.device import Device, Done, Work
from cycletime.engines.cuda.layout import BESIDE, INPUTS, ROW, Status, networks_of, position_of, rows_for
from cycletime.loops import Episodes
from cycletime.runs.spec import RunSpec

LONG_S = 3600.0
"""A slice that nothing outlasts."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A run that is finished."""

    spec: RunSpec
    state: State
    records: NDArray[Any]
    reports: NDArray[Any]

    @property
    def bits(self) -> bytes:
        """All that the run gave."""
        return b"".join(each.tobytes() for each in (self.state, self.records, self.reports))

    @property
    def is_sound(self) -> bool:
        """Whether its weights are numbers still."""
        return all(np.isfinite(part).all() for network in networks_of(self.state) for part in network.values())

    @property
    def episodes(self) -> Episodes:
        """Its learning curve."""
        lengths = self.records["env_steps"].astype(np.int64)
        agent_steps = np.cumsum(self.records["agent_steps"], dtype=np.int64)
        returns = self.records["episode_return"].astype(np.float64)
        return Episodes(np.cumsum(lengths), agent_steps, returns, lengths).up_to(self.spec.env_steps)


def work_of(specs: Sequence[RunSpec], states: Sequence[State], time_s: float = LONG_S, most_periods: int = 0) -> Work:
    """Work with room for all that runs of some specs can tell."""
    runs = np.stack([described(spec) for spec in specs])
    rows = max(rows_for(int(run["batch"]), int(run["most_episodes"])) for run in runs)
    return Work(
        runs=runs,
        states=np.stack(states),
        most_records=max(_most_records(spec, int(run["most_episodes"])) for spec, run in zip(specs, runs, strict=True)),
        most_reports=512,
        most_rows=rows + -rows % 8,
        time_s=time_s,
        most_periods=most_periods,
    )


def compute(device: Device, work: Work) -> Done:
    """Do the work, and wait for it."""
    device.begin(work)
    return device.finish()


def last_batch(device: Device, work: Work) -> tuple[NDArray[Any], NDArray[Any]]:
    """The rows of the first block's last batch, and what is kept beside them."""
    words, start = device.left_behind()[0], work.most_rows * INPUTS
    return words[:start].view(ROW), words[start : start + 4 * work.most_rows].view(BESIDE)


def train(device: Device, specs: Sequence[RunSpec], slice_s: float = LONG_S) -> list[Trained]:
    """Train runs to their ends, in their order and in slices of a time; what they are then."""
    states = dict(enumerate(fresh_states(specs)))
    told: dict[int, tuple[list[NDArray[Any]], list[NDArray[Any]]]] = {run: ([], []) for run in states}
    left = list(states)
    while left:
        done = compute(device, work_of([specs[run] for run in left], [states[run] for run in left], slice_s))
        for index, run in enumerate(left):
            states[run] = done.states[index]
            told[run][0].append(done.records[index])
            told[run][1].append(done.reports[index])
        left = [run for run in left if position_of(states[run])["status"] != Status.FINISHED]
    return [Trained(spec, states[run], *map(np.concatenate, told[run])) for run, spec in enumerate(specs)]


def _most_records(spec: RunSpec, in_a_period: int) -> int:
    world = world_of(spec)
    return world.most_episodes(ceil(spec.env_steps / world.cycle_steps)) + in_a_period
