"""Algorithm 1 in real time, around a robot that does not wait.

A cycle is: wake up at its deadline, see, act, send, and only then learn from the cycle before and wait. Deadlines are
absolute, t0 + n * dt on the clock of the robot's world. When a cycle is late, `clock.Ticker` leaves out the points of
the grid that are over, and never makes up for them in a burst. The robot goes on with the last action; `EpisodeRun`
pays the rewards of the missed time with the next ones, and a cycle whose end was missed lasts until the next one's, an
overrun.

Between two episodes the robot stands. There the episode is written to the journal, the rest is learned, and chunks are
yielded.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cycletime.agents import Agent, Buffer
from cycletime.agents.checks import check_agent, check_counts, check_precision
from cycletime.agents.exploration import check_cycle
from cycletime.duration import Duration, cycle_steps
from cycletime.errors import InputError
from cycletime.robots.calibration import Calibration, calibrate
from cycletime.robots.episode_run import AgentStep, EpisodeRun, steps_from_record
from cycletime.robots.learners import RobotActor, RobotLearner, learn_step
from cycletime.robots.real_time_env import RealTimeEnv, action_hold_s, real_time_env_of
from cycletime.robots.replay import episode_line
from cycletime.tasks.delays import send_receive_env_of
from cycletime.tasks.env_errors import raise_as_env_error
from cycletime.training.algorithm_1 import initial_agent_state
from cycletime.training.env_adapter import Counters, SingleEnvAdapter, episode_seed
from cycletime.training.journal import EpisodeRecord
from cycletime.training.machine import keep_compiled_programs
from cycletime.training.random_numbers import seed_key
from cycletime.training.spec import LearnerName
from cycletime.training.stepped_agent import Learner, SteppedPosition, with_array_rates
from cycletime.training.stepped_loop import SteppedChunk


class RealTimeSession:
    def __init__(
        self, loop: RealTimeLoop, seed: int, position: SteppedPosition, recalled: Iterable[EpisodeRecord] = ()
    ) -> None:
        """Continue from a position, which is taken over, and the episodes recorded since then."""
        self.loop, self.seed, self.env = loop, seed, SingleEnvAdapter(loop.env)
        self.sizes = self.env.observation_size, self.env.bounds.size
        agent = with_array_rates(loop.agent)
        self.learner = Learner(agent, seed, position, self.env)
        counts = (int(each) for each in (position.env_steps, position.agent_steps, position.episodes))
        self.counters = Counters(1, *counts)
        self.recalled = self._recall(recalled)
        self.acting = RobotActor(agent, seed, self.learner, self.env.bounds.size)
        self.learning = RobotLearner(self.learner, loop.learner)

    @property
    def is_finished(self) -> bool:
        return self.counters.env_steps >= self.loop.env_steps

    def episode(self) -> EpisodeRecord:
        """One episode; but for its last cycle the agent has learned from it, or does in the background."""
        loop, number, env_steps = self.loop, self.counters.episodes, self.counters.env_steps
        run = EpisodeRun(
            send_receive_env_of(loop.env),
            self.act,
            self.take,
            clock=loop.robot.clock,
            env_dt=loop.env_dt,
            cycle_steps=loop.cycle_steps,
            bounds=self.env.bounds,
            observation_size=self.env.observation_size,
        )
        self.acting.begin()
        with raise_as_env_error(str(loop.env.unwrapped), "an episode"), _garbage_collection_paused():
            self._last = run.play(episode_seed(self.seed, number))
        return run.record(number, env_steps)

    def act(self, observation: NDArray[np.float32]) -> tuple[NDArray[np.float32], int]:
        self.counters.check_finite(observation=observation)
        stale = self.acting.stale(self.learning)
        actions = self.acting.act(self.learning.agent_state, observation)
        self.counters.check_finite(action=actions)
        return actions, stale

    def take(self, step: AgentStep) -> None:
        self._count(step)
        self.learning.take(step)

    def learn_the_rest(self) -> None:
        self.take(self._last)
        self.learning.finish()

    def chunk(self) -> SteppedChunk:
        learner, counters = self.learner, self.counters
        return SteppedChunk(
            position=learner.position(counters, exact=True),
            env_steps=min(counters.env_steps, self.loop.env_steps),
            episodes=counters.pop_episodes().ended_by(self.loop.env_steps),  # a robot plays its last one to the end
            metrics=learner.pop_metrics(),
            finished=learner.psi if self.is_finished else None,
        )

    def _count(self, step: AgentStep) -> None:
        self.counters.check_finite(reward=step.result.reward, successor=step.result.successor)
        self.counters.count(step.result)

    def _recall(self, episodes: Iterable[EpisodeRecord]) -> int:
        recalled = 0
        for episode in episodes:
            if episode.number < self.counters.episodes:
                continue
            self.counters.episodes = episode.number  # those before it are lost, and were played
            self.counters.env_steps = episode.run_env_steps - episode.env_steps
            for step in steps_from_record(episode, *self.sizes):
                self._count(step)
                learn_step(self.learner, step)
            recalled += 1
        return recalled


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """Leave it for when the robot stands: it stops the process for longer than some cycles last."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@dataclass(frozen=True, kw_only=True)
class RealTimeLoop:
    """Algorithm 1 for one run on a robot."""

    env: gymnasium.Env[Any, Any]
    """The world: a `RealTimeEnv`, or one inside of wrappers that have their steps in two parts as well."""
    agent: Agent
    dt: Duration
    """The action-cycle time, a whole multiple of the environment's step."""
    env_steps: int
    """The budget in environment steps; a run ends with the episode in which it is reached, which counts as well."""
    learner: LearnerName = "inline"
    """Where learning runs while the robot moves: in the cycle, or in a thread beside it."""
    say: Callable[[str], object] = lambda sentence: None
    """Told what a cycle's work takes before the robot moves, and of each episode that is over."""

    def __post_init__(self) -> None:
        check_agent(self.agent)
        check_counts(self, "env_steps")
        check_precision(jnp.float32)
        _ = send_receive_env_of(self.env), self.cycle_steps
        if float(self.env_dt) >= (holds_s := action_hold_s(self.robot)):
            why = f"the robot stops when it is told nothing for {holds_s:g} s, so give a shorter one"
            raise InputError(f"The environment's step is {self.env_dt}, with which actions are sent again: {why}.")
        check_cycle(self.agent.exploration, self.dt)
        if self.learner == "background" and self.agent.learns_from >= self.agent.capacity:
            remedy = "learn inline, with PPO between episodes by learn_when='episode_end'"
            learns = f"{type(self.agent).__name__} learns from what its newest policy did"
            raise InputError(f"learner is 'background', and {learns}: {remedy}.")

    @property
    def robot(self) -> RealTimeEnv:
        return real_time_env_of(self.env)

    @property
    def env_dt(self) -> Duration:
        return Duration.of_seconds(self.robot.dt)

    @property
    def cycle_steps(self) -> int:
        return cycle_steps(self.dt, self.env_dt)

    @property
    def sizes(self) -> tuple[int, int]:
        single = SingleEnvAdapter(self.env)
        return single.observation_size, single.bounds.size

    def start(self, seed: int) -> SteppedPosition:
        return SteppedPosition(
            psi=initial_agent_state(with_array_rates(self.agent), seed_key(seed), *self.sizes),
            buffer=Buffer.empty(self._capacity, *self.sizes),
        )

    @property
    def _capacity(self) -> int:
        """No more than the run can fill, but for the episode in which the budget is reached."""
        return min(self.agent.capacity, self.env_steps + self.agent.period)

    def calibrate(self) -> Calibration:
        """Time `act` and `learn` before the robot moves, and compile what the loop calls."""
        keep_compiled_programs()
        calibration = calibrate(
            self.agent,
            self.sizes,
            dt=self.dt,
            env_dt=self.env_dt,
            learner=self.learner,
            capacity=self._capacity,
            holds_s=action_hold_s(self.robot),
            clock=self.robot.clock.now_s,
        )
        calibration.check()
        if calibration.act.count:
            nothing = AgentStep.nothing(*self.sizes)
            learner = Learner(with_array_rates(self.agent), 0, self.start(0), SingleEnvAdapter(self.env))
            learner.store(nothing.observation, nothing.actions, nothing.result)
            learner.flush()
        self.say(str(calibration))
        return calibration

    def run(
        self,
        seed: int,
        position: SteppedPosition | None = None,
        *,
        recalled: Iterable[EpisodeRecord] = (),
        keep: Callable[[EpisodeRecord], object] = lambda episode: None,
    ) -> Iterator[SteppedChunk]:
        """Train from the start or from a position, which is taken over; a chunk after each episode, until the budget.

        From the `recalled` episodes since then the agent learns again, to the same bits. Each episode is kept when it
        is over, before the agent learns from its end, so that it is not lost.
        """
        keep_compiled_programs()
        playing = RealTimeSession(self, seed, self.start(seed) if position is None else position, recalled)
        with closing(playing.learning):
            if playing.recalled:
                yield playing.chunk()
            while not playing.is_finished:
                episode = playing.episode()
                keep(episode)
                self.say(episode_line(episode))
                playing.learn_the_rest()
                yield playing.chunk()
