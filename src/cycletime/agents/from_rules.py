"""Agents from hyper-parameters that a rule has carried to a cycle time."""

from __future__ import annotations

from dataclasses import fields
from math import ceil
from typing import Any, overload

from cycletime import rules
from cycletime.agents.exploration import CoherentNoise, Exploration, check_cycle
from cycletime.agents.ppo import PPOAgent
from cycletime.agents.sac import SACAgent
from cycletime.errors import InputError
from cycletime.rules.quantities import update_rhythm

WARMUP_S = 160
"""The released code's random start of SAC, in seconds."""


@overload
def agent_for(values: rules.PPO, **others: object) -> PPOAgent: ...
@overload
def agent_for(values: rules.SAC, **others: object) -> SACAgent: ...
def agent_for(values: rules.PPO | rules.SAC, **others: object) -> PPOAgent | SACAgent:
    """The agent with these values; `others` are fields of the agent that no rule knows, such as `hidden`.

    An `exploration` in seconds, such as `OrnsteinUhlenbeck("100ms")`, is taken at the values' cycle time.

    Example:
        >>> agent_for(rules.PPO(dt="16ms").at("4ms"), learn_when="episode_end").batch
        8000
    """
    if values.algorithm not in ("ppo", "sac"):
        raise InputError(f"No agent here learns by {values.algorithm.upper()}: give values of PPO or SAC.")
    agent = PPOAgent if isinstance(values, rules.PPO) else SACAgent
    known = {each.name for each in fields(agent)}
    stated: dict[str, Any] = {
        each.name: getattr(values, each.name)
        for each in fields(values)
        if each.name in known and getattr(values, each.name) is not None
    }
    if isinstance(values, rules.SAC):
        if values.noise_std is not None:
            raise InputError(f"noise_std is {values.noise_std}: SAC here adds none to its policy's own; leave it out.")
        if values.updates_per_step is not None:
            rhythm = update_rhythm(values.updates_per_step)
            stated |= {"gradient_steps": rhythm.numerator, "learning_period": rhythm.denominator}
        # Random actions fill the same time at every cycle time, as in the released code, whether a rule says so or not.
        stated.setdefault("warmup_steps", ceil(WARMUP_S / values.dt.exact_s))
    for name in others:
        if name not in known:
            from cycletime.libraries.synonyms import name_hint

            near = name_hint(name, values.algorithm, known)
            known_names = ", ".join(sorted(known))
            raise InputError(f"{name!r} is not a field of {agent.__name__}: give some of {known_names}{near}")
    if others.get("minibatches") is not None:
        stated.pop("minibatch", None)  # which follows from it
    noise = others.get("exploration")
    if isinstance(noise, Exploration):
        others["exploration"] = noise.at(values.dt)
    elif isinstance(noise, CoherentNoise):
        check_cycle(noise, values.dt)
    return agent(**{**stated, **others})


def whole_rows(carried: rules.PPO | rules.SAC, num_envs: int) -> tuple[dict[str, int], list[str]]:
    """The nearest batch to one that a rule made which so many environments divide, and a note; nothing where they do.

    Example:
        >>> whole_rows(rules.PPO(dt="16ms", batch=2048).at("24ms"), 64)
        ({'batch': 1344}, ['batch 1365 became 1344, which 64 environments divide.'])
    """
    if not isinstance(carried, rules.PPO) or carried.origin is None or carried.batch % num_envs == 0:
        return {}, []
    if carried.batch == carried.origin.before.batch:  # type: ignore[attr-defined]
        return {}, []
    batch = max(1, round(carried.batch / num_envs)) * num_envs
    note = f"batch {carried.batch} became {batch}, which {num_envs} environments divide."
    return {"batch": batch, **({"minibatch": batch} if carried.minibatch > batch else {})}, [note]
