"""PPO's runs as the kernel has them: layout, description, initial state, what was learned, limits and expected time.

kernel/layout.cuh, and the launch in kernel/train.cu, say the same in C++.

    time = agent steps x (a + b k) + gradient steps x (c + d m)

The numbers are those of an H200 with all its multiprocessors busy; on another card their ratios matter more.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cycletime.agents import PPOAgent
from cycletime.agents.networks import SQUARE_DECAY, AdamState, GaussianPolicy, Layer, Network, Parameters
from cycletime.agents.ppo import PPOState
from cycletime.cuda.kernels import PPO
from cycletime.cuda.layout import (
    ACTIONS,
    INPUTS,
    OBSERVATION,
    POSITION_WORDS,
    Kernel,
    State,
    blank_state,
    common_fields,
    expected_updates,
    fill_record,
    position_of,
    timed_task_of,
)
from cycletime.cuda.tasks import TASKS
from cycletime.training.algorithm_1 import initial_agent_state
from cycletime.training.machine import keep_compiled_programs
from cycletime.training.random_numbers import seed_key
from cycletime.training.spec import RunSpec

HIDDEN, LONGEST_SLICE = 64, 512
"""The units of each layer, and the most samples of one gradient step."""
ENDED, TERMINAL = 1 << 30, 1 << 29
"""Flags beside the number of a row's successor."""
UPDATE_S = (3.0e-6, 0.172e-6)
"""Of a gradient step, and of each sample in it: a line near what `benchmarks/kernel.py speed` finds for 12 to 200."""
_ASIDE = 4

RUN = np.dtype(
    [
        *((name, np.int32) for name in ("task", "cycle_steps", "limit_steps", "env_steps", "actions", "batch")),
        *((name, np.int32) for name in ("slice", "epochs", "until_episode_end", "limit_is_terminal")),
        *((name, np.int32) for name in ("ends_with_episode", "metrics_every", "most_episodes")),
        ("seed", np.uint32),
        *((name, np.float32) for name in ("discount", "trace_decay", "learning_rate", "clip", "env_dt_s")),
        ("unused", np.int32, 13),
    ]
)

NETWORK = {
    "first": (OBSERVATION + 1, HIDDEN),
    "second": (HIDDEN, HIDDEN),
    "second_bias": (HIDDEN,),
    "last": (HIDDEN, ACTIONS),
    "last_bias": (ACTIONS,),
    "log_std": (ACTIONS,),
}
"""The numbers of one network, in the order in which they are kept; the first layer's last row is its bias."""
NUMBERS = sum(int(np.prod(shape)) for shape in NETWORK.values())
STATE_WORDS = POSITION_WORDS + 6 * NUMBERS
"""A run's state: its position, then weights, means and squares, each of the policy and of the value."""

REPORT = np.dtype(
    [
        ("agent_steps", np.int32),
        *((name, np.float32) for name in ("policy_loss", "value_loss", "entropy", "kl", "clip_fraction")),
        ("log_std", np.float32, ACTIONS),
    ]
)
ROW = np.dtype(
    [
        ("observation", np.float32, OBSERVATION),
        ("one", np.float32),
        ("action", np.float32, ACTIONS),
        ("advantage", np.float32),
        ("old_log_probability", np.float32),
        ("lambda_return", np.float32),
        ("next", np.int32),
    ]
)
BESIDE = np.dtype([("value", np.float32), ("reward", np.float32), ("old_mean", np.float32, ACTIONS)])

LAUNCH = np.dtype(
    [
        ("runs", np.uint64),
        ("queue", np.uint64),
        ("queued", np.int32),
        ("tickets", np.uint64),
        ("states", np.uint64),
        ("records", np.uint64),
        ("most_records", np.int32),
        ("reports", np.uint64),
        ("most_reports", np.int32),
        ("scratch", np.uint64),
        ("most_rows", np.int32),
        ("time_ns", np.int64),
        ("most_periods", np.int32),
    ],
    align=True,
)
"""The kernel's argument; addresses are of the device's memory."""


class AgentSizes(NamedTuple):
    """The numbers that an agent sees and gives; the kernel's further ones stay zero."""

    observations: int
    actions: int


def describe_run(spec: RunSpec) -> NDArray[Any]:
    """A run, one record of `RUN`."""
    world, agent = timed_task_of(spec), agent_of(spec)
    numbers = common_fields(spec, agent) | {
        "batch": agent.batch,
        "slice": agent.slice_sizes[1],
        "epochs": agent.epochs,
        "until_episode_end": agent.learn_when == "episode_end",
        "ends_with_episode": agent.batch_end == "episode_end",
        "most_episodes": world.most_episodes(world.steps_until_learning(agent)),
        "trace_decay": agent.trace_decay,
        "clip": agent.clip,
    }
    return fill_record(RUN, numbers)


def agent_of(spec: RunSpec) -> PPOAgent:
    """A run's agent."""
    assert isinstance(spec.agent, PPOAgent), "the engine refuses other agents"
    return spec.agent


def sizes_of(spec: RunSpec) -> AgentSizes:
    """Sizes of a run's observations and actions."""
    task = timed_task_of(spec).task
    return AgentSizes(task.observation_size, task.action_size)


def initial_state(spec: RunSpec) -> State:
    """The state that a run begins with."""
    keep_compiled_programs()
    agent = agent_of(spec)
    at_start = PPOAgent(noise_std=agent.noise_std, initial_weights=agent.initial_weights)  # all that weights depend on
    return _initial_state(at_start, spec.seed, sizes_of(spec)).copy()


