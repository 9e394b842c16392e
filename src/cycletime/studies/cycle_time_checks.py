"""What is checked of cycle times before they are compared: comparable returns, and time enough to act and learn.

An action that is held all the time is the same at every cycle time. So two episodes with it, from the same seed, must
earn the same at two cycle times; where they do not, returns depend on the cycle time itself, and cannot be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import ceil, isclose, lcm
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from cycletime.agents import Agent
from cycletime.agents.agent import cycles_between_updates
from cycletime.duration import Duration, cycle_steps
from cycletime.training.latency import TimingConditions, judge_timing, measure_agents
from cycletime.training.machine import cores, processor, system_load
from cycletime.training.spec import LearnerName
from cycletime.training.worlds import (
    ActionBounds,
    ClosedFormWorld,
    ForeignEnv,
    World,
    make_env,
    observation_size,
    time_step,
)

_HELD_ACTION = 0.3
_MIN_STEPS, _MAX_STEPS = 500, 20_000
"""Environment steps of an episode that is tried: enough to notice, and no more than takes seconds."""
_TOLERANCE = 1e-2
"""Compiled programs of different lengths round differently, and some worlds make much of it."""


@dataclass(frozen=True)
class WorldFacts:
    env_dt: Duration
    observation_size: int
    action_size: int


def world_facts(world: World, dt: Duration, *, discrete: bool = False) -> WorldFacts:
    """What is to be known of a world; with `discrete` its actions may be any, and only a trainer knows the sizes."""
    if discrete:
        return WorldFacts(time_step(world, dt), 0, 0)
    if isinstance(world, ClosedFormWorld):
        return WorldFacts(world.env_dt, world.task.observation_size, world.task.action_size)
    with closing(make_env(world, dt)) as env:
        env_dt = Duration.of_seconds(env.get_wrapper_attr("env_dt"))
        return WorldFacts(env_dt, observation_size(env), ActionBounds.of(env).size)


def returns_are_comparable(world: World, env_dt: Duration, dts: Sequence[Duration]) -> bool | None:
    """Whether a held action earns the same at all cycle times; None where that cannot be told."""
    if isinstance(world, ForeignEnv):
        return None
    together = lcm(*(cycle_steps(dt, env_dt) for dt in dts))
    if together > _MAX_STEPS:
        return None
    until = together * ceil(_MIN_STEPS / together)
    first, again = (_held_return(world, dts[0], until) for _ in range(2))
    if first != again:
        return None
    return all(isclose(_held_return(world, dt, until), first, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE) for dt in dts[1:])


def _held_return(world: World, dt: Duration, until_steps: int) -> float:
    with closing(make_env(world, dt, discrete=True)) as env:
        if isinstance(env.action_space, Box):
            bounds = ActionBounds.of(env)
            action = bounds.reach(np.full(bounds.size, _HELD_ACTION))
        else:
            env.action_space.seed(0)
            action = env.action_space.sample()
        env.reset(seed=0)
        total, done, over = 0.0, 0, False
        while not over and done < until_steps:
            _, reward, terminated, truncated, info = env.step(action)
            total, done, over = total + float(reward), info["env_steps"], terminated or truncated
        return total


MEASURE_DURATION_S = 1.0
"""How long each call is repeated, and at least five times."""


@dataclass(frozen=True)
class RealTimeFit:
    """Whether a cycle time leaves time to act and learn; times are 99th percentiles."""

    act_s: float
    learn_s: float
    act_share: float
    learn_share: float
    """The average `learn` over the time between two of them."""
    way: LearnerName | None
    """Inline: both fit into the cycle in which learning falls due. Background: `act` fits into the cycle, and learning
    beside it is done before the next. A fifth of each cycle stays free, as `robot run` asks for."""

    @property
    def fits(self) -> bool:
        return self.way is not None


def measure_real_time_fit(
    agents: Mapping[Duration, Agent], facts: WorldFacts, tell: Callable[[str], object], num_envs: int
) -> dict[Duration, RealTimeFit]:
    sizes = facts.observation_size, facts.action_size
    act, learn = measure_agents(agents, *sizes, MEASURE_DURATION_S, tell, num_envs)
    found = {}
    for dt, agent in agents.items():
        timing = judge_timing(dt, cycles_between_updates(agent, num_envs), act, learn[dt], TimingConditions())
        way: LearnerName | None = "inline" if timing.inline.fits else "background" if timing.background.fits else None
        found[dt] = RealTimeFit(act.p99_s, learn[dt].p99_s, timing.act.share, timing.background.share, way)
    return found


def describe_machine() -> dict[str, Any]:
    return {"processor": processor(), "cores": cores(), "load": system_load()}
