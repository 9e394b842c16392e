"""Refusals of wrong fields that agents, runs and studies share: one sentence with the value and what would be right."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from numbers import Integral, Real
from typing import Any

import jax.numpy as jnp

from cycletime import rules
from cycletime.errors import InputError, quote

MOST_UNITS = 8192
"""Of a layer: two of them have a quarter of a gigabyte of weights."""
MOST_AT_ONCE = 2**30
"""Numbers that one learning may draw or gather: as many take four gigabytes."""


def check_size(what: str, numbers: int) -> None:
    if numbers > MOST_AT_ONCE:
        raise InputError(
            f"{what}: a learning would draw {numbers:,} numbers at once, and {MOST_AT_ONCE:,} are the most."
        )


def check_counts(owner: object, *names: str, least: int = 1) -> None:
    for name in names:
        value = getattr(owner, name)
        if not _is_whole(value) or value < least:
            raise InputError(f"{name} is {quote(value)}: it must be a whole number of at least {least}.")


def check_env_steps(owner: object) -> None:
    check_counts(owner, "env_steps")
    budget = getattr(owner, "env_steps")  # noqa: B009 - whoever has one
    if budget >= 2**31:
        raise InputError(f"env_steps is {quote(budget)}: it must be below 2**31, since steps are counted in 32 bits.")


def check_fractions(owner: object, *names: str) -> None:
    for name in names:
        value = getattr(owner, name)
        if not _is_number(value) or not 0 <= value <= 1:
            raise InputError(f"{name} is {quote(value)}: it must lie between 0 and 1.")


def check_positive(owner: object, *names: str) -> None:
    for name in names:
        value = getattr(owner, name)
        if not _is_number(value) or not 0 < value < inf:
            raise InputError(f"{name} is {quote(value)}: it must be above 0.")


def check_choice(owner: object, name: str, choices: Sequence[str]) -> None:
    value = getattr(owner, name)
    if value not in choices:
        raise InputError(f"{name} is {quote(value)}: it must be {' or '.join(map(repr, choices))}.")


def check_hidden(agent: object) -> None:
    hidden = getattr(agent, "hidden")  # noqa: B009 - agents share the name, not a base class
    if not isinstance(hidden, tuple) or not all(type(size) is int and 0 < size <= MOST_UNITS for size in hidden):
        raise InputError(
            f"hidden is {quote(hidden)}: it must be a tuple of layer sizes, such as (64, 64), of at most {MOST_UNITS}."
        )


def check_agent(agent: object) -> None:
    if isinstance(agent, rules.PPO | rules.SAC):
        raise InputError(f"{agent} are hyper-parameters: make an agent of them with cycletime.agents.agent_for.")
    if isinstance(agent, type) or not callable(getattr(agent, "learn", None)):
        raise InputError(f"{quote(agent)} is not an agent: give an object of cycletime.agents, such as PPOAgent().")


def check_precision(dtype: Any) -> None:  # noqa: ANN401 - what JAX takes for a type
    """Refuse a precision other than JAX's own, which networks and random numbers have: a run must not mix both."""
    own = jnp.result_type(float)
    if own != jnp.dtype(dtype):
        raise InputError(
            f"The task computes in {jnp.dtype(dtype)}, JAX in {own}: let both be the same (jax_enable_x64 sets JAX's)."
        )


def _is_whole(value: object) -> bool:
    return type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))


def _is_number(value: object) -> bool:
    return type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))
