"""The wrapper that sets an environment's time step and multiplies its rewards.

Use `cycletime.tasks.retime.retime`, which also keeps the time limit in seconds; this class stands alone so that
``env.spec`` can name it and ``gymnasium.make(env.spec)`` can make the same environment again.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from cycletime.duration import DurationLike
from cycletime.errors import InputError
from cycletime.tasks.render import frame_rate
from cycletime.tasks.retime.clocks import TimeStep, choose_time_step
from cycletime.tasks.retime.rewards import scaling
from cycletime.tasks.retime.table import find_retiming
from cycletime.tasks.time_step import layers_of, recorded


class Retime(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An environment whose step is `env_dt`, with rewards that stay comparable per second."""

    time_step: TimeStep
    """The physics step and the frame skip that were chosen."""

    def __init__(self, env: gym.Env[Any, Any], env_dt: DurationLike, physics_dt: DurationLike | None = None) -> None:
        """Change the time step of the wrapped environment, in place."""
        RecordConstructorArgs.__init__(self, env_dt=recorded(env_dt), physics_dt=recorded(physics_dt))
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
    before = next((layer for layer in layers_of(env) if isinstance(layer, Retime)), None)
    if before is not None:
        raise InputError(f"{env} was retimed to {before.time_step.env_dt} already: start from its plain id.")
