"""Specs of runs as people ask for them: a task or environment, an algorithm, a cycle time, values tuned at another."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from cycletime import rules
from cycletime.agents import ActorCriticAgent, Agent, agent_for
from cycletime.agents.exploration import Exploration, OrnsteinUhlenbeck, Pink
from cycletime.agents.from_rules import whole_rows
from cycletime.duration import Duration, DurationLike
from cycletime.errors import InputError, quote, unknown_name_error
from cycletime.libraries.synonyms import name_hint
from cycletime.rules import Rule
from cycletime.rules.hyperparameters import Hyperparameters, part_names
from cycletime.rules.rule import Recommendation, own_rules_as_table
from cycletime.training.engine import AUTO, with_engine
from cycletime.training.external import ExternalAgent, TrainerSpec, external_agent
from cycletime.training.spec import AGENTS, EXPLORATIONS, EngineSpec, LearnerName, RunSpec
from cycletime.training.toml_files import read_tuned, trained_otherwise
from cycletime.training.worlds import RobotKind, refuse_budget_without_episode, refuse_unknown_env, world_of

TUNABLE = {
    "ppo": ("batch", "minibatch", "discount", "trace_decay"),
    "sac": ("discount", "minibatch"),
    "actor-critic": ("discount",),
}
"""By algorithm, the values that are tuned at a cycle time; rules carry them."""
WITH_RULES = tuple(name for name in TUNABLE if name in rules.ALGORITHMS)
_TRANSFERRED_FIELDS = ("learning_rate", "clip")
"""Further fields that a rule or a part carries from what is given. What is given for the other parts' fields
replaces what they carry, which the identities of runs rest on."""


def tunable_names(algorithm: str, trainer: TrainerSpec | None = None) -> tuple[str, ...]:
    if trainer is None:
        return TUNABLE[algorithm]
    return tuple(quantity.field for quantity in rules.ALGORITHMS[algorithm].quantities)


def known_algorithms(trainer: TrainerSpec | None) -> Collection[str]:
    return AGENTS if trainer is None else rules.ALGORITHMS


def algorithms_with_rules(trainer: TrainerSpec | None) -> Collection[str]:
    return WITH_RULES if trainer is None else rules.ALGORITHMS


def agent_values(agent: Agent | ExternalAgent, names: Iterable[str]) -> dict[str, Any]:
    """Some of an agent's values by our names; of another library's, those that it states."""
    if isinstance(agent, ExternalAgent):
        return {name: agent.values[name] for name in names if name in agent.values}
    return {name: getattr(agent, name) for name in names}


class TransferredAgent(NamedTuple):
    agent: Agent | ExternalAgent
    origin: Mapping[str, Any]
    notes: tuple[str, ...]
    """What the rule says of the values: horizons that shrink, rounding."""


def transfer_agent(
    algorithm: str,
    values: Mapping[str, Any],
    *,
    dt: DurationLike,
    tuned_at: DurationLike | None = None,
    rule: str | Rule | None = None,
    also: Collection[str] = (),
    others: Mapping[str, Any] | None = None,
    num_envs: int = 1,
    trainer: TrainerSpec | None = None,
    tuned_fields: Collection[str] = (),
) -> TransferredAgent:
    """The agent at `dt`, with values that were tuned there or are carried there; arguments are as in `cycletime.train`.

    A learning rate or a clip among `others` is from `tuned_at` where the rule speaks of it, or `also` names its part.
    With a trainer, `others` are in its words. A carried batch is made a multiple of `num_envs`. `tuned_fields` are the
    values that a tuning chose.
    """
    if algorithm not in known_algorithms(trainer):
        raise unknown_name_error(algorithm, "an algorithm", known_algorithms(trainer))
    for name, value in values.items():
        if name not in (known := tunable_names(algorithm, trainer)):
            near = name_hint(name, algorithm, known)
            raise InputError(f"{name} is {value}: {algorithm} has no such value, but {', '.join(known)}{near}")
    if (rule is not None or also) and tuned_at is None:
        what = f"The rule is {_rule_name(rule)!r}" if rule is not None else f"{', '.join(also)} is to be carried"
        raise InputError(f"{what}: it needs tuned_at=..., the cycle time that the values are from ([tuned] dt).")
    if trainer is None and algorithm not in WITH_RULES:
        if tuned_at is not None:
            raise InputError(f"tuned_at is {tuned_at}: no rule carries values of {algorithm} to another cycle time.")
        return TransferredAgent(ActorCriticAgent(**{**values, **(others or {})}), {}, ())
    if trainer is not None:
        external, tuned, carried = external_agent(
            trainer,
            algorithm,
            values,
            dt=Duration(dt),
            tuned_at=None if tuned_at is None else Duration(tuned_at),
            rule=rule,
            others=others or {},
            tuned_fields=tuned_fields,
        )
        if tuned_at is None:
            return TransferredAgent(external, {}, _own_notes(carried))
        advice = rules.recommend(tuned, trainer.num_envs)
        origin = _origin(tuned, advice.rule if rule is None else rule)
        origin["tuned"] = {name: value for name, value in origin["tuned"].items() if name in external.values}
        return TransferredAgent(external, origin, (*_own_notes(carried), *_reason(rule, advice)))
    kind = rules.PPO if algorithm == "ppo" else rules.SAC
    others = dict(others or {})
    _refuse_two_sizes(values, others)
    tuned = kind(dt=dt if tuned_at is None else tuned_at, tuned_fields=tuned_fields, **values)
    advice = rules.recommend(tuned, num_envs)
    used = advice.rule if rule is None else rule
    fields = {part.field for name, part in kind.parts.items() if name in part_names(also)}
    fields |= set(used.laws if isinstance(used, Rule) else kind.rules[used].laws if used in kind.rules else ())
    rates = {name: others.pop(name) for name in _TRANSFERRED_FIELDS if name in fields and name in others}
    tuned = replace(tuned, **rates)
    carried = tuned.at(dt, used, also)
    if tuned_at is None:
        return TransferredAgent(agent_for(carried, **others), {}, ())
    # What was given stays as it is, and is refused where it does not fit: only what a rule made is rounded.
    rows, notes = whole_rows(carried, num_envs)
    agent = agent_for(carried, **{**rows, **others})
    return TransferredAgent(agent, _origin(tuned, used), (*_own_notes(carried), *notes, *_reason(rule, advice)))


def _refuse_two_sizes(values: Mapping[str, Any], others: Mapping[str, Any]) -> None:
    if "minibatch" in values and others.get("minibatches") is not None:
        raise InputError(f"minibatch is {values['minibatch']} and minibatches {others['minibatches']}: give one.")


def _origin(tuned: Hyperparameters, used: str | Rule) -> dict[str, Any]:
    origin = {"rule": _rule_name(used), "tuned_at": str(tuned.dt), "tuned": tuned.stated()}
    if isinstance(used, Rule):
        origin["own_rules"] = own_rules_as_table({used.name: used})
    return origin


def _own_notes(carried: Hyperparameters) -> tuple[str, ...]:
    """The notes on values; what was not given is the agent's own here, and needs none."""
    return tuple(note for note in carried.notes if " was not given: " not in note)


