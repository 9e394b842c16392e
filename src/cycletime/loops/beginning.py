"""What an agent begins with, by one small program for all loops, engines, batches and cycle times."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import jax

from cycletime.agents import Agent
from cycletime.agents.agent import Psi
from cycletime.loops.randomness import Purpose, key_for

_SOON: dict[str, int | bool] = {
    "xla_backend_optimization_level": 1,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}
"""For CPUs, where XLA takes far longer to optimise the drawing of weights than it takes. It is the same to the bit."""


def first_psi(agent: Agent, seed_key: jax.Array, observation_size: int, action_size: int) -> Psi:
    """Psi before a run's first step; of several runs, by keys and rates in arrays, all side by side.

    The program knows the networks alone, so that the one that is kept serves all runs with such networks.
    """
    if isinstance(seed_key, jax.core.Tracer):  # a part of another program, which has options of its own
        return _first_psi(agent, seed_key, observation_size, action_size)
    return _program(jax.default_backend())(agent, seed_key, observation_size, action_size)


@cache
def _program(backend: str) -> Callable[[Agent, jax.Array, int, int], Psi]:
    options = _SOON if backend == "cpu" and _has_all(_SOON) else {}
    return jax.jit(_first_psi, static_argnums=(2, 3), compiler_options=options)


def _has_all(options: dict[str, int | bool]) -> bool:
    """Whether this version of XLA has all options: they come and go without notice."""
    try:
        jax.jit(lambda: 0, compiler_options=options).lower().compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True


def _first_psi(agent: Agent, seed_key: jax.Array, observation_size: int, action_size: int) -> Psi:
    def one(agent: Agent, seed_key: jax.Array) -> Psi:
        return agent.initialize(key_for(seed_key, Purpose.INITIALIZE), observation_size, action_size)

    return jax.vmap(one)(agent, seed_key) if seed_key.ndim else one(agent, seed_key)
