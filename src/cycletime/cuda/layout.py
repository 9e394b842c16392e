"""Data shared by host and both kernels: positions and episodes of runs, the launch argument, a kernel's description.

kernel/layout.cuh says the same in C++. What only one kernel has stands in ppo.py and sac.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from math import ceil, prod
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cycletime.agents import PPOAgent, SACAgent
from cycletime.agents.agent import AgentState
from cycletime.agents.networks import Layer, Network
from cycletime.duration import cycle_steps
from cycletime.training.algorithm_1 import TimedTask, initial_agent_state
from cycletime.training.machine import keep_compiled_programs
from cycletime.training.random_numbers import seed_key
from cycletime.training.spec import RunSpec
from cycletime.training.worlds import ClosedFormWorld

State: TypeAlias = NDArray[np.float32]
"""A run's state in words: its position, then the numbers of its networks."""
KeptNetwork: TypeAlias = dict[str, NDArray[np.float32]]
OBSERVATION, ACTIONS, INPUTS = 9, 2, 16
"""Sizes that the kernels were made for; a task with one action leaves the second alone."""
TASKS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "reacher": (0.47e-6, 0.094e-6),
        "double-pendulum": (0.56e-6, 0.103e-6),
        "pendulum": (0.45e-6, 0.045e-6),
        "cart-pole": (0.34e-6, 0.227e-6),
        "mountain-car": (0.66e-6, 0.046e-6),
        "acrobot": (0.61e-6, 0.236e-6),
    }
)
"""By name, in the order of their numbers in kernel/tasks.cuh: the seconds of an agent step, and of each environment
step in it, on an H200 with all its multiprocessors busy, as `benchmarks/kernel.py speed` finds them."""
REPORTS = 300
"""About so many updates of a run are reported; one costs about 3 % of a learning period."""

POSITION = np.dtype(
    [
        *((name, np.int32) for name in ("status", "period", "agent_steps", "ended_env_steps", "episode")),
        ("episode_steps", np.int32),
        ("episode_return", np.float32),
        ("world_steps", np.int32),
        ("world", np.float32, 12),
        ("mean_decay", np.float64),
        ("square_decay", np.float64),
        ("records", np.int32),
        ("reports", np.int32),
        ("updates", np.int32),
        ("temperature", np.float32, 3),
        ("unused", np.int32, 34),
    ]
)
POSITION_WORDS = POSITION.itemsize // 4
RECORD = np.dtype([("episode_return", np.float32), ("env_steps", np.int32), ("agent_steps", np.int32)])
_LAUNCH = {
    **dict.fromkeys(("runs", "queue"), np.uint64),
    "queued": np.int32,
    **dict.fromkeys(("tickets", "states", "records"), np.uint64),
    "most_records": np.int32,
    "reports": np.uint64,
    "most_reports": np.int32,
    "scratch": np.uint64,
    "most_rows": np.int32,
    "time_ns": np.int64,
    "most_periods": np.int32,
}


class Status(IntEnum):
    FRESH = 0
    GOING = 1
    FINISHED = 2


@dataclass(frozen=True, eq=False)
class Kernel:
    file: str
    report: np.dtype[Any]
    metrics: tuple[str, ...]
    state_words: int
    describe_run: Callable[[RunSpec], NDArray[Any]]
    initial_state: Callable[[RunSpec], State]
    """The state of a run before its first step; its weights are those of the compiled loop for the same seed."""
    agent_state_of: Callable[[State, RunSpec], AgentState]
    expected_s: Callable[[RunSpec], float]
    """About how long a whole run takes in a thread block of an H200, with all its multiprocessors busy."""
    most_rows: Callable[[NDArray[Any]], int]
    """From the records of runs, the rows of a batch in a block's own memory; 0 where batches are elsewhere."""
    scratch_words: Callable[[int], int]
    slices_s: tuple[float, ...]
    """How long the first slices take, so that progress shows soon; all further ones are like the last."""
    surplus: float
    """How much more work a slice has than it takes by the expected times, so that no multiprocessor is out of work."""
    most_records: int
    """Room for the episodes of a run in one slice, beside those of a learning period; a run without room waits."""
    replay_words: int = 0
    """Of a row of a run's replay; 0 where runs have none."""

    @property
    def keeps_runs_on_device(self) -> bool:
        """Whether runs stay on the device between slices, as those with a replay do; others travel with each."""
        return self.replay_words > 0

    @property
    def launch(self) -> np.dtype[Any]:
        """The kernel's argument; addresses are of the device's memory."""
        without = ("queue", "states", "most_rows") if self.keeps_runs_on_device else ()
        return np.dtype([each for each in _LAUNCH.items() if each[0] not in without], align=True)


