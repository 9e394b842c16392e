"""SAC's runs as the kernel has them: layout, description, initial state, what was learned, limits and expected time.

kernel/sac/layout.cuh, and the launch in kernel/sac.cu, say the same in C++.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from math import ceil, prod
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cycletime.agents import SACAgent
from cycletime.agents.networks import AdamState, Network
from cycletime.agents.sac import Critics, SACState
from cycletime.cuda import layout
from cycletime.cuda.kernels import SAC
from cycletime.cuda.layout import ACTIONS, INPUTS, OBSERVATION, POSITION_WORDS, AgentSizes, KeptNetwork, Kernel, State
from cycletime.training.spec import RunSpec

UNITS, SAMPLES, WARPS, OUTPUTS = 256, 256, 8, 4
"""Sizes that the kernel was made for."""
ONE, ACTION = 9, 10
"""Where the inputs of a network that are no observation lie: the one of the biases, and the actions."""
POLICY, CRITIC, TARGET, NETWORKS = 0, 1, 3, 5
"""Networks of a run; the second critic and target follow the first."""
UPDATE_S, ACTING_S = 700e-6, 20e-6
"""Of a gradient step, and of an agent step by itself, on an H200 with all its multiprocessors busy."""
_ONLY = {"hidden": (UNITS, UNITS), "minibatch": SAMPLES, "temperature": "log_alpha", "acts": "after_learning"}

RUN = np.dtype(
    [
        *((name, np.int32) for name in ("task", "cycle_steps", "limit_steps", "env_steps", "actions", "capacity")),
        *((name, np.int32) for name in ("period", "gradient_steps", "warmup_steps", "learns_from")),
        *((name, np.int32) for name in ("limit_is_terminal", "metrics_every", "most_episodes")),
        ("seed", np.uint32),
        *((name, np.float32) for name in ("discount", "learning_rate", "target_smoothing", "critic_weight")),
        *((name, np.float32) for name in ("target_entropy", "env_dt_s")),
        ("state", np.uint64),
        ("replay", np.uint64),
        ("unused", np.int32, 8),
    ]
)

ROW = np.dtype(
    [
        ("observation", np.float32, OBSERVATION),
        ("one", np.float32),
        ("action", np.float32, ACTIONS),
        ("next_observation", np.float32, OBSERVATION),
        ("reward", np.float32),
        ("goes_on", np.float32),
        ("unused", np.float32),
    ]
)

METRICS = ("critics_loss", "policy_loss", "entropy", "alpha", "action_value")
REPORT = np.dtype([("agent_steps", np.int32), *((name, np.float32) for name in METRICS), ("unused", np.float32, 2)])
_SHAPES = {
    "second": (UNITS, UNITS),
    "first": (INPUTS, UNITS),
    "second_bias": (UNITS,),
    "last": (UNITS, OUTPUTS),
    "last_bias": (OUTPUTS,),
}
"""The numbers of one network, in the order in which they are kept."""
NUMBERS = sum(map(prod, _SHAPES.values()))
STATE_WORDS = POSITION_WORDS + 11 * NUMBERS
"""A run's state: its position, weights of all networks, then means and squares of the three that learn."""

_MATRIX, _FIRST_MATRIX = UNITS * UNITS // 2, INPUTS * UNITS // 2
SCRATCH_WORDS = NETWORKS * (_MATRIX + _FIRST_MATRIX) + 3 * _MATRIX + 2 * 4 * 32 * WARPS + (1 + OUTPUTS) * WARPS * UNITS


def network_of(state: NDArray[np.float32], network: int, kept: int = 0) -> KeptNetwork:
    """A copy of a network's numbers in a run's state, matrices by row; weights, means (kept = 1) or squares (2)."""
    found = layout.network_parts(state, _begin(network, kept), _SHAPES)
    second, first = (np.empty(_SHAPES[name], np.float32) for name in ("second", "first"))
    second[_second_order()], first[_first_order()] = found["second"].ravel(), found["first"].ravel()
    return {**found, "second": second, "first": first}


def set_network(state: NDArray[np.float32], network: int, numbers: dict[str, NDArray[Any]]) -> None:
    ordered = {**numbers, "second": numbers["second"][_second_order()], "first": numbers["first"][_first_order()]}
    for name, part in layout.network_parts(state, _begin(network, kept=0), _SHAPES).items():
        part[:] = np.reshape(ordered[name], part.shape)


def _begin(network: int, kept: int) -> int:
    place = network if kept == 0 else NETWORKS + 3 * (kept - 1) + network
    return POSITION_WORDS + place * NUMBERS


@cache
def _second_order() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row and column of each kept number of the second layer's matrix; kernel/sac/memory.cuh's SecondPlace."""
    half, warp, down, beside, lane, i = np.indices((2, WARPS, 4, 8, 32, 4)).reshape(6, -1)
    rows = warp % 4 * 64 + down * 16 + lane // 4 + i // 2 * 8
    return rows, half * 128 + warp // 4 * 64 + beside * 8 + lane % 4 * 2 + i % 2


@cache
def _first_order() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same of the first layer's; FirstPlace."""
    quarter, warp, lane, i = np.indices((4, WARPS, 32, 4)).reshape(4, -1)
    return lane // 4 + i // 2 * 8, quarter * 64 + warp * 8 + lane % 4 * 2 + i % 2


