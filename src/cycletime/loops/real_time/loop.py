"""The real-time loop: Algorithm 1 around a robot, which does not wait.

A cycle is: wake up at its deadline, see, act, send, and only then learn from the cycle before and wait. Deadlines are
absolute, t0 + n * dt on the clock of the robot's world. What happens when a cycle is late is decided in one place,
`cycletime.robots.clock.Beats`: points of the grid that are over are left out and never made up for in a burst. The
robot goes on with the last action, the rewards of the time that was missed are paid with the next ones, and a cycle
whose end was missed lasts until the next one's, which is an overrun.

Between two episodes the robot stands. There the episode is kept, the rest is learned, and chunks are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import jax.numpy as jnp

from cycletime.agents import Agent, Buffer
from cycletime.agents.checks import check_agent, check_counts, check_precision
from cycletime.agents.exploration import check_cycle
from cycletime.duration import Duration, cycle_steps
from cycletime.errors import InputError
from cycletime.loops.beginning import first_psi
from cycletime.loops.compilation_cache import keep_compiled_programs
from cycletime.loops.randomness import seed_key
from cycletime.loops.real_time import LearnerName
from cycletime.loops.real_time.agent_step import AgentStep
from cycletime.loops.real_time.calibration import Calibration, calibrate
from cycletime.loops.real_time.episode import EpisodeRecord
from cycletime.loops.real_time.observer import Nobody, Observer
from cycletime.loops.real_time.playing import Playing
from cycletime.loops.stepped import SteppedChunk
from cycletime.loops.stepped_agent import Learner, SteppedPosition, with_array_rates
from cycletime.loops.stepped_env import SingleEnv
from cycletime.robots.real_time_env import RealTimeEnv, holds_s_of, real_time_env_of, two_parts_of


@dataclass(frozen=True, kw_only=True)
class RealTimeLoop:
    """Algorithm 1 for one run on a robot."""

    env: gymnasium.Env[Any, Any]
    """The world: a `RealTimeEnv`, or one inside of wrappers that have their steps in two parts as well."""
    agent: Agent
    """Who learns."""
    dt: Duration
    """The action-cycle time, a whole multiple of the environment's step."""
    env_steps: int
    """The budget in environment steps; a run ends with the episode in which it is reached, which counts as well."""
    learner: LearnerName = "inline"
    """Who learns while the robot moves."""
    observer: Observer = field(default_factory=Nobody)
    """Who is told."""

    def __post_init__(self) -> None:
        """Refuse what cannot run."""
        check_agent(self.agent)
        check_counts(self, "env_steps")
        check_precision(jnp.float32)
        _ = two_parts_of(self.env), self.cycle_steps
        if float(self.env_dt) >= (holds_s := holds_s_of(self.robot)):
            raise InputError(
                f"The environment's step is {self.env_dt}, with which actions are sent again: the robot stops when it "
                f"is told nothing for {holds_s:g} s, so give a shorter one."
            )
        if self.agent.exploration is not None:
            check_cycle(self.agent.exploration, self.dt)
        if self.learner == "background" and self.agent.learns_from >= self.agent.capacity:
            raise InputError(
                f"learner is 'background', and {type(self.agent).__name__} learns from what its newest policy did: "
                "learn inline, with PPO between episodes by learn_when='episode_end'."
            )

    @property
    def robot(self) -> RealTimeEnv:
        """The environment itself."""
        return real_time_env_of(self.env)

    @property
    def env_dt(self) -> Duration:
        """The environment's time step."""
        return Duration(self.robot.dt)

    @property
    def cycle_steps(self) -> int:
        """k, the environment steps of a cycle."""
        return cycle_steps(self.dt, self.env_dt)

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers in an observation and in an action."""
        single = SingleEnv(self.env)
        return single.observation_size, single.bounds.size

    def start(self, seed: int) -> SteppedPosition:
        """A run before its first step."""
        return SteppedPosition(
            psi=first_psi(with_array_rates(self.agent), seed_key(seed), *self.sizes),
            buffer=Buffer.empty(self._capacity, *self.sizes),
        )

    @property
    def _capacity(self) -> int:
        """No more than the run can fill, but for the episode in which the budget is reached."""
        return min(self.agent.capacity, self.env_steps + self.agent.period)

    def calibrate(self) -> Calibration:
        """Time `act` and `learn` before the robot moves, and compile what the loop calls.

        Raises:
            InputError: if there is no room for them in the cycle.
        """
        keep_compiled_programs()
        calibration = calibrate(
            self.agent,
            self.sizes,
            dt=self.dt,
            env_dt=self.env_dt,
            learner=self.learner,
            capacity=self._capacity,
            holds_s=holds_s_of(self.robot),
            clock=self.robot.clock.now_s,
        )
        calibration.refuse_unless_it_fits()
        if calibration.act.count:
            self._compile_storing()
        self.observer.calibrated(calibration)
        return calibration

    def _compile_storing(self) -> None:
        """Store an agent step in a buffer that is forgotten."""
        observation_size, action_size = self.sizes
        nothing = AgentStep.nothing(observation_size, action_size)
        learner = Learner(with_array_rates(self.agent), 0, self.start(0), SingleEnv(self.env))
        learner.store(nothing.observation, nothing.actions, nothing.result)
        learner.flush()

    def run(
        self,
        seed: int,
        position: SteppedPosition | None = None,
        *,
        recalled: Iterable[EpisodeRecord] = (),
        keep: Callable[[EpisodeRecord], object] = lambda episode: None,
    ) -> Iterator[SteppedChunk]:
        """Train from the start or from a position, which is taken over; a chunk after each episode, until the budget.

        Args:
            seed: All random numbers of the agent follow from it, and the seeds that episodes begin with.
            position: Where to go on.
            recalled: The episodes since then that were kept: the agent learns from them again, to the same bits.
            keep: Called with each episode when it is over, before the agent learns from its end: what was kept is not
                lost.
        """
        keep_compiled_programs()
        playing = Playing(self, seed, self.start(seed) if position is None else position, recalled)
        try:
            if playing.recalled:
                yield playing.chunk()
            while not playing.is_finished:
                episode = playing.episode()
                keep(episode)
                self.observer.ended(episode)
                playing.learn_the_rest()
                yield playing.chunk()
        finally:
            playing.close()
