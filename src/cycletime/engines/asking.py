"""Runs as people ask for them: a task or an environment, an algorithm, a cycle time, and values tuned at some other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cycletime.agents.exploration import AutoRegressive, Exploration, OrnsteinUhlenbeck, Pink
from cycletime.duration import Duration, DurationLike
from cycletime.engines.registry import AUTO, with_engine
from cycletime.errors import InputError
from cycletime.loops.real_time import LearnerName
from cycletime.rules import Rule
from cycletime.runs.carried import carried_agent
from cycletime.runs.spec import EXPLORATIONS, EngineSpec, RunSpec
from cycletime.runs.tuned_file import read_tuned
from cycletime.runs.worlds import RobotKind, refuse_budget_without_episode, refuse_unknown_env, world_of

MOST_SEEDS = 10_000
"""More are a study."""
NOISES = ("white", *EXPLORATIONS)


def specs_of(
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
    device: str = "cpu",
    engine: str = AUTO,
    robot: RobotKind | None = None,
    learner: LearnerName = "inline",
) -> list[RunSpec]:
    """The specs of runs, one for each seed.

    Args:
        task: A task in closed form, such as reacher or pendulum; or
        env: a Gymnasium environment, such as Hopper-v5,
        env_dt: with a time step that it is retimed to, or that it does not publish. The paper's tasks have their own.
        algorithm: ppo, sac or actor-critic.
        dt: The action-cycle time.
        env_steps: How long to train, in environment steps.
        seeds: How many, from 0 on; or the seeds themselves.
        values: Values that rules carry: batch, minibatch, discount, trace_decay.
        tuned_at: The cycle time that they were tuned at, if not `dt`; or
        tuned: a file of `cycletime tune` that has them.
        rule: How they are carried, by default the algorithm's own; or a rule of one's own.
        also: What else is carried.
        others: Other fields of the agent.
        exploration: Noise that is coherent in time; None is white noise.
        device: cpu or gpu.
        engine: What computes: an engine's name, or auto for the fastest that takes the run on the device.
        robot: What the environment is on, where it is a robot's: real, simulated or lockstep.
        learner: Who learns while a robot moves: inline, within the cycle, or in the background.

    Raises:
        InputError: if something of it makes no sense.
    """
    count = seeds if isinstance(seeds, int) else len(seeds)
    if not 1 <= count <= MOST_SEEDS:  # before there is a list of them
        raise InputError(f"seeds is {count}: there must be from 1 to {MOST_SEEDS}.")
    several = range(seeds) if isinstance(seeds, int) else seeds
    values, others = dict(values or {}), dict(others or {})
    if tuned is not None:
        if tuned_at is not None:
            raise InputError(f"tuned_at is {tuned_at}: the file of tuned values says it already, so leave one out.")
        read = read_tuned(tuned).of(algorithm)
        values, others = {**read.values, **values}, {**read.others, **others}
        # No rule carries actor-critic's, so they are for their own cycle time.
        tuned_at = None if algorithm == "actor-critic" and read.dt == Duration(dt) else read.dt
    agent, origin = carried_agent(algorithm, values, dt=dt, tuned_at=tuned_at, rule=rule, also=also, others=others)
    world = world_of(task, env, env_dt, robot)
    spec = RunSpec(
        world=world,
        agent=agent,
        dt=dt,
        env_steps=env_steps,
        seed=several[0],
        engine=EngineSpec(device=device, learner=learner),
        exploration=exploration,
        origin=origin,
    )
    refuse_unknown_env(world)
    refuse_budget_without_episode(world, env_steps)
    chosen = with_engine(spec, engine)
    return [replace(chosen, seed=seed) for seed in several]


def exploration_of(noise: str, correlation: DurationLike | None = None, order: int | None = None) -> Exploration | None:
    """The noise of a name, with its correlation time, and of autoregressive noise its order.

    Raises:
        InputError: if there is no such noise, or it has no such option.
    """
    if noise not in NOISES:
        raise InputError(f"{noise!r} is not a noise: give {', '.join(NOISES)}.")
    if noise != "autoregressive" and order is not None:
        raise InputError(f"order is {order}: only autoregressive noise has one.")
    if noise == "white":
        if correlation is not None:
            raise InputError(f"correlation is {correlation}: white noise has none, so give a noise as well.")
        return None
    if noise == "pink":
        return Pink() if correlation is None else Pink(slowest=correlation)
    if correlation is None:
        raise InputError(f"correlation is missing: {noise} noise needs its time, such as 100ms.")
    if noise == "ornstein-uhlenbeck":
        return OrnsteinUhlenbeck(correlation)
    return AutoRegressive(2 if order is None else order, correlation)
