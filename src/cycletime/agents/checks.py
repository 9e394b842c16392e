"""Refusals of wrong fields that agents, runs and studies share: one sentence with the value and what would be right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import inf
from numbers import Integral, Real
from typing import Any, Literal, get_args, get_origin, get_type_hints

import jax.numpy as jnp

from cycletime import rules
from cycletime.agents.exploration import CoherentNoise, Exploration
from cycletime.errors import InputError, quote

MOST_UNITS = 8192
"""Of a layer: two of them have a quarter of a gigabyte of weights."""
MOST_AT_ONCE = 2**30
"""Numbers that one learning may draw or gather: as many take four gigabytes."""


def check_size(what: str, numbers: int) -> None:
    if numbers > MOST_AT_ONCE:
        raise InputError(f"{what}: a learning would draw {numbers:,} numbers at once; {MOST_AT_ONCE:,} are the most.")


def check_counts(owner: object, *names: str, least: int = 1) -> None:
    right = f"be a whole number of at least {least}"
    _check(owner, names, lambda value: _is_whole(value) and value >= least, right)


def check_env_steps(owner: object) -> None:
    check_counts(owner, "env_steps")
    budget = getattr(owner, "env_steps")  # noqa: B009 - whoever has one
    if budget >= 2**31:
        raise InputError(f"env_steps is {quote(budget)}: it must be below 2**31, since steps are counted in 32 bits.")


def check_fractions(owner: object, *names: str) -> None:
    _check(owner, names, lambda value: _is_number(value) and 0 <= value <= 1, "lie between 0 and 1")


def check_positive(owner: object, *names: str) -> None:
    _check(owner, names, lambda value: _is_number(value) and 0 < value < inf, "be a number above 0")


def check_choice(owner: object, name: str, choices: Sequence[str]) -> None:
    _check(owner, [name], lambda value: value in choices, f"be {' or '.join(map(repr, choices))}")


def _check(owner: object, names: Sequence[str], fits: Callable[[Any], bool], right: str) -> None:
    for name in names:
        if not fits(value := getattr(owner, name)):
            raise InputError(f"{name} is {quote(value)}: it must {right}.")


@cache
def _choices(kind: type) -> Mapping[str, Sequence[str]]:
    hints = get_type_hints(kind)
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}


def check_choices(owner: object) -> None:
    """Refuse values of fields that have a few choices, the Literals among their types, other than these."""
    for name, choices in _choices(type(owner)).items():  # type: ignore[arg-type]  # classes can be hashed
        check_choice(owner, name, choices)


def check_hidden(agent: object) -> None:
    hidden = getattr(agent, "hidden")  # noqa: B009 - agents share the name, not a base class
    if not isinstance(hidden, tuple) or not all(type(size) is int and 0 < size <= MOST_UNITS for size in hidden):
        needed = f"layer sizes of at most {MOST_UNITS}, such as (64, 64), or [64, 64] in a file"
        raise InputError(f"hidden is {quote(hidden)}: it must be {needed}.")


def check_common_fields(agent: Any) -> None:  # noqa: ANN401 - agents share these names, not a base class
    """Refuse what is wrong in the fields that all agents have, and choices that there are not."""
    check_hidden(agent)
    check_choices(agent)
    value = agent.exploration
    if isinstance(value, Exploration):
        raise InputError(f"exploration is {value}: call .at(dt) with the cycle time, or make the agent with agent_for.")
    if value is not None and not isinstance(value, CoherentNoise):
        raise InputError(f"exploration is {value!r}: give noise such as OrnsteinUhlenbeck('100ms').at(dt), or None.")


def check_agent(agent: object) -> None:
    if isinstance(agent, rules.PPO | rules.SAC):
        raise InputError(f"{agent} are hyper-parameters: make an agent of them with cycletime.agents.agent_for.")
    if isinstance(agent, type) or not callable(getattr(agent, "learn", None)):
        raise InputError(f"{quote(agent)} is not an agent: give an object of cycletime.agents, such as PPOAgent().")


def check_rows(agent: Any, num_envs: int) -> None:  # noqa: ANN401 - an `Agent`, whose module imports this one
    """Refuse an agent that cannot learn from rows of agent steps of so many environments."""
    if not _is_whole(num_envs) or num_envs < 1:
        raise InputError(f"num_envs is {quote(num_envs)}: it must be a whole number of at least 1.")
    if num_envs == 1:
        return
    if agent.learn_when == "episode_end":
        ends = f"the episodes of {num_envs} environments end at different times"
        raise InputError(f"learn_when is 'episode_end', but {ends}: give one environment, or learn_when='batch'.")
    if agent.capacity < num_envs:
        kept = f"{type(agent).__name__} keeps {agent.capacity} transitions at a time"
        raise InputError(f"{kept}, but {num_envs} environments make more in a step: give fewer of them, or one.")
    if agent.capacity // num_envs * num_envs < agent.learns_from:
        kept = "batch" if agent.learns_from == agent.capacity else "replay"
        remedy = f"give {_multiples(agent.capacity, num_envs)}"
        raise InputError(f"The {kept} is {agent.capacity}, which {num_envs} environments do not divide: {remedy}.")
    # An agent that needs its whole buffer would learn from the same again; one that samples gains from it.
    samples = agent.learns_from < agent.capacity
    if agent.period % num_envs and (num_envs % agent.period or not samples):
        remedy = f"{_multiples(agent.period, num_envs)}{', or one that divides their number' if samples else ''}"
        period = f"The learning period is {agent.period} agent steps"
        raise InputError(f"{period}, which {num_envs} environments do not divide: give {remedy}.")


def _multiples(number: int, factor: int) -> str:
    """The multiples of a factor next to a number, as a choice."""
    below = number // factor * factor
    return f"{below} or {below + factor}" if below else str(factor)


def check_precision(dtype: Any) -> None:  # noqa: ANN401 - what JAX takes for a type
    """Refuse a precision other than JAX's own, which networks and random numbers have: a run must not mix both."""
    own = jnp.result_type(float)
    if own != jnp.dtype(dtype):
        remedy = "let both be the same (jax_enable_x64 sets JAX's)"
        raise InputError(f"The task computes in {jnp.dtype(dtype)}, JAX in {own}: {remedy}.")


def _is_whole(value: object) -> bool:
    return type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))


def _is_number(value: object) -> bool:
    return type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))
