"""PPO's runs as the kernel has them: layout, description, initial state, what was learned, limits and expected time.

kernel/layout.cuh, and the launch in kernel/train.cu, say the same in C++.

    time = agent steps x (a + b k) + gradient steps x (c + d m)

The numbers are those of an H200 with all its multiprocessors busy; on another card their ratios matter more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import lru_cache
from math import ceil
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cycletime.agents import PPOAgent
from cycletime.agents.networks import SQUARE_DECAY, AdamState, GaussianPolicy, Parameters
from cycletime.agents.ppo import PPOState
from cycletime.cuda import layout
from cycletime.cuda.kernels import PPO
from cycletime.cuda.layout import ACTIONS, INPUTS, OBSERVATION, POSITION_WORDS, AgentSizes, KeptNetwork, Kernel, State
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


def describe_run(spec: RunSpec) -> NDArray[Any]:
    world, agent = layout.timed_task_of(spec), agent_of(spec)
    return layout.describe(
        RUN,
        spec,
        agent,
        slice=agent.slice_sizes[1],
        until_episode_end=agent.learn_when == "episode_end",
        ends_with_episode=agent.batch_end == "episode_end",
        most_episodes=world.most_episodes(world.steps_until_learning(agent)),
    )


def agent_of(spec: RunSpec) -> PPOAgent:
    assert isinstance(spec.agent, PPOAgent), "the engine refuses other agents"
    return spec.agent


def initial_state(spec: RunSpec) -> State:
    agent = agent_of(spec)
    at_start = PPOAgent(noise_std=agent.noise_std, initial_weights=agent.initial_weights)  # all that weights depend on
    return _initial_state(at_start, spec.seed, layout.sizes_of(spec)).copy()


def agent_state_of(state: State, spec: RunSpec) -> PPOState:
    weights, means, squares = (_parameters(networks_of(state, kept), layout.sizes_of(spec)) for kept in range(3))
    # The kernel keeps beta_2 to the power of the steps taken. In the end that stays at the smallest numbers, after some
    # 700,000 steps, when further ones do not matter.
    taken = round(np.log(float(layout.position_of(state)["square_decay"])) / np.log(SQUARE_DECAY))
    return PPOState(weights, AdamState(jnp.asarray(taken, jnp.int32), means, squares))


def initial_state_of(psi: PPOState) -> State:
    state = layout.blank_state(STATE_WORDS)
    policy, value = networks_of(state)
    for kept, network in ((policy, psi.parameters.policy.network), (value, psi.parameters.value)):
        layout.fill_layers(kept, network, range(len(network[0].weight)), range(len(network[-1].bias)), -1)
    log_std = np.asarray(psi.parameters.policy.log_std)
    policy["log_std"][: len(log_std)] = log_std
    return state


@lru_cache(maxsize=256)
def _initial_state(agent: PPOAgent, seed: int, sizes: AgentSizes) -> State:
    """Kept, since the runs of a study have seeds in common, and drawing one takes 2 ms in which the card waits."""
    return initial_state_of(layout.initial_agent(agent, seed, sizes))


def _parameters(networks: Sequence[KeptNetwork], sizes: AgentSizes) -> Parameters:
    policy, value = networks
    inputs, log_std = range(sizes.observations), jnp.asarray(policy["log_std"][: sizes.actions])
    mean = layout.layers_of(policy, inputs, range(sizes.actions), -1)
    return Parameters(GaussianPolicy(mean, log_std), layout.layers_of(value, inputs, range(1), -1))


def scratch_words(most_rows: int) -> int:
    """The words of a block's own memory: rows, what is beside them, two orders, and the second layers' moments."""
    return most_rows * (INPUTS + _ASIDE + 2) + 4 * HIDDEN * HIDDEN


def most_rows(runs: NDArray[Any]) -> int:
    """The rows of a block's own memory, a multiple of 8: the longest batch, its successor's, and last observations."""
    rows = int((runs["batch"] + 1 + runs["most_episodes"]).max())
    return rows + -rows % 8


def networks_of(state: NDArray[np.float32], kept: int = 0) -> tuple[KeptNetwork, ...]:
    """Policy and value in a run's state by name, views; their weights, means (kept = 1) or squares (2)."""
    begins = (POSITION_WORDS + (2 * kept + index) * NUMBERS for index in range(2))
    return tuple(layout.network_parts(state, begin, NETWORK) for begin in begins)


def expected_s(spec: RunSpec) -> float:
    agent = agent_of(spec)
    step, inner = layout.TASKS[spec.world.name]
    acting_s = agent.batch * (step + inner * layout.timed_task_of(spec).cycle_steps)
    size = agent.slice_sizes[1]
    learning_s = agent.epochs * ceil(agent.batch / size) * (UPDATE_S[0] + UPDATE_S[1] * size)
    return layout.expected_updates(spec) * (acting_s + learning_s)


def refusal(agent: PPOAgent) -> str | None:
    if agent.hidden != (HIDDEN, HIDDEN):
        return f"hidden is {agent.hidden}: the engine cuda has networks of {(HIDDEN, HIDDEN)} only."
    if agent.period != agent.batch:
        return f"learning_period is {agent.learning_period}: the engine cuda learns once for each batch, {agent.batch}."
    options = [each for each in fields(agent) if each.metadata.get("option") and each.name != "minibatches"]
    for name in (each.name for each in options if getattr(agent, each.name) != each.default):
        return (
            f"{name} is {getattr(agent, name)}: the engine cuda has the paper's PPO only, and compiled has the choice."
        )
    size = agent.slice_sizes[1]
    if size > LONGEST_SLICE:
        return f"Mini-batches have {size} samples: the engine cuda takes {LONGEST_SLICE} at most."
    return None


PPO_KERNEL = Kernel(
    file=PPO,
    report=REPORT,
    metrics=("policy_loss", "value_loss", "entropy", "kl", "clip_fraction"),
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
