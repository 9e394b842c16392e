"""What a robot is for the real-time loop: an environment whose world does not wait, with `step` in two parts."""

from __future__ import annotations

import math
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import gymnasium
from gymnasium import spaces

from cycletime.errors import InputError
from cycletime.robots.clock import MonotonicClock
from cycletime.tasks.delays import NOT_REAL_TIME, SendReceiveEnv

Provenance: TypeAlias = Literal["real robot", "simulated robot"]


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
    robot = env.unwrapped
    if not isinstance(robot, RealTimeEnv):
        raise InputError(f"{env} {NOT_REAL_TIME}")
    return robot


def action_hold_s(robot: RealTimeEnv) -> float:
    """For how long a robot goes on with an action that is not sent again; without an end where it does not say."""
    return float(getattr(robot, "holds_s", math.inf))