def describe_run(spec: RunSpec) -> NDArray[Any]:
    """A run, one record of `RUN`; where its state and replay are is not known yet."""
    world, agent = layout.timed_task_of(spec), agent_of(spec)
    entropy = -float(world.task.action_size) if agent.target_entropy is None else agent.target_entropy
    return layout.describe(
        RUN,
        spec,
        agent,
        capacity=replay_capacity(spec),
        most_episodes=world.most_episodes(agent.period),
        target_entropy=entropy,
    )


def agent_of(spec: RunSpec) -> SACAgent:
    assert isinstance(spec.agent, SACAgent), "others are for another kernel"
    return spec.agent


def replay_capacity(spec: RunSpec) -> int:
    """The rows of a run's replay: no more than it can fill, with its last learning period."""
    world, agent = layout.timed_task_of(spec), agent_of(spec)
    # Episodes end with a short cycle where their length is no multiple of it, so that there are a few steps more.
    full_cycles = ceil(spec.env_steps / world.cycle_steps)
    return min(agent.replay_capacity, full_cycles + world.most_episodes(full_cycles) + agent.period)


def initial_state(spec: RunSpec) -> State:
    return _initial_state(layout.sizes_of(spec), spec.seed).copy()


def initial_state_of(psi: SACState) -> State:
    state = layout.blank_state(STATE_WORDS)
    sizes = len(psi.policy[0].weight), len(psi.policy[-1].bias) // 2
    set_network(state, POLICY, _numbers(psi.policy, *_policy_places(*sizes)))
    for index, (critic, target) in enumerate(zip(psi.critics, psi.targets, strict=True)):
        set_network(state, CRITIC + index, _numbers(critic, *_critic_places(*sizes)))
        set_network(state, TARGET + index, _numbers(target, *_critic_places(*sizes)))
    layout.position_of(state)["temperature"][0] = float(psi.temperature)
    return state


def agent_state_of(state: State, spec: RunSpec) -> SACState:
    sizes, position = layout.sizes_of(spec), layout.position_of(state)
    taken = jnp.asarray(int(position["updates"]), jnp.int32)
    policies = [layout.layers_of(network_of(state, POLICY, kept), *_policy_places(*sizes), ONE) for kept in range(3)]

    def pair(first: int, kept: int = 0) -> Critics:
        places = _critic_places(*sizes)
        return Critics(*(layout.layers_of(network_of(state, first + i, kept), *places, ONE) for i in range(2)))

    critics, targets = [pair(CRITIC, kept) for kept in range(3)], pair(TARGET)
    temperature = [jnp.asarray(each) for each in position["temperature"]]
    return SACState(
        policy=policies[0],
        policy_optimizer=AdamState(taken, *policies[1:]),
        critics=critics[0],
        critics_optimizer=AdamState(taken, *critics[1:]),
        targets=targets,
        temperature=temperature[0],
        temperature_optimizer=AdamState(taken, *temperature[1:]),
        acting=None,
    )


@lru_cache(maxsize=64)
def _initial_state(sizes: AgentSizes, seed: int) -> State:
    return initial_state_of(layout.initial_agent(SACAgent(), seed, sizes))


def _numbers(network: Network, inputs: Sequence[int], outputs: Sequence[int]) -> KeptNetwork:
    """A network with its inputs and outputs at the places that the kernel has for them."""
    kept = {name: np.zeros(shape, np.float32) for name, shape in _SHAPES.items()}
    layout.fill_layers(kept, network, inputs, outputs, ONE)
    return kept


def _policy_places(observations: int, actions: int) -> tuple[list[int], list[int]]:
    """Of a policy's inputs and outputs: means come first, and log sigmas after the places of two."""
    return list(range(observations)), [*range(actions), *range(OUTPUTS // 2, OUTPUTS // 2 + actions)]


def _critic_places(observations: int, actions: int) -> tuple[list[int], list[int]]:
    return [*range(observations), *range(ACTION, ACTION + actions)], [0]


def refusal(agent: SACAgent) -> str | None:
    for name, only in _ONLY.items():
        if (given := getattr(agent, name)) != only:
            return f"{name} is {given!r}: the engine cuda trains SAC with {only!r} only."
    return None


def expected_s(spec: RunSpec) -> float:
    agent = agent_of(spec)
    return layout.expected_updates(spec) * (agent.gradient_steps * UPDATE_S + agent.period * ACTING_S)


SAC_KERNEL = Kernel(
    file=SAC,
    report=REPORT,
    metrics=METRICS,
    state_words=STATE_WORDS,
    describe_run=describe_run,
    initial_state=initial_state,
    agent_state_of=agent_state_of,
    expected_s=expected_s,
    most_rows=lambda runs: 0,
    scratch_words=lambda most_rows: SCRATCH_WORDS,
    slices_s=(0.5, 2.0, 4.0),
    surplus=1.1,
    most_records=4096,
    replay_words=ROW.itemsize // 4,
)
