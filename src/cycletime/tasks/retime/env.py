"""Environments with another time step: `retime` makes them, `compare_worlds` plays one beside its original."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from math import inf
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import TimeLimit

from cycletime.duration import Duration, DurationLike, cycle_steps
from cycletime.errors import InputError
from cycletime.tasks.render import frame_rate
from cycletime.tasks.retime.reward_terms import Clock, MujocoClock, TimeStep, choose_time_step, find_retiming, scaling
from cycletime.tasks.time_step import duration_text, whole_steps, wrapper_layers


class Retime(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An environment whose step is `env_dt`, with rewards that stay comparable per second."""

    time_step: TimeStep
    """The physics step and the frame skip that were chosen."""

    def __init__(self, env: gym.Env[Any, Any], env_dt: DurationLike, physics_dt: DurationLike | None = None) -> None:
        """Change the time step of the wrapped environment, in place."""
        RecordConstructorArgs.__init__(self, env_dt=duration_text(env_dt), physics_dt=duration_text(physics_dt))
        gym.Wrapper.__init__(self, env)
        refuse_second_retiming(env)
        if env.spec is None:
            raise InputError(f"{env} has no spec that says what it is: make it with retime(id, env_dt).")
        retiming = find_retiming(env.spec.id)
        self._clock = retiming.clock
        own = self._clock.read(env.unwrapped)
        self.time_step = choose_time_step(own, env_dt, physics_dt, self._clock.skips_frames)
        self._scaling = scaling(retiming.terms, own, self.time_step)
        self._is_changed = self.time_step != own
        self._set_time_step()

    @property
    def env_dt(self) -> float:
        """The environment's time step in seconds."""
        return float(self.time_step.env_dt)

    @property
    def dt(self) -> float:
        """The same, under the name by which `CycleTime` asks how long a step lasts."""
        return self.env_dt

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ANN401
        """One step of `env_dt`; the summands of the reward in ``info`` are multiplied like the reward."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        reward, info = self._scaling.apply(float(reward), info)
        return observation, reward, terminated, truncated, info

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the time step again, since Gymnasium unpickles an environment by calling its constructor."""
        self.__dict__.update(state)
        self._set_time_step()

    def _set_time_step(self) -> None:
        if not self._is_changed:
            return
        env = self.env.unwrapped
        self._clock.write(env, self.time_step)
        # A dictionary of this instance's own: the one of the class belongs to every other environment of its kind.
        env.metadata = env.metadata | {"render_fps": frame_rate(self.env_dt)}


def refuse_second_retiming(env: gym.Env[Any, Any]) -> None:
    """Refuse a time step on top of another, since the environment's own physics step is no longer known."""
    before = next((layer for layer in wrapper_layers(env) if isinstance(layer, Retime)), None)
    if before is not None:
        raise InputError(f"{env} was retimed to {before.time_step.env_dt} already: start from its plain id.")


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
    if isinstance(_clock_of(env_id), MujocoClock) and find_spec("mujoco") is None:
        raise InputError("MuJoCo is not installed: pip install 'cycletime[mujoco]'.")
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


@dataclass(frozen=True)
class Episode:
    """What one episode came to."""

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
