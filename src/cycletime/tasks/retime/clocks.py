"""Where an environment keeps its time step, and which physics step and frame skip give the asked one.

An environment step is `frame_skip` physics steps: env_dt = physics_dt * frame_skip, in exact arithmetic. The physics
step is never made longer than the environment's own, since its model was tuned for that one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor
from typing import Any, ClassVar, Protocol

from cycletime.duration import Duration, DurationLike
from cycletime.errors import InputError


@dataclass(frozen=True)
class TimeStep:
    """One step of an environment."""

    physics_dt: Duration
    """How long one step of its simulation is."""
    frame_skip: int
    """How many of them one environment step takes."""

    @property
    def env_dt(self) -> Duration:
        """How long the environment step is."""
        return self.physics_dt * self.frame_skip


class Clock(Protocol):
    """Reads and sets the time step of an unwrapped environment."""

    @property
    def skips_frames(self) -> bool:
        """Whether an environment step may be several physics steps."""

    def read(self, env: Any) -> TimeStep:  # noqa: ANN401 - attributes that gymnasium.Env does not declare
        """The time step as it is."""

    def write(self, env: Any, step: TimeStep) -> None:  # noqa: ANN401
        """Set another time step."""


@dataclass(frozen=True)
class MujocoClock:
    """Environments derived from Gymnasium's ``MujocoEnv``: ``model.opt.timestep`` and ``frame_skip``."""

    skips_frames: ClassVar[bool] = True

    def read(self, env: Any) -> TimeStep:  # noqa: ANN401
        """The time step as it is.

        Raises:
            InputError: if the environment does not have it where it is looked for.
        """
        try:
            return TimeStep(Duration(float(env.model.opt.timestep)), int(env.frame_skip))
        except AttributeError:
            raise InputError(
                f"{env} has no model.opt.timestep and frame_skip: register it with clock=AttributeClock(name)."
            ) from None

    def write(self, env: Any, step: TimeStep) -> None:  # noqa: ANN401
        """Set another time step; the constructor is not used, since it asserts the frame rate of the default step."""
        env.model.opt.timestep = float(step.physics_dt)
        env.frame_skip = step.frame_skip


@dataclass(frozen=True)
class AttributeClock:
    """Environments that integrate once per step, over the number of seconds in an attribute."""

    name: str = "dt"
    """The attribute, such as Pendulum's ``dt`` or CartPole's ``tau``."""

    skips_frames: ClassVar[bool] = False

    def read(self, env: Any) -> TimeStep:  # noqa: ANN401
        """The time step as it is.

        Raises:
            InputError: if the environment does not have it where it is looked for.
        """
        if not hasattr(env, self.name):
            raise InputError(
                f"{env} has no attribute {self.name!r}: register it with the one that holds its time step."
            )
        return TimeStep(Duration(getattr(env, self.name)), 1)

    def write(self, env: Any, step: TimeStep) -> None:  # noqa: ANN401
        """Set another time step."""
        setattr(env, self.name, float(step.physics_dt))


def choose_time_step(
    own: TimeStep, env_dt: DurationLike, physics_dt: DurationLike | None, skips_frames: bool
) -> TimeStep:
    """The time step of `env_dt` with the asked physics step, or with the longest that is no longer than the own one.

    Where `env_dt` is a multiple of the own physics step this keeps it, and the simulated world is the same.

    Raises:
        InputError: if one of them is longer than the environment can have.
    """
    env_dt, longest = Duration(env_dt), own.physics_dt
    if not skips_frames and env_dt > longest:
        raise InputError(
            f"env_dt {env_dt} is longer than the {longest} of this environment, which integrates once per step: "
            f"give at most {longest}, and let an action last several steps."
        )
    if physics_dt is None:
        frames = ceil(env_dt / longest)
        return TimeStep(Duration(env_dt.exact_s / frames), frames)
    physics_dt = Duration(physics_dt)
    if physics_dt > longest:
        raise InputError(f"physics_dt {physics_dt} is longer than this environment's own {longest}: give at most that.")
    return TimeStep(physics_dt, _whole_frames(env_dt, physics_dt, skips_frames))


def _whole_frames(env_dt: Duration, physics_dt: Duration, skips_frames: bool) -> int:
    ratio = env_dt / physics_dt
    if not skips_frames and ratio != 1:
        raise InputError(
            f"physics_dt {physics_dt} differs from env_dt {env_dt}, and this environment integrates once per step: "
            f"leave physics_dt out."
        )
    if ratio.denominator == 1:
        return ratio.numerator
    fewer = max(1, floor(ratio))
    near = " and ".join(f"{Duration(env_dt.exact_s / n)} ({n} per step)" for n in (fewer, fewer + 1))
    raise InputError(f"env_dt {env_dt} is not a whole multiple of physics_dt {physics_dt}: the nearest are {near}.")
