"""Who is told what happens while a robot is trained: a live view, a log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from cycletime.robots.calibration import Calibration
    from cycletime.training.journal import Cycle, EpisodeRecord


class Observer(Protocol):
    """Is called from the loop, in the time of the cycle: what is slow belongs into a thread of its own."""

    def calibrated(self, calibration: Calibration) -> None:
        """What `act` and `learn` take here, before the robot moves."""

    def began(self, episode: int) -> None:
        """The robot is on its way to the first pose of an episode, counted from 0."""

    def cycled(self, cycle: Cycle, reward: float, info: Mapping[str, Any]) -> None:
        """A cycle's work is done; with the reward of the cycle before, and what the environment told last."""

    def ended(self, episode: EpisodeRecord) -> None:
        """An episode is over, and the robot comes to a stand; it is in the journal, if there is one."""

    def learning(self) -> None:
        """The robot stands, and the agent learns if that is due."""

    def learned(self) -> None:
        """It was due, and is done."""


class NullObserver:
    """Is told, and does nothing."""

    def calibrated(self, calibration: Calibration) -> None:
        """Nothing."""

    def began(self, episode: int) -> None:
        """Nothing."""

    def cycled(self, cycle: Cycle, reward: float, info: Mapping[str, Any]) -> None:
        """Nothing."""

    def ended(self, episode: EpisodeRecord) -> None:
        """Nothing."""

    def learning(self) -> None:
        """Nothing."""

    def learned(self) -> None:
        """Nothing."""
