"""The numbers shown of a robot's run, and the observer that keeps them up to date.

Updating them takes microseconds of a cycle. Drawing takes milliseconds, in which Python does nothing else, so another
process does it.
"""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from cycletime.training.journal import TIMED_PARTS, Cycle, EpisodeRecord, JournalEntry, TimingMeter, TimingSummary
from cycletime.training.observers import TrainingObserver

if TYPE_CHECKING:
    from cycletime.robots.calibration import Calibration  # which loads JAX

REFRESH_S = 0.25
"""Between two boards, at least."""
_RECENT_EPISODES = 40
"""Episodes whose returns are shown."""
UNKNOWN = "not told"


@dataclass(frozen=True)
class StatusBoard:
    title: str
    env_steps: int
    done_steps: int = 0
    phase: str = "starting"
    safety: str = UNKNOWN
    episode: int = 0
    """Counted from 1; 0 before the first."""
    return_now: float = 0.0
    returns: tuple[float, ...] = ()
    """Of the last finished episodes."""
    best: float | None = None
    stops: int = 0
    """Episodes that a safety mode cut short."""
    updates: int = 0
    """Updates while the robot stood."""
    cycles: int = 0
    overruns: int = 0
    times_ms: Mapping[str, tuple[float | None, ...]] | None = None
    """Now, mean, p99 and worst of each part of a cycle; None where unknown."""

    def after(self, entries: Iterable[JournalEntry]) -> StatusBoard:
        """The board of a run that goes on after the episodes of its journal."""
        episodes = [entry.episode for entry in entries]
        if not episodes:
            return self
        returns = [episode.undiscounted_return for episode in episodes]
        return replace(
            self,
            done_steps=episodes[-1].run_env_steps,
            returns=tuple(returns[-_RECENT_EPISODES:]),
            best=max(returns),
            stops=sum(map(was_stopped, episodes)),
        )

    def as_line(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_line(cls, line: str) -> StatusBoard:
        data = json.loads(line)
        return cls(**(data | {"returns": tuple(data["returns"])}))


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


class BoardObserver(RobotObserver):
    """Keeps a status board up to date, and prints a line per episode."""

    def __init__(
        self,
        board: StatusBoard,
        cycle_steps: int,
        show: Callable[[StatusBoard], None],
        say: Callable[[str], None],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`show` gets a board now and then, `say` a line after each episode and for news."""
        self.board = board
        self._cycle_steps, self._show, self._say, self._now_s = cycle_steps, show, say, now_s
        self._meter = TimingMeter()
        self._returns: deque[float] = deque(board.returns, maxlen=_RECENT_EPISODES)
        self._due_s = -math.inf

    def calibrated(self, calibration: Calibration) -> None:
        took_ms = 1000 * calibration.in_cycle_s
        if took_ms:
            self._say(
                f"99 of 100 cycles need {took_ms:.2f} ms for their work, {calibration.share:.0%} of {calibration.dt}"
            )
        else:
            self._say("the robot waits for the agent, whose work takes none of its time")
        self._update(phase="calibrated")

    def episode_started(self, episode: int) -> None:
        self._update(phase="to the first pose", episode=episode + 1, return_now=0.0)

    def cycle_finished(self, cycle: Cycle, reward: float, info: Mapping[str, Any]) -> None:
        self._meter.add(cycle)
        before = self.board
        self.board = replace(
            before,
            phase="driving",
            safety=str(info.get("safety_mode", UNKNOWN)),
            done_steps=before.done_steps + self._cycle_steps,
            return_now=before.return_now + reward,
        )
        if self._now_s() >= self._due_s:
            self._update()

    def episode_finished(self, episode: EpisodeRecord) -> None:
        total = episode.undiscounted_return
        self._returns.append(total)
        best = total if self.board.best is None else max(total, self.board.best)
        self._say(episode_line(episode))
        self._update(
            phase="stands",
            done_steps=episode.run_env_steps,
            returns=tuple(self._returns),
            best=best,
            stops=self.board.stops + was_stopped(episode),
            safety=episode.ended_by if was_stopped(episode) else self.board.safety,
            return_now=total,
        )

    def learning_started(self) -> None:
        self._update(phase="learning")

    def learning_finished(self) -> None:
        self._update(updates=self.board.updates + 1)

    def _update(self, **changes: Any) -> None:  # noqa: ANN401 - fields of a board
        timing = self._meter.summary
        times_ms = {name: _in_ms(timing, name) for name in TIMED_PARTS}
        self.board = replace(self.board, cycles=timing.cycles, overruns=timing.overruns, times_ms=times_ms, **changes)
        self._due_s = self._now_s() + REFRESH_S
        self._show(self.board)


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


def _in_ms(timing: TimingSummary, name: str) -> tuple[float | None, ...]:
    spread = getattr(timing, name.removesuffix("_s"))
    values = (spread.now_s, spread.mean_s, spread.p99_s, spread.worst_s)
    return tuple(None if math.isnan(each) else round(1000 * each, 4) for each in values)
