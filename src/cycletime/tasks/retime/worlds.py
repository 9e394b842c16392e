"""How much another time step changes an environment's world: the same torques, at the old and at the new step.

Rewards are sampled more often, and a shorter physics step also integrates the same equations, but more finely. For a
chaotic body the second difference grows without bound, so what to compare is the distribution of returns over seeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gymnasium.envs.registration import EnvSpec

from cycletime.duration import Duration, DurationLike, cycle_steps
from cycletime.tasks.retime.clocks import TimeStep
from cycletime.tasks.retime.making import own_time_step, retime
from cycletime.tasks.retime.wrapper import Retime


@dataclass(frozen=True)
class Episode:
    """What one episode came to."""

    time_step: TimeStep
    """The physics step and the frame skip that it was run with."""
    total_reward: float
    """Its undiscounted return."""
    lasted: Duration
    """How long it lasted."""
    terminated: bool
    """Whether it ended on its own, and not by the time limit."""


@dataclass(frozen=True)
class WorldComparison:
    """One episode with the environment's own time step and one with another, under the same torques."""

    own: Episode
    """The episode with the environment's own time step."""
    retimed: Episode
    """The episode with the other one."""

    @property
    def is_same_physics(self) -> bool:
        """Whether both integrate with the same physics step; then both went through the same states."""
        return self.own.time_step.physics_dt == self.retimed.time_step.physics_dt


def compare_worlds(
    env_id: str | EnvSpec,
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
