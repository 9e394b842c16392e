"""The engine for robots: the real-time loop.

A robot cannot be put back, so its runs are resumed, but never identical. What a killed process had finished is in the
journal, and is learned from once more; only the episode in progress is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from cycletime.errors import InputError, RunError
from cycletime.training.checkpoints import tree_from_arrays
from cycletime.training.engine import PROBE_S, Arrays, Chunk, Cost, Engine, EnvInfo, RunBatch
from cycletime.training.journal import EpisodeRecord
from cycletime.training.machine import check_device
from cycletime.training.spec import RunSpec
from cycletime.training.stepped_engine import as_chunk
from cycletime.training.worlds import ActionBounds, ClosedFormWorld, RobotEnv, make_env

if TYPE_CHECKING:
    import gymnasium

    from cycletime.robots.calibration import Calibration
    from cycletime.robots.real_time_loop import RealTimeLoop

Recall: TypeAlias = Callable[[], Iterable[EpisodeRecord]]
Keep: TypeAlias = Callable[[EpisodeRecord], None]


@dataclass(frozen=True)
class RealTimeEngine(Engine):
    name: ClassVar[str] = "real-time"

    def refusal(self, spec: RunSpec) -> str | None:
        world = spec.world
        if isinstance(world, ClosedFormWorld):
            return f"{world.name!r} is a task in closed form: the engine real-time is for environments of robots."
        if spec.num_envs > 1:
            return f"num_envs is {spec.num_envs}: a robot is one environment, so leave it out."
        if spec.engine.learner == "background" and isinstance(world, RobotEnv) and world.robot == "lockstep":
            return "learner is 'background': in lock-step the robot waits for the agent, so learn inline."
        return None

    def make_batch(self, specs: Sequence[RunSpec]) -> RealTimeBatch:
        spec = self.single_run(specs)
        return RealTimeBatch(spec, make_env(spec.world, spec.dt))

    def cost(self, spec: RunSpec, try_s: float = PROBE_S) -> Cost:
        """The robot's own time, without its resets: nothing is moved to find out."""
        return Cost(agent_step_s=float(spec.dt), program_s=0.0)


@dataclass(frozen=True, eq=False)
class RealTimeBatch(RunBatch):
    spec: RunSpec
    env: gymnasium.Env[Any, Any]
    """A `RealTimeEnv`, closed with the batch."""
    say: Callable[[str], object] = lambda sentence: None
    _journal: list[tuple[Recall, Keep]] = field(default_factory=lambda: [(tuple, lambda episode: None)], init=False)
    """Of a run that is only tried, none."""

    def __post_init__(self) -> None:
        """Refuse what this engine cannot compute; the robot stands when that is refused."""
        try:
            check_device(self.spec.engine.device)
            world, env_dt, where = self.spec.world, self.loop.env_dt, self.loop.robot.where
            if world.env_dt is not None and world.env_dt != env_dt:
                raise InputError(f"The run's env_dt is {world.env_dt}, and {self.env.unwrapped} has {env_dt}.")
            if isinstance(world, RobotEnv) and where != world.where:
                raise InputError(f"The run is for a {world.where}, and {self.env.unwrapped} says that it is a {where}.")
        except InputError:
            self.env.close()
            raise

    @cached_property
    def loop(self) -> RealTimeLoop:
        from cycletime.robots.real_time_loop import RealTimeLoop

        return RealTimeLoop(
            env=self.env,
            agent=self.spec.bound_agent,
            dt=self.spec.dt,
            env_steps=self.spec.env_steps,
            learner=self.spec.engine.learner,
            say=self.say,
        )

    @cached_property
    def calibration(self) -> Calibration:
        return self.loop.calibrate()

    @cached_property
    def env_infos(self) -> tuple[EnvInfo]:  # type: ignore[override]
        from cycletime.tasks.timing_contract import timing_contract

        info = EnvInfo(
            provenance=self.loop.robot.where,
            env_dt=self.loop.env_dt,
            cycle_steps=self.loop.cycle_steps,
            bounds=ActionBounds.of(self.env),
            contract=timing_contract(self.env, self.loop.env_dt),
            remarks=lambda: ("a robot is never in the same state twice",),
        )
        return (info,)

    def keep_journal(self, run: int, recall: Recall, keep: Keep) -> None:
        self._journal[:] = [(recall, keep)]

    def chunks(self, starts: Mapping[int, Arrays | None]) -> Iterator[Mapping[int, Chunk | RunError]]:
        ((recall, keep),) = self._journal
        for arrays in starts.values():
            loop, seed = self.loop, self.spec.seed
            _ = self.calibration
            position = None if arrays is None else tree_from_arrays(loop.start(seed), arrays)
            yield from ({0: as_chunk(each)} for each in loop.run(seed, position, recalled=recall(), keep=keep))

    def close(self) -> None:
        self.env.close()