def position_of(state: State) -> Any:  # noqa: ANN401 - one record, whose fields can be set
    return state[:POSITION_WORDS].view(POSITION)[0]


def env_steps_of(position: Any) -> int:  # noqa: ANN401 - one record
    return int(position["ended_env_steps"]) + int(position["world_steps"])


def timed_task_of(spec: RunSpec) -> TimedTask:
    assert isinstance(spec.world, ClosedFormWorld), "the engine refuses other worlds"
    return TimedTask(spec.world.task, cycle_steps(spec.dt, spec.world.env_dt))


class AgentSizes(NamedTuple):
    """The numbers that an agent sees and gives; the kernel's further ones stay zero."""

    observations: int
    actions: int


def sizes_of(spec: RunSpec) -> AgentSizes:
    task = timed_task_of(spec).task
    return AgentSizes(task.observation_size, task.action_size)


def expected_updates(spec: RunSpec) -> int:
    return ceil(spec.env_steps / (timed_task_of(spec).cycle_steps * spec.agent.period))


def report_interval(spec: RunSpec) -> int:
    return ceil(expected_updates(spec) / REPORTS)


def describe(dtype: np.dtype[Any], spec: RunSpec, agent: PPOAgent | SACAgent, **own: float) -> NDArray[Any]:
    """A run's description for a kernel, one record: what its agent has by these names, what both have, and its own."""
    world, record = timed_task_of(spec), np.zeros((), dtype)
    of_agent = {name: getattr(agent, name) for name in dtype.fields or () if hasattr(agent, name)}
    common = {
        "task": list(TASKS).index(spec.world.name),
        "cycle_steps": world.cycle_steps,
        "limit_steps": world.task.limit_steps,
        "env_steps": spec.env_steps,
        "actions": world.task.action_size,
        "limit_is_terminal": agent.time_limit == "terminal",
        "metrics_every": report_interval(spec),
        "seed": spec.seed,
        "env_dt_s": float(world.task.env_dt),
    }
    for name, number in (of_agent | common | own).items():
        record[name] = number
    return record


def blank_state(words: int) -> State:
    state = np.zeros(words, np.float32)
    position = position_of(state)
    position["status"] = Status.FRESH
    position["mean_decay"] = position["square_decay"] = 1.0
    return state


def initial_agent(agent: PPOAgent | SACAgent, seed: int, sizes: AgentSizes) -> Any:  # noqa: ANN401 - its own state
    keep_compiled_programs()
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        return jax.device_get(initial_agent_state(agent, seed_key(seed), *sizes))


def network_parts(state: NDArray[np.float32], begin: int, shapes: Mapping[str, tuple[int, ...]]) -> KeptNetwork:
    """The numbers of a network that begin at a place, views in their shapes."""
    ends = np.cumsum([begin, *map(prod, shapes.values())])
    return {
        name: state[first:end].reshape(shape)
        for (name, shape), (first, end) in zip(shapes.items(), pairwise(ends), strict=True)
    }


def fill_layers(
    kept: KeptNetwork, network: Network, inputs: Sequence[int], outputs: Sequence[int], bias_row: int
) -> None:
    """Write a network to where the kernel has its inputs, its outputs and the first layer's bias."""
    first, second, last = ((np.asarray(layer.weight), np.asarray(layer.bias)) for layer in network)
    kept["first"][inputs], kept["first"][bias_row] = first
    kept["second"][:], kept["second_bias"][:] = second
    kept["last"][:, outputs], kept["last_bias"][outputs] = last


def layers_of(kept: KeptNetwork, inputs: Sequence[int], outputs: Sequence[int], bias_row: int) -> Network:
    layers = (
        (kept["first"][inputs], kept["first"][bias_row]),
        (kept["second"], kept["second_bias"]),
        (kept["last"][:, outputs], kept["last_bias"][outputs]),
    )
    return tuple(Layer(jnp.asarray(weight), jnp.asarray(bias)) for weight, bias in layers)
