"""Who follows a run on a robot, and the lines that are printed of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cycletime.training.journal import Cycle, EpisodeRecord, TimingMeter
from cycletime.training.observers import TrainingObserver

if TYPE_CHECKING:
    from cycletime.robots.calibration import Calibration  # which loads JAX


class RobotObserver(TrainingObserver):
    """An observer of a run on a robot: what it does not override does nothing.

    The loop calls it in the time of the cycle: what is slow belongs into a thread of its own.
    """

    def calibrated(self, calibration: Calibration) -> None:
        """`act` and `learn` were timed, before the robot moves."""

    def episode_started(self, episode: int) -> None:
        """The robot is on its way to the first pose of an episode, counted from 0."""

    def cycle_finished(self, cycle: Cycle, reward: float, info: Mapping[str, Any]) -> None:
        """A cycle's work is done; with the reward of the cycle before, and the environment's newest info."""

    def episode_finished(self, episode: EpisodeRecord) -> None:
        """An episode is over and in the journal, if there is one; the robot comes to a stand."""

    def learning_started(self) -> None:
        """The robot stands, and the agent learns if that is due."""

    def learning_finished(self) -> None:
        """An update was due, and is done."""


class EpisodePrinter(RobotObserver):
    """Says a line for each episode, and what the user should know."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def calibrated(self, calibration: Calibration) -> None:
        took_ms = 1000 * calibration.in_cycle_s
        if took_ms:
            self._say(
                f"99 of 100 cycles need {took_ms:.2f} ms for their work, {calibration.share:.0%} of {calibration.dt}"
            )
        else:
            self._say("the robot waits for the agent, whose work takes none of its time")

    def episode_finished(self, episode: EpisodeRecord) -> None:
        self._say(episode_line(episode))


def was_stopped(episode: EpisodeRecord) -> bool:
    """Whether a safety mode cut it short."""
    return episode.ended_by not in ("terminated", "truncated")


def episode_line(episode: EpisodeRecord) -> str:
    meter = TimingMeter()
    meter.add_all(episode.cycles)
    timing = meter.summary
    late = timing.wake_error
    return (
        f"episode {episode.number + 1}: return {episode.undiscounted_return:,.2f} in {episode.agent_steps:,} cycles, "
        f"{1000 * late.mean_s:.2f} ms late on average and {1000 * late.worst_s:.2f} at worst, "
        f"{timing.overruns:,} overruns, {episode.ended_by}"
    )
