"""The agent at a cycle time, from values that were tuned at another: what a command line or a study file says."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from cycletime import rules
from cycletime.agents import ActorCriticAgent, Agent, agent_for
from cycletime.duration import DurationLike
from cycletime.errors import InputError, unknown
from cycletime.rules import Rule
from cycletime.rules.hyperparameters import part_names
from cycletime.rules.own import own_rules_in, own_rules_table
from cycletime.runs.spec import AGENTS

TUNABLE = {
    "ppo": ("batch", "minibatch", "discount", "trace_decay"),
    "sac": ("discount", "minibatch"),
    "actor-critic": ("discount",),
}
"""By algorithm, the values that are tuned at a cycle time; rules carry them."""
DEFAULT_RULES = {name: rules.ALGORITHMS[name].default_rule for name in TUNABLE if name in rules.ALGORITHMS}
"""By algorithm, how its values are carried where nothing is said; not of those whose values no rule carries."""
_CARRIED_FROM_OTHERS = ("learning_rate", "clip")
"""Further fields that a rule or a part carries from what is given. What is given for the other parts' fields
replaces what they carry, which the identities of runs rest on."""


def carried_agent(
    algorithm: str,
    values: Mapping[str, Any],
    *,
    dt: DurationLike,
    tuned_at: DurationLike | None = None,
    rule: str | Rule | None = None,
    also: Collection[str] = (),
    others: Mapping[str, Any] | None = None,
) -> tuple[Agent, dict[str, Any]]:
    """The agent at `dt`, and how its values came about, for `RunSpec.origin`.

    Args:
        algorithm: ppo, sac or actor-critic.
        values: Some of its tunable values; the others are the paper's baseline.
        dt: The cycle time that the agent is for.
        tuned_at: The cycle time that the values are from; None if they are for `dt`, so that nothing is carried.
        rule: How they are carried, by default the algorithm's own rule; or a rule of one's own.
        also: Parts that keep their meaning in seconds too, as in `rules`.
        others: Further fields of the agent; a learning rate or a clip among them is from `tuned_at` where the rule
            speaks of it, or `also` names its part.

    Raises:
        InputError: if there is no such algorithm, value, rule or part, or they do not go together.
    """
    if algorithm not in AGENTS:
        raise unknown(algorithm, "an algorithm", AGENTS)
    for name, value in values.items():
        if name not in TUNABLE[algorithm]:
            raise InputError(f"{name} is {value}: {algorithm} has no such value, but {', '.join(TUNABLE[algorithm])}.")
    if (rule is not None or also) and tuned_at is None:
        what = f"The rule is {_name(rule)!r}" if rule is not None else f"{', '.join(also)} is to be carried"
        raise InputError(f"{what}: it needs tuned_at=..., the cycle time that the values are from.")
    if algorithm not in DEFAULT_RULES:
        if tuned_at is not None:
            raise InputError(
                f"tuned_at is {tuned_at}: no rule carries the values of {algorithm} to another cycle time."
            )
        return ActorCriticAgent(**{**values, **(others or {})}), {}
    kind = rules.PPO if algorithm == "ppo" else rules.SAC
    others = dict(others or {})
    used = kind.default_rule if rule is None else rule
    fields = {part.field for name, part in kind.parts.items() if name in part_names(also)}
    fields |= set(used.laws if isinstance(used, Rule) else kind.rules[used].laws if used in kind.rules else ())
    rates = {name: others.pop(name) for name in _CARRIED_FROM_OTHERS if name in fields and name in others}
    tuned = kind(dt=dt if tuned_at is None else tuned_at, **values, **rates)
    carried = tuned.at(dt, used, also)
    if tuned_at is None:
        return agent_for(carried, **others), {}
    origin = {"rule": _name(used), "tuned_at": str(tuned.dt), "tuned": tuned.stated()}
    if isinstance(used, Rule):
        origin["own_rules"] = own_rules_table({used.name: used})
    return agent_for(carried, **others), origin


def rule_of(origin: Mapping[str, Any]) -> str | Rule:
    """The rule that carried an agent's values, from what `carried_agent` says of them."""
    name: str = origin["rule"]
    return own_rules_in(origin["own_rules"])[name] if "own_rules" in origin else name


def _name(rule: str | Rule) -> str:
    return rule.name if isinstance(rule, Rule) else rule