def agent_state_of(state: State, spec: RunSpec) -> PPOState:
    """The agent's state, from that of the kernel."""
    weights, means, squares = (_parameters(networks_of(state, kept), sizes_of(spec)) for kept in range(3))
    # The kernel keeps beta_2 to the power of the steps taken. In the end that stays at the smallest numbers, after some
    # 700,000 steps, when further ones do not matter.
    taken = round(np.log(float(position_of(state)["square_decay"])) / np.log(SQUARE_DECAY))
    return PPOState(weights, AdamState(jnp.asarray(taken, jnp.int32), means, squares))


def initial_state_of(psi: PPOState) -> State:
    """The kernel's state of a run before its first step, from the agent's."""
    state = blank_state(STATE_WORDS)
    policy, value = networks_of(state)
    _fill(policy, psi.parameters.policy.network)
    _fill(value, psi.parameters.value)
    log_std = np.asarray(psi.parameters.policy.log_std)
    policy["log_std"][: len(log_std)] = log_std
    return state


@lru_cache(maxsize=256)
def _initial_state(agent: PPOAgent, seed: int, sizes: AgentSizes) -> State:
    """Kept, since the runs of a study have seeds in common, and drawing one takes 2 ms in which the card waits."""
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        return initial_state_of(jax.device_get(initial_agent_state(agent, seed_key(seed), *sizes)))


def _fill(kept: dict[str, NDArray[np.float32]], network: Network) -> None:
    first, second, last = ((np.asarray(layer.weight), np.asarray(layer.bias)) for layer in network)
    kept["first"][: len(first[0])], kept["first"][-1] = first
    kept["second"][:], kept["second_bias"][:] = second
    outputs = len(last[1])
    kept["last"][:, :outputs], kept["last_bias"][:outputs] = last


def _parameters(networks: Sequence[dict[str, NDArray[np.float32]]], sizes: AgentSizes) -> Parameters:
    policy, value = networks
    log_std = jnp.asarray(policy["log_std"][: sizes.actions])
    return Parameters(GaussianPolicy(_network(policy, *sizes), log_std), _network(value, sizes.observations, 1))


def _network(kept: dict[str, NDArray[np.float32]], inputs: int, outputs: int) -> Network:
    layers = (
        (kept["first"][:inputs], kept["first"][-1]),
        (kept["second"], kept["second_bias"]),
        (kept["last"][:, :outputs], kept["last_bias"][:outputs]),
    )
    return tuple(Layer(jnp.asarray(weight), jnp.asarray(bias)) for weight, bias in layers)


def scratch_words(most_rows: int) -> int:
    """The words of a block's own memory: rows, what is beside them, two orders, and the second layers' moments."""
    return most_rows * (INPUTS + _ASIDE + 2) + 4 * HIDDEN * HIDDEN


def most_rows(runs: NDArray[Any]) -> int:
    """The rows of a block's own memory, a multiple of 8: the longest batch, its successor's, and last observations."""
    rows = int((runs["batch"] + 1 + runs["most_episodes"]).max())
    return rows + -rows % 8


def networks_of(state: NDArray[np.float32], kept: int = 0) -> tuple[dict[str, NDArray[np.float32]], ...]:
    """Policy and value in a run's state by name, views; their weights, means (kept = 1) or squares (2)."""
    return tuple(_network_at(state, POSITION_WORDS + (2 * kept + index) * NUMBERS) for index in range(2))


def _network_at(state: NDArray[np.float32], begin: int) -> dict[str, NDArray[np.float32]]:
    found = {}
    for name, shape in NETWORK.items():
        size = int(np.prod(shape))
        found[name] = state[begin : begin + size].reshape(shape)
        begin += size
    return found


def expected_s(spec: RunSpec) -> float:
    """Seconds of a whole run."""
    agent = agent_of(spec)
    step, inner = TASKS[spec.world.name].acting_s
    acting_s = agent.batch * (step + inner * timed_task_of(spec).cycle_steps)
    size = agent.slice_sizes[1]
    learning_s = agent.epochs * ceil(agent.batch / size) * (UPDATE_S[0] + UPDATE_S[1] * size)
    return expected_updates(spec) * (acting_s + learning_s)


def refusal(agent: PPOAgent) -> str | None:
    """In a sentence, why the kernel cannot train an agent; None where it can."""
    if agent.hidden != (HIDDEN, HIDDEN):
        return f"hidden is {agent.hidden}: the engine cuda has networks of {(HIDDEN, HIDDEN)} only."
    if agent.period != agent.batch:
        return f"learning_period is {agent.learning_period}: the engine cuda learns once for each batch, {agent.batch}."
    size = agent.slice_sizes[1]
    if size > LONGEST_SLICE:
        return f"Mini-batches have {size} samples: the engine cuda takes {LONGEST_SLICE} at most."
    return None


PPO_KERNEL = Kernel(
    source=PPO,
    report=REPORT,
    metrics=("policy_loss", "value_loss", "entropy", "kl", "clip_fraction"),
    launch=LAUNCH,
    state_words=STATE_WORDS,
    describe_run=describe_run,
    initial_state=initial_state,
    agent_state_of=agent_state_of,
    expected_s=expected_s,
    most_rows=most_rows,
    scratch_words=scratch_words,
    slices_s=(0.3, 1.0, 2.0, 4.0),  # the card waits for some 40 ms between two
    surplus=1.25,
    most_records=16_384,
)