def _reason(rule: str | Rule | None, advice: Recommendation) -> tuple[str, ...]:
    return (f"Rule {advice.rule!r}, since none was named: {advice.why}",) if rule is None else ()


def _rule_name(rule: str | Rule) -> str:
    return rule.name if isinstance(rule, Rule) else rule


MOST_SEEDS = 10_000
NOISES = ("white", *EXPLORATIONS)


def make_specs(
    *,
    task: str | None = None,
    env: str | None = None,
    env_dt: DurationLike | None = None,
    algorithm: str = "ppo",
    dt: DurationLike,
    env_steps: int,
    seeds: int | Sequence[int] = 1,
    values: Mapping[str, Any] | None = None,
    tuned_at: DurationLike | None = None,
    tuned: Path | str | None = None,
    rule: str | Rule | None = None,
    also: Collection[str] = (),
    others: Mapping[str, Any] | None = None,
    exploration: Exploration | None = None,
    num_envs: int = 1,
    device: str = "cpu",
    engine: str = AUTO,
    robot: RobotKind | None = None,
    learner: LearnerName = "inline",
) -> list[RunSpec]:
    """The specs of runs, one for each seed; arguments are as in `cycletime.train`."""
    count = seeds if isinstance(seeds, int) else len(seeds)
    if not 1 <= count <= MOST_SEEDS:  # before there is a list of them
        raise InputError(f"seeds is {count}: there must be from 1 to {MOST_SEEDS}.")
    several = range(seeds) if isinstance(seeds, int) else seeds
    if len(set(several)) < count:
        raise InputError(f"seeds is {quote(seeds)}: give each once.")
    values, others = dict(values or {}), dict(others or {})
    tuned_fields, elsewhere = set[str](), tuple[str, ...]()
    if tuned is not None:
        if tuned_at is not None:
            raise InputError(f"tuned_at is {tuned_at}: the file of tuned values says it already, so leave one out.")
        read = read_tuned(tuned).of(algorithm)
        tuned_fields = set(read.about.get("searched", ())) - set(values)
        elsewhere = trained_otherwise(read.about, "cycletime", num_envs)
        values, others = {**read.values, **values}, {**read.others, **others}
        # No rule carries actor-critic's, so they are for their own cycle time.
        tuned_at = None if algorithm == "actor-critic" and read.dt == Duration(dt) else read.dt
    carried = transfer_agent(
        algorithm,
        values,
        dt=dt,
        tuned_at=tuned_at,
        rule=rule,
        also=also,
        others=others,
        num_envs=num_envs,
        tuned_fields=tuned_fields,
    )
    world = world_of(task, env, env_dt, robot)
    spec = RunSpec(
        world=world,
        agent=carried.agent,
        dt=dt,
        env_steps=env_steps,
        seed=several[0],
        num_envs=num_envs,
        engine=EngineSpec(device=device, learner=learner),
        exploration=exploration,
        origin=carried.origin,
        notes=(*carried.notes, *elsewhere),
    )
    refuse_unknown_env(world)
    refuse_budget_without_episode(world, env_steps, num_envs)
    chosen = with_engine(spec, engine)
    return [replace(chosen, seed=seed) for seed in several]


def make_exploration(noise: str, correlation: DurationLike | None = None) -> Exploration | None:
    if noise not in NOISES:
        raise unknown_name_error(noise, "a noise", NOISES)
    if noise == "white":
        if correlation is not None:
            raise InputError(f"correlation is {correlation}: white noise has none, so give a noise as well.")
        return None
    if noise == "pink":
        return Pink() if correlation is None else Pink(slowest=correlation)
    if correlation is None:
        raise InputError(f"correlation is missing: {noise} noise needs its time, such as 100ms.")
    return OrnsteinUhlenbeck(correlation)
