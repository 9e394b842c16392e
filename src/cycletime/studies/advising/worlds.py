"""What has to be known of a world before cycle times are compared in it.

An action that is held all the time is the same at every cycle time. So two episodes with it, from the same seed, must
earn the same at two cycle times; where they do not, returns depend on the cycle time itself, and cannot be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, isclose, lcm

import numpy as np

from cycletime.duration import Duration, cycle_steps
from cycletime.loops.action_bounds import ActionBounds, observation_size_of
from cycletime.runs.worlds import ClosedFormWorld, World, make_env

_HELD = 0.3
"""The action, as a part of the strongest one."""
_LEAST_STEPS, _MOST_STEPS = 500, 20_000
"""Environment steps of an episode that is tried: enough to notice, and no more than takes seconds."""
_CLOSE = 1e-2
"""Compiled programs of different lengths round differently, and some worlds make much of it."""


@dataclass(frozen=True)
class WorldFacts:
    """What is known of a world."""

    env_dt: Duration
    """Its time step."""
    observation_size: int
    """Numbers in an observation."""
    action_size: int
    """Numbers in an action."""


def facts_of(world: World, dt: Duration) -> WorldFacts:
    """What is known of a world, which may have to be made at a cycle time for it.

    Raises:
        InputError: if there is no such environment, or not at this cycle time.
    """
    if isinstance(world, ClosedFormWorld):
        return WorldFacts(world.env_dt, world.task.observation_size, world.task.action_size)
    env = make_env(world, dt)
    try:
        return WorldFacts(Duration(env.get_wrapper_attr("env_dt")), observation_size_of(env), ActionBounds.of(env).size)
    finally:
        env.close()


def returns_are_comparable(world: World, env_dt: Duration, dts: Sequence[Duration]) -> bool | None:
    """Whether a held action earns the same at all cycle times.

    None where that cannot be told: the same seed does not give the same episode, or the cycle times have no common
    multiple that is soon reached.
    """
    together = lcm(*(cycle_steps(dt, env_dt) for dt in dts))
    if together > _MOST_STEPS:
        return None
    until = together * ceil(_LEAST_STEPS / together)
    first, again = (_held_return(world, dts[0], until) for _ in range(2))
    if first != again:
        return None
    return all(isclose(_held_return(world, dt, until), first, rel_tol=_CLOSE, abs_tol=_CLOSE) for dt in dts[1:])


def _held_return(world: World, dt: Duration, until_steps: int) -> float:
    """What is earned by holding one action, until an episode's end or for so many environment steps."""
    env = make_env(world, dt)
    try:
        bounds = ActionBounds.of(env)
        action = bounds.reach(np.full(bounds.size, _HELD))
        env.reset(seed=0)
        total, done, over = 0.0, 0, False
        while not over and done < until_steps:
            _, reward, terminated, truncated, info = env.step(action)
            total, done, over = total + float(reward), info["env_steps"], terminated or truncated
        return total
    finally:
        env.close()
