"""The engine for robots: the real-time loop.

A robot cannot be put back, so its runs are resumed, but never identical. What a killed process had finished is in the
journal, and is learned from once more; only the episode in progress is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.robots.status_board import RobotObserver
from cycletime.training.checkpoints import tree_from_arrays
from cycletime.training.engine import Arrays, Chunk, Cost, EpisodeJournal, SingleRunBatch, SingleRunEngine
from cycletime.training.journal import EpisodeRecord
from cycletime.training.machine import check_device
from cycletime.training.spec import RunSpec
from cycletime.training.stepped_engine import as_chunk
from cycletime.training.worlds import ActionBounds, ClosedFormWorld, RobotEnv, make_env

if TYPE_CHECKING:
    import gymnasium

    from cycletime.robots.calibration import Calibration
    from cycletime.robots.real_time_loop import RealTimeLoop

_NEVER_IDENTICAL = "a robot is never in the same state twice"


@dataclass(frozen=True)
class RealTimeEngine(SingleRunEngine):
    """Runs on robots, one at a time."""

    name: ClassVar[str] = "real-time"

    def refusal(self, spec: RunSpec) -> str | None:
        world = spec.world
        if isinstance(world, ClosedFormWorld):
            return f"{world.name!r} is a task in closed form: the engine real-time is for environments of robots."
        if spec.engine.learner == "background" and isinstance(world, RobotEnv) and world.robot == "lockstep":
            return "learner is 'background': in lock-step the robot waits for the agent, so learn inline."
        return None

    def group(self, specs: Sequence[RunSpec]) -> RealTimeBatch:
        spec = self._only(specs)
        return RealTimeBatch(spec, make_env(spec.world, spec.dt))

    def cost(self, spec: RunSpec) -> Cost:
        """The robot's own time, without its resets: nothing is moved to find out."""
        return Cost(agent_step_s=float(spec.dt), program_s=0.0)


@dataclass(frozen=True, eq=False)
class RealTimeBatch(SingleRunBatch):
    """A run on a robot, and what its files tell of that."""

    spec: RunSpec
    env: gymnasium.Env[Any, Any]
    """A `RealTimeEnv`, closed with the batch."""
    observer: RobotObserver = field(default_factory=RobotObserver)
    _journals: dict[int, EpisodeJournal] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Refuse what this engine cannot compute; the robot stands when that is refused."""
        try:
            check_device(self.spec.engine.device)
            _ = self.loop
            self._check_world()
        except InputError:
            self.env.close()
            raise

    def _check_world(self) -> None:
        world = self.spec.world
        if world.env_dt is not None and world.env_dt != self.env_dt:
            raise InputError(f"The run's env_dt is {world.env_dt}, and {self.env.unwrapped} has {self.env_dt}.")
        if isinstance(world, RobotEnv) and self.where != _provenance(world):
            raise InputError(
                f"The run is for a {_provenance(world)}, and {self.env.unwrapped} says that it is a {self.where}."
            )

    @cached_property
    def loop(self) -> RealTimeLoop:
        from cycletime.robots.real_time_loop import RealTimeLoop

        return RealTimeLoop(
            env=self.env,
            agent=self.spec.bound_agent,
            dt=self.spec.dt,
            env_steps=self.spec.env_steps,
            learner=self.spec.engine.learner,
            observer=self.observer,
        )

    @cached_property
    def calibration(self) -> Calibration:
        """What `act` and `learn` take here, measured once; the robot stands meanwhile."""
        return self.loop.calibrate()

    @property
    def where(self) -> str:
        return self.loop.robot.where

    @property
    def simulators(self) -> tuple[str, ...]:
        return ()

    @property
    def env_dt(self) -> Duration:
        return self.loop.env_dt

    @property
    def cycle_steps(self) -> int:
        return self.loop.cycle_steps

    @property
    def longest_episode_steps(self) -> int | None:
        return None

    @property
    def bounds(self) -> ActionBounds:
        return ActionBounds.of(self.env)

    @property
    def fingerprint(self) -> str:
        """Empty: a robot is not moved to try it out."""
        return ""

    @property
    def remarks(self) -> tuple[str, ...]:
        return (_NEVER_IDENTICAL,)

    def keep_journal(self, run: int, journal: EpisodeJournal) -> None:
        self._journals[run] = journal

    def _chunks(self, arrays: Arrays | None) -> Iterator[Chunk]:
        loop, journal = self.loop, self._journals.get(0)
        _ = self.calibration
        position = None if arrays is None else tree_from_arrays(loop.start(self.spec.seed), arrays)
        recalled = () if journal is None else journal.episodes()
        keep = _discard if journal is None else journal.append
        yield from map(as_chunk, loop.run(self.spec.seed, position, recalled=recalled, keep=keep))

    def close(self) -> None:
        self.env.close()


def _provenance(world: RobotEnv) -> str:
    return "real robot" if world.robot == "real" else "simulated robot"


def _discard(episode: EpisodeRecord) -> None:
    """Runs that are only tried have no journal."""
