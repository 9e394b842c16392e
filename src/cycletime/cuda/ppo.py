"""PPO's runs as the kernel has them: description, initial state, what was learned, and about how long a run takes.

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
from cycletime.cuda.layout import RUN, STATE_WORDS, Status, networks_of, position_of
from cycletime.cuda.tasks import TASKS
from cycletime.duration import cycle_steps
from cycletime.errors import RunError
from cycletime.training.algorithm_1 import TimedTask, initial_agent_state
from cycletime.training.jax_setup import keep_compiled_programs
from cycletime.training.random_numbers import seed_key
from cycletime.training.spec import RunSpec
from cycletime.training.worlds import ClosedFormWorld

State = NDArray[np.float32]
REPORTS = 300
"""About so many learnings of a run are reported; one costs about 3 % of a learning period."""


class AgentSizes(NamedTuple):
    """The numbers that an agent sees and gives; the kernel's further ones stay zero."""

    observations: int
    actions: int


def describe_run(spec: RunSpec) -> NDArray[Any]:
    """A run, one record of `layout.RUN`."""
    world, agent = timed_task_of(spec), spec.agent
    assert isinstance(agent, PPOAgent), "the engine refuses other agents"
    run = np.zeros((), RUN)
    numbers = {
        "task": list(TASKS).index(spec.world.name),
        "cycle_steps": world.cycle_steps,
        "limit_steps": world.task.limit_steps,
        "env_steps": spec.env_steps,
        "actions": world.task.action_size,
        "batch": agent.batch,
        "slice": agent.slice_sizes[1],
        "epochs": agent.epochs,
        "until_episode_end": agent.learn_when == "episode_end",
        "limit_is_terminal": agent.time_limit == "terminal",
        "ends_with_episode": agent.batch_end == "episode_end",
        "metrics_every": report_interval(spec),
        "most_episodes": world.most_episodes(world.steps_until_learning(agent)),
        "seed": spec.seed,
        "discount": agent.discount,
        "trace_decay": agent.trace_decay,
        "learning_rate": agent.learning_rate,
        "clip": agent.clip,
        "env_dt_s": float(world.task.env_dt),
    }
    for name, number in numbers.items():
        run[name] = number
    return run


def timed_task_of(spec: RunSpec) -> TimedTask:
    """A run's task at its cycle time."""
    assert isinstance(spec.world, ClosedFormWorld), "the engine refuses other worlds"
    return TimedTask(spec.world.task, cycle_steps(spec.dt, spec.world.env_dt))


def sizes_of(spec: RunSpec) -> AgentSizes:
    """What the agent of a run sees and gives."""
    task = timed_task_of(spec).task
    return AgentSizes(task.observation_size, task.action_size)


def expected_updates(spec: RunSpec) -> int:
    """About how often a run learns."""
    return ceil(spec.env_steps / (timed_task_of(spec).cycle_steps * spec.agent.period))


def report_interval(spec: RunSpec) -> int:
    """From one learning that is reported to the next."""
    return ceil(expected_updates(spec) / REPORTS)


def initial_states(specs: Sequence[RunSpec]) -> list[State]:
    """The states that runs begin with; their weights are those of the compiled loop for the same seed."""
    keep_compiled_programs()
    return [_initial_state(_agent_at_start(spec), spec.seed, sizes_of(spec)).copy() for spec in specs]


def agent_state_of(state: State, sizes: AgentSizes) -> PPOState:
    """What the agent has learned, as the agent itself has it."""
    weights, means, squares = (_parameters(networks_of(state, kept), sizes) for kept in range(3))
    # The kernel keeps beta_2 to the power of the steps taken. In the end that stays at the smallest numbers, after some
    # 700,000 steps, when further ones do not matter.
    taken = round(np.log(float(position_of(state)["square_decay"])) / np.log(SQUARE_DECAY))
    return PPOState(weights, AdamState(jnp.asarray(taken, jnp.int32), means, squares))


def initial_state_of(psi: PPOState) -> State:
    """The state of a run before its first step, with an agent that has not learned yet."""
    state = np.zeros(STATE_WORDS, np.float32)
    policy, value = networks_of(state)
    _fill(policy, psi.parameters.policy.network)
    _fill(value, psi.parameters.value)
    log_std = np.asarray(psi.parameters.policy.log_std)
    policy["log_std"][: len(log_std)] = log_std
    position = position_of(state)
    position["status"] = Status.FRESH
    position["mean_decay"] = position["square_decay"] = 1.0
    return state


def checked_state(words: NDArray[Any] | None, count: int = STATE_WORDS) -> State:
    """The state that a checkpoint holds, of so many words."""
    if words is None or words.dtype != np.int32 or words.shape != (count,):
        kind = "nothing" if words is None else f"{words.dtype} of the shape {words.shape}"
        raise RunError(f"The checkpoint has {kind} as the state of the kernel: it must be int32, ({count},).")
    return np.array(words).view(np.float32)


@lru_cache(maxsize=256)
def _initial_state(agent: PPOAgent, seed: int, sizes: AgentSizes) -> State:
    """Kept, since the runs of a study have seeds in common, and drawing one takes 2 ms in which the card waits."""
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        return initial_state_of(jax.device_get(initial_agent_state(agent, seed_key(seed), *sizes)))


def _agent_at_start(spec: RunSpec) -> PPOAgent:
    """The agent, as far as its first weights depend on it."""
    agent = spec.agent
    assert isinstance(agent, PPOAgent), "the engine refuses other agents"
    return PPOAgent(noise_std=agent.noise_std, initial_weights=agent.initial_weights)


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


LEARNING_S = (3.0e-6, 0.172e-6)
"""Of a gradient step, and of each sample in it: a line near what `benchmarks/kernel.py speed` finds for 12 to 200."""


def expected_s(spec: RunSpec) -> float:
    """The seconds of a whole run."""
    agent = spec.agent
    assert isinstance(agent, PPOAgent), "the engine refuses other agents"
    step, inner = TASKS[spec.world.name].acting_s
    acting_s = agent.batch * (step + inner * timed_task_of(spec).cycle_steps)
    size = agent.slice_sizes[1]
    learning_s = agent.epochs * ceil(agent.batch / size) * (LEARNING_S[0] + LEARNING_S[1] * size)
    return expected_updates(spec) * (acting_s + learning_s)
