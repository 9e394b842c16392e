"""What a robot is for the real-time loop: a Gymnasium environment whose world does not wait, with `step` in two parts.

`send` begins to do an action and returns at once, `receive` tells what has become of it. Between them the loop learns,
and waits for the next point of its grid; a plain `step` is one after the other, with that wait between.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import gymnasium
from gymnasium import spaces
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker

from cycletime.errors import InputError
from cycletime.robots.clock import MonotonicClock
from cycletime.tasks.cycle_time import CycleTime
from cycletime.tasks.env_errors import EnvErrorWrapper
from cycletime.tasks.time_step import wrapper_layers

Provenance: TypeAlias = Literal["real robot", "simulated robot"]
"""Where results come from."""


_TRANSPARENT_WRAPPERS = (OrderEnforcing, PassiveEnvChecker, EnvErrorWrapper, CycleTime)
"""Wrappers that change neither actions nor observations; a loop that holds actions itself needs no `CycleTime`."""


@runtime_checkable
class SendReceiveEnv(Protocol):
    """A step in two parts: a robot's, or that of a wrapper which changes what goes to it or comes from it."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Bring the robot to its first pose, and begin an episode when it stands there; takes as long as it takes."""

    def send(self, action: Any) -> None:  # noqa: ANN401 - any action space
        """Do this from now on, until something else is sent; return at once."""

    def receive(self, env_steps: int = 1) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """What there is to see now, as from Gymnasium's `step`, without waiting.

        `env_steps` have passed since the last time: more than one where the loop came late, and the reward is for all
        of them. An episode's end brings the robot to a stand.
        """


@runtime_checkable
class RealTimeEnv(SendReceiveEnv, Protocol):
    """What the loop asks of a robot, beside what Gymnasium does.

    ``info`` may tell: ``observed_s``, when the newest state was measured or came, by the environment's clock;
    ``packages`` and ``missed_packages``, states that came since the last time and that got lost; and ``safety_mode``,
    in a word. What is missing is recorded as unknown. A robot that stops where it is told nothing for a while says for
    how long by an attribute ``holds_s``, see `action_hold_s`.
    """

    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    metadata: dict[str, Any]

    @property
    def dt(self) -> float:
        """The environment's time step in seconds: how often rewards are paid and an episode may end."""

    @property
    def clock(self) -> MonotonicClock:
        """The clock of its world: the machine's for a robot, and the simulator's where that waits for the agent."""

    @property
    def where(self) -> Provenance:
        """Where results come from."""

    def close(self) -> None:
        """Let the robot stand, and let go of it."""


def real_time_env_of(env: gymnasium.Env[Any, Any]) -> RealTimeEnv:
    """The robot inside of an environment."""
    robot = env.unwrapped
    if not isinstance(robot, RealTimeEnv):
        raise InputError(
            f"{env} is no environment for the real-time loop, which asks for send, receive, dt, clock and where: give "
            "one that has them, or another engine."
        )
    return robot


def action_hold_s(robot: RealTimeEnv) -> float:
    """For how long a robot goes on with an action that is not sent again; without an end where it does not say."""
    return float(getattr(robot, "holds_s", math.inf))


def send_receive_env_of(env: gymnasium.Env[Any, Any]) -> SendReceiveEnv:
    """The outermost layer of a robot's environment whose steps can be taken in two parts."""
    robot = real_time_env_of(env)
    for layer in wrapper_layers(env):
        if isinstance(layer, SendReceiveEnv):
            _refuse_around_cycle_time(layer)
            return layer
        if not isinstance(layer, _TRANSPARENT_WRAPPERS):
            raise InputError(
                f"{type(layer).__name__} is around {env.unwrapped}, and has no send and receive: the real-time loop "
                "would pass it by, so leave it out, or do what it does in the environment."
            )
    return robot


def _refuse_around_cycle_time(layer: gymnasium.Wrapper[Any, Any, Any, Any]) -> None:
    """Refuse what counts cycles: the loop takes the environment's own steps, and holds actions itself."""
    if any(isinstance(inner, CycleTime) for inner in wrapper_layers(layer)):
        raise InputError(
            f"{type(layer).__name__} is around a CycleTime: the real-time loop holds actions itself, so put it inside, "
            "where it counts the environment's own steps."
        )
