"""What a robot is for the real-time loop: a Gymnasium environment whose world does not wait, with `step` in two parts.

`send` begins to do an action and returns at once, `receive` tells what has become of it. Between them the loop learns,
and waits for the next point of its grid; a plain `step` is one after the other, with that wait between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from gymnasium import spaces

from cycletime.robots.clock import MonotonicClock

Where: TypeAlias = Literal["real robot", "simulated robot"]
"""Where results come from."""


@runtime_checkable
class RealTimeEnv(Protocol):
    """What the loop asks of a robot, beside what Gymnasium does.

    ``info`` may tell: ``observed_s``, when the newest state was measured or came, by the environment's clock;
    ``packages`` and ``missed_packages``, states that came since the last time and that got lost; and ``safety_mode``,
    in a word. What is missing is recorded as unknown.
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
    def where(self) -> Where:
        """Where results come from."""

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Bring the robot to its first pose, and begin an episode when it stands there; takes as long as it takes."""

    def send(self, action: Any) -> None:  # noqa: ANN401 - any action space
        """Do this from now on, until something else is sent; return at once."""

    def receive(self, env_steps: int = 1) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """What there is to see now, as from Gymnasium's `step`, without waiting.

        `env_steps` have passed since the last time: more than one where the loop came late, and the reward is for all
        of them. An episode's end brings the robot to a stand.
        """

    def close(self) -> None:
        """Let the robot stand, and let go of it."""
