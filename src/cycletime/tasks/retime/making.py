"""Makes an environment with another time step: `retime`."""

from __future__ import annotations

from importlib.util import find_spec
from math import inf
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import TimeLimit

from cycletime.duration import Duration, DurationLike
from cycletime.errors import InputError
from cycletime.tasks.retime.clocks import Clock, MujocoClock, TimeStep
from cycletime.tasks.retime.table import find_retiming
from cycletime.tasks.retime.wrapper import Retime, refuse_second_retiming
from cycletime.tasks.time_step import whole_steps

_STEP_COUNTS = {"max_episode_steps": "time_limit", "frame_skip": "env_dt"}


def retime(
    env_id: str | EnvSpec,
    env_dt: DurationLike,
    *,
    physics_dt: DurationLike | None = None,
    time_limit: DurationLike | None = None,
    **make_kwargs: Any,  # noqa: ANN401 - whatever the environment takes
) -> Retime:
    """Make an environment whose step is `env_dt`, with rewards per second and episodes in seconds as they were.

    Args:
        env_id: A Gymnasium id with its version, such as 'Hopper-v5', or a spec.
        env_dt: The new time step, shorter or longer than the environment's own.
        physics_dt: The step of the simulation. By default the environment's own where that divides `env_dt`, and else
            the longest below it that does. Another physics step is another world: see `compare_worlds`.
        time_limit: After how long an episode is truncated; by default as long as for the plain environment.
            ``math.inf`` for no limit.
        make_kwargs: Further keywords for ``gymnasium.make``, such as ``render_mode``.

    Raises:
        InputError: if the environment is not known, or if a time is not a whole multiple where it has to be.
    """
    env = _make_plain(env_id, make_kwargs)
    refuse_second_retiming(env)
    limit_steps = _limit_steps(_own_limit(env_id, _clock_of(env_id).read(env.unwrapped)), Duration(env_dt), time_limit)
    if limit_steps is not None:
        env = TimeLimit(env, limit_steps)
    return Retime(env, env_dt, physics_dt)


def own_time_step(env_id: str | EnvSpec, **make_kwargs: Any) -> TimeStep:  # noqa: ANN401
    """The physics step and the frame skip that an environment has on its own."""
    env = _make_plain(env_id, make_kwargs)
    try:
        return _clock_of(env_id).read(env.unwrapped)
    finally:
        env.close()


def own_time_limit(env_id: str | EnvSpec, **make_kwargs: Any) -> Duration | None:  # noqa: ANN401
    """How long an episode of the plain environment may last, if there is a limit."""
    return _own_limit(env_id, own_time_step(env_id, **make_kwargs))


def _own_limit(env_id: str | EnvSpec, own: TimeStep) -> Duration | None:
    spec = env_id if isinstance(env_id, EnvSpec) else gym.spec(_name(env_id))
    return None if spec.max_episode_steps is None else own.env_dt * spec.max_episode_steps


def _clock_of(env_id: str | EnvSpec) -> Clock:
    return find_retiming(_name(env_id)).clock


def _make_plain(env_id: str | EnvSpec, make_kwargs: dict[str, Any]) -> gym.Env[Any, Any]:
    _refuse_missing_mujoco(_clock_of(env_id))
    for name, instead in _STEP_COUNTS.items():
        if name in make_kwargs:
            raise InputError(
                f"{name}={make_kwargs[name]!r} counts steps, whose length changes: give {instead} instead."
            )
    env: gym.Env[Any, Any] = gym.make(env_id, max_episode_steps=-1, **make_kwargs)
    return env


def _name(env_id: str | EnvSpec) -> str:
    if isinstance(env_id, EnvSpec):
        return env_id.id
    if isinstance(env_id, str):
        return env_id.rpartition(":")[2]  # 'module:Name-v0' lets Gymnasium import the module first
    raise InputError(f"{env_id!r} is neither an id such as 'Hopper-v5' nor a spec: of an environment, give its .spec.")


def _limit_steps(own_limit: Duration | None, env_dt: Duration, asked: DurationLike | None) -> int | None:
    if isinstance(asked, float) and asked == inf:
        return None
    limit = own_limit if asked is None else Duration(asked)
    return None if limit is None else whole_steps("time_limit", limit.exact_s, env_dt, least=1)


def _refuse_missing_mujoco(clock: Clock) -> None:
    if isinstance(clock, MujocoClock) and find_spec("mujoco") is None:
        raise InputError("MuJoCo is not installed: pip install 'cycletime[mujoco]'.")
