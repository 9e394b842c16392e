"""Prints the tables of docs/retime.md: ``python docs/retime_tables.py [ID ...]``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import zip_longest
from math import sqrt
from statistics import fmean, stdev
from typing import Any

import gymnasium as gym

from cycletime.duration import Duration, DurationLike, cycle_steps
from cycletime.errors import InputError
from cycletime.tasks.retime import RETIMINGS, Retime, TimeStep, find_retiming, retime

SEEDS = range(30)


def own_time_step(env_id: str, **make_kwargs: Any) -> TimeStep:  # noqa: ANN401
    """The physics step and the frame skip that an environment has on its own."""
    with closing(gym.make(env_id, max_episode_steps=-1, **make_kwargs)) as env:
        return find_retiming(env_id).clock.read(env.unwrapped)


def terms_table(env_ids: Sequence[str]) -> str:
    """Own time steps and reward terms, one row per term."""
    lines = [
        "| environment | physics_dt x frame skip | episode | reward term | kind | in `info` |",
        "|---|---|---|---|---|---|",
    ]
    for env_id in env_ids:
        step = own_time_step(env_id)
        head = f"{env_id} | {step.physics_dt} x {step.frame_skip} = {step.env_dt} | {own_time_limit(env_id, step)}"
        for term in RETIMINGS[env_id].terms:
            formula = term.formula.replace("|", "\\|")
            lines.append(f"| {head} | {formula} | {term.kind.value} | {f'`{term.info}`' if term.info else 'no'} |")
            head = " | |"
    return "\n".join(lines)


def worlds_table(env_ids: Sequence[str]) -> str:
    """Returns of the same random torques at three time steps: mean and standard error, one row per time step."""
    lines = ["| environment | env_dt | physics_dt | return | apart | lasted |", "|---|---|---|---|---|---|"]
    for env_id in env_ids:
        own = own_time_step(env_id)
        finer = [Duration(own.physics_dt.exact_s / parts) for parts in (1, 4)]
        env_dts = dict.fromkeys([own.env_dt, *finer])
        rows = [_row([compare_worlds(env_id, env_dt, seed=seed) for seed in SEEDS]) for env_dt in env_dts]
        lines += [f"| {head} | {row} |" for head, row in zip_longest([env_id], rows, fillvalue="")]
    return "\n".join(lines)


def _row(worlds: Sequence[WorldComparison]) -> str:
    step = worlds[0].retimed.time_step
    returns = [world.retimed.total_reward for world in worlds]
    apart = fmean(abs(world.retimed.total_reward - world.own.total_reward) for world in worlds)
    lasted = fmean(float(world.retimed.lasted) for world in worlds)
    cells = f"{fmean(returns):.2f} +- {stdev(returns) / sqrt(len(returns)):.2f} | {apart:.2f} | {lasted:.3f} s"
    return f"{step.env_dt} | {step.physics_dt} | {cells}"


def own_time_limit(env_id: str, own: TimeStep) -> Duration | None:
    """How long an episode of the plain environment may last, if there is a limit."""
    steps = gym.spec(env_id).max_episode_steps
    return None if steps is None else own.env_dt * steps


@dataclass(frozen=True)
class Episode:
    time_step: TimeStep
    total_reward: float
    """Its undiscounted return."""
    lasted: Duration
    terminated: bool
    """Whether it ended on its own, and not by the time limit."""


@dataclass(frozen=True)
class WorldComparison:
    """One episode with the environment's own time step and one with another, under the same torques."""

    own: Episode
    retimed: Episode

    @property
    def is_same_physics(self) -> bool:
        """Whether both integrate with the same physics step; then both went through the same states."""
        return self.own.time_step.physics_dt == self.retimed.time_step.physics_dt


def compare_worlds(
    env_id: str,
    env_dt: DurationLike,
    *,
    physics_dt: DurationLike | None = None,
    time_limit: DurationLike | None = None,
    seed: int = 0,
    **make_kwargs: Any,  # noqa: ANN401 - whatever the environment takes
) -> WorldComparison:
    """Play the same random torques at the environment's own time step and at `env_dt`.

    The torques are a function of time: drawn anew after every own time step, and held in between. Therefore `env_dt`
    has to divide the own time step.
    """
    own_dt = own_time_step(env_id, **make_kwargs).env_dt
    hold_steps = cycle_steps(own_dt, env_dt)
    own = retime(env_id, own_dt, time_limit=time_limit, **make_kwargs)
    retimed = retime(env_id, env_dt, physics_dt=physics_dt, time_limit=time_limit, **make_kwargs)
    return WorldComparison(play_random_torques(own, 1, seed), play_random_torques(retimed, hold_steps, seed))


def play_random_torques(env: Retime, hold_steps: int, seed: int) -> Episode:
    """One episode of seeded random actions, each held for `hold_steps` environment steps; closes the environment."""
    env.reset(seed=seed)
    env.action_space.seed(seed)
    total_reward, env_steps, terminated, truncated = 0.0, 0, False, False
    while not (terminated or truncated):
        if env_steps % hold_steps == 0:
            action = env.action_space.sample()
        _, reward, terminated, truncated, _ = env.step(action)
        total_reward += reward
        env_steps += 1
    env.close()
    return Episode(env.time_step, total_reward, env.time_step.env_dt * env_steps, bool(terminated))


if __name__ == "__main__":
    chosen = sys.argv[1:] or list(RETIMINGS)
    try:
        print(terms_table(chosen), worlds_table(chosen), sep="\n\n")
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
