"""SAC's runs as the kernel has them: how they are described to it, how they begin, and what they learned."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cycletime.agents import SACAgent
from cycletime.agents.learning import AdamState
from cycletime.agents.networks import Layer, Network
from cycletime.agents.sac import Critics, SACState
from cycletime.engines.cuda.describing import State, reported_every, world_of
from cycletime.engines.cuda.layout import INPUTS, Status, position_of
from cycletime.engines.cuda.sac.layout import (
    ACTION,
    CRITIC,
    ONE,
    OUTPUTS,
    POLICY,
    RUN,
    STATE_WORDS,
    TARGET,
    UNITS,
    network_of,
    set_network,
)
from cycletime.engines.cuda.tasks import TASKS
from cycletime.loops.beginning import first_psi
from cycletime.loops.compilation_cache import keep_compiled_programs
from cycletime.loops.randomness import seed_key
from cycletime.runs.spec import RunSpec


def described(spec: RunSpec) -> NDArray[Any]:
    """A run, one record of `layout.RUN`; where its state and replay are is not known yet."""
    world, agent = world_of(spec), agent_of(spec)
    run = np.zeros((), RUN)
    entropy = -float(world.task.action_size) if agent.target_entropy is None else agent.target_entropy
    numbers = {
        "task": list(TASKS).index(spec.world.name),
        "cycle_steps": world.cycle_steps,
        "limit_steps": world.task.limit_steps,
        "env_steps": spec.env_steps,
        "actions": world.task.action_size,
        "capacity": replay_rows(spec),
        "period": agent.period,
        "gradient_steps": agent.gradient_steps,
        "warmup_steps": agent.warmup_steps,
        "learns_from": agent.learns_from,
        "limit_is_terminal": agent.time_limit == "terminal",
        "metrics_every": reported_every(spec),
        "most_episodes": world.most_episodes(agent.period),
        "seed": spec.seed,
        "discount": agent.discount,
        "learning_rate": agent.learning_rate,
        "target_smoothing": agent.target_smoothing,
        "critic_weight": agent.critic_weight,
        "target_entropy": entropy,
        "env_dt_s": float(world.task.env_dt),
    }
    for name, number in numbers.items():
        run[name] = number
    return run


def agent_of(spec: RunSpec) -> SACAgent:
    """A run's agent."""
    assert isinstance(spec.agent, SACAgent), "others are for another kernel"
    return spec.agent


def replay_rows(spec: RunSpec) -> int:
    """The rows of a run's replay: no more than it can fill, with its last learning period."""
    world, agent = world_of(spec), agent_of(spec)
    # Episodes end with a short cycle where their length is no multiple of it, so that there are a few steps more.
    full_cycles = ceil(spec.env_steps / world.cycle_steps)
    return min(agent.replay_capacity, full_cycles + world.most_episodes(full_cycles) + agent.period)


def fresh_states(specs: Sequence[RunSpec]) -> list[State]:
    """The states that runs begin with; their weights are those of the compiled loop for the same seed."""
    keep_compiled_programs()
    return [
        _first_state(world_of(spec).task.observation_size, world_of(spec).task.action_size, spec.seed) for spec in specs
    ]


def state_of(psi: SACState) -> State:
    """The state of a run before its first step, with an agent that has not learned yet."""
    state = np.zeros(STATE_WORDS, np.float32)
    sizes = len(psi.policy[0].weight), len(psi.policy[-1].bias) // 2
    set_network(state, POLICY, _numbers(psi.policy, *_policy_places(*sizes)))
    for index, (critic, target) in enumerate(zip(psi.critics, psi.targets, strict=True)):
        set_network(state, CRITIC + index, _numbers(critic, *_critic_places(*sizes)))
        set_network(state, TARGET + index, _numbers(target, *_critic_places(*sizes)))
    position = position_of(state)
    position["status"] = Status.FRESH
    position["mean_decay"] = position["square_decay"] = 1.0
    position["temperature"][0] = float(psi.temperature)
    return state


def psi_of(state: State, spec: RunSpec) -> SACState:
    """What the agent has learned, as the agent itself has it."""
    task = world_of(spec).task
    sizes = task.observation_size, task.action_size
    position = position_of(state)
    taken = jnp.asarray(int(position["updates"]), jnp.int32)
    policies = [_network(network_of(state, POLICY, kept), *_policy_places(*sizes)) for kept in range(3)]

    def pair(first: int, kept: int = 0) -> Critics:
        return Critics(*(_network(network_of(state, first + i, kept), *_critic_places(*sizes)) for i in range(2)))

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
def _first_state(observation_size: int, action_size: int, seed: int) -> State:
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        state = state_of(jax.device_get(first_psi(SACAgent(), seed_key(seed), observation_size, action_size)))
    state.flags.writeable = False
    return state


def _numbers(network: Network, inputs: Sequence[int], outputs: Sequence[int]) -> dict[str, NDArray[np.float32]]:
    """A network with its inputs and outputs at the places that the kernel has for them."""
    first, second, last = ((np.asarray(layer.weight), np.asarray(layer.bias)) for layer in network)
    kept = {
        "first": np.zeros((INPUTS, UNITS), np.float32),
        "second": second[0],
        "second_bias": second[1],
        "last": np.zeros((UNITS, OUTPUTS), np.float32),
        "last_bias": np.zeros(OUTPUTS, np.float32),
    }
    kept["first"][list(inputs)], kept["first"][ONE] = first
    kept["last"][:, list(outputs)], kept["last_bias"][list(outputs)] = last
    return kept


def _network(kept: dict[str, NDArray[np.float32]], inputs: Sequence[int], outputs: Sequence[int]) -> Network:
    layers = (
        (kept["first"][list(inputs)], kept["first"][ONE]),
        (kept["second"], kept["second_bias"]),
        (kept["last"][:, list(outputs)], kept["last_bias"][list(outputs)]),
    )
    return tuple(Layer(jnp.asarray(weight), jnp.asarray(bias)) for weight, bias in layers)


def _policy_places(observations: int, actions: int) -> tuple[list[int], list[int]]:
    """Of a policy's inputs and outputs: means come first, and log sigmas after the places of two."""
    return list(range(observations)), [*range(actions), *range(OUTPUTS // 2, OUTPUTS // 2 + actions)]


def _critic_places(observations: int, actions: int) -> tuple[list[int], list[int]]:
    return [*range(observations), *range(ACTION, ACTION + actions)], [0]
