"""What a run begins with: by small programs for all loops, engines, batches and cycle times."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cycletime.agents import Agent
from cycletime.agents.agent import Psi
from cycletime.agents.exploration import CoherentNoise, initial_noise_state
from cycletime.loops.randomness import Purpose, key_for
from cycletime.loops.rollout import Walk
from cycletime.loops.soon import soon
from cycletime.tasks.closed_form import ClosedFormTask

_programs: dict[tuple[str, str, Any], Callable[[list[jax.Array], jax.Array], Psi]] = {}
"""By device, steps and what they give: agents that differ in other things than networks have the same steps."""


def first_psi(agent: Agent, seed_key: jax.Array, observation_size: int, action_size: int) -> Psi:
    """Psi before a run's first step; of several runs, by keys and rates in arrays, all side by side.

    The program knows the networks alone, so that one serves all runs with such networks.
    """
    rates, structure = jax.tree.flatten(agent)
    if isinstance(seed_key, jax.core.Tracer):  # a part of another program, which has options of its own
        return _first_psi(structure, observation_size, action_size)(rates, seed_key)
    rates = [np.asarray(rate, jnp.result_type(rate)) for rate in rates]
    shapes = tuple(jax.typeof(each) for each in (*rates, seed_key))
    return _program(jax.default_backend(), structure, observation_size, action_size, shapes)(rates, seed_key)


def _first_psi(structure: Any, *sizes: int) -> Callable[[list[jax.Array], jax.Array], Psi]:  # noqa: ANN401 - JAX's
    """How an agent of a structure begins, by its rates and a key, or by those of several."""

    def one(rates: list[jax.Array], seed_key: jax.Array) -> Psi:
        return structure.unflatten(rates).initialize(key_for(seed_key, Purpose.INITIALIZE), *sizes)

    return lambda rates, seed_key: (jax.vmap(one) if seed_key.ndim else one)(rates, seed_key)


@cache
def _program(
    backend: str,
    structure: Any,  # noqa: ANN401 - JAX's
    observation_size: int,
    action_size: int,
    shapes: tuple[Any, ...],  # JAX's
) -> Callable[[list[jax.Array], jax.Array], Psi]:
    steps = jax.jit(_first_psi(structure, observation_size, action_size)).trace(list(shapes[:-1]), shapes[-1])
    known = (backend, str(steps.jaxpr), jax.tree.structure(steps.out_info))
    if known not in _programs:
        lowered = steps.lower()
        _programs[known] = soon(backend, lambda options: lowered.compile(compiler_options=dict(options)))
    return _programs[known]


@partial(jax.jit, static_argnames=("task", "exploration"))
def first_walk(task: ClosedFormTask, exploration: CoherentNoise | None, seed_key: jax.Array) -> Walk:
    """A run's first episode before its first step; of several runs, by several keys, all side by side.

    With all optimisations, since what is seen of a state depends on them in its last bits.
    """

    def one(seed_key: jax.Array) -> Walk:
        state = task.reset(key_for(seed_key, Purpose.STARTS))
        count, nothing = jnp.zeros((), jnp.int32), jnp.zeros((), task.dtype)
        noise = initial_noise_state(exploration, task.action_size, dtype=task.dtype)
        return Walk(count, state, task.observe(state), nothing, count, count, noise)

    return jax.vmap(one)(seed_key) if seed_key.ndim else one(seed_key)
