"""A robot's run while it goes on: episodes, what is learned from them, and those that are learned from once more."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cycletime.errors import RunError
from cycletime.loops.real_time.agent_step import AgentStep, steps_of
from cycletime.loops.real_time.episode import EpisodeRecord
from cycletime.loops.real_time.episode_run import EpisodeRun
from cycletime.loops.real_time.learning import LEARNINGS, Acting, Learning, learn
from cycletime.loops.stepped import SteppedChunk
from cycletime.loops.stepped_agent import Learner, SteppedPosition, with_array_rates
from cycletime.loops.stepped_env import Counters, SingleEnv, seed_of
from cycletime.robots.real_time_env import two_parts_of
from cycletime.tasks.own_faults import faults_of

if TYPE_CHECKING:
    from cycletime.loops.real_time.loop import RealTimeLoop


class Playing:
    """One run on one robot."""

    def __init__(
        self, loop: RealTimeLoop, seed: int, position: SteppedPosition, recalled: Iterable[EpisodeRecord] = ()
    ) -> None:
        """Go on from a position, which is taken over, and from the episodes that were kept since then.

        Raises:
            RunError: if one of them is missing.
        """
        self.loop, self.seed, self.env = loop, seed, SingleEnv(loop.env)
        self.sizes = self.env.observation_size, self.env.bounds.size
        agent = with_array_rates(loop.agent)
        self.learner = Learner(agent, seed, position, self.env)
        counts = (int(each) for each in (position.env_steps, position.agent_steps, position.episodes))
        self.counters = Counters(1, *counts)
        self.recalled = self._recall(recalled)
        """How many episodes were learned from once more."""
        self.acting = Acting(agent, seed, self.learner, self.env.bounds.size)
        self.learning: Learning = LEARNINGS[loop.learner](self.learner)

    @property
    def is_finished(self) -> bool:
        """Whether the budget is reached."""
        return self.counters.env_steps >= self.loop.env_steps

    def episode(self) -> EpisodeRecord:
        """One episode; but for its last cycle the agent has learned from it, or does in the background."""
        loop, number, env_steps = self.loop, self.counters.episodes, self.counters.env_steps
        run = EpisodeRun(
            two_parts_of(loop.env),
            self,
            clock=loop.robot.clock,
            env_dt=loop.env_dt,
            cycle_steps=loop.cycle_steps,
            bounds=self.env.bounds,
            observation_size=self.env.observation_size,
            observer=loop.observer,
        )
        loop.observer.began(number)
        self.acting.begin()
        with faults_of(str(loop.env.unwrapped), "an episode"), _without_garbage_collection():
            self._last = run.play(seed_of(self.seed, number))
        return run.record(number, env_steps)

    def act(self, observation: NDArray[np.float32]) -> tuple[NDArray[np.float32], int]:
        """What the agent does, and how many learnings its policy is behind."""
        self.counters.check_finite(observation=observation)
        stale = self.acting.stale(self.learning)
        actions = self.acting.act(self.learning.psi, observation)
        self.counters.check_finite(action=actions)
        return actions, stale

    def take(self, step: AgentStep) -> None:
        """Learn from a cycle, or leave it to the background."""
        self._count(step)
        self.learning.take(step)

    def learn_the_rest(self) -> None:
        """Learn what is left of an episode, while the robot stands."""
        self.loop.observer.learning()
        before = self.learner.psi
        self.take(self._last)
        self.learning.finish()
        if self.learner.psi is not before:
            self.loop.observer.learned()

    def chunk(self) -> SteppedChunk:
        """What happened since the last chunk."""
        learner, counters = self.learner, self.counters
        return SteppedChunk(
            position=learner.position(counters, exact=True),
            env_steps=min(counters.env_steps, self.loop.env_steps),
            episodes=counters.pop_episodes().ended_by(self.loop.env_steps),  # a robot plays its last one to the end
            metrics=learner.pop_metrics(),
            finished=learner.psi if self.is_finished else None,
        )

    def close(self) -> None:
        """End what learns in the background."""
        self.learning.close()

    def _count(self, step: AgentStep) -> None:
        self.counters.check_finite(reward=step.result.reward, successor=step.result.successor)
        self.counters.count(step.result)

    def _recall(self, episodes: Iterable[EpisodeRecord]) -> int:
        recalled = 0
        for episode in episodes:
            if episode.number < self.counters.episodes:
                continue
            if episode.number > self.counters.episodes:
                raise RunError(
                    f"The journal goes on with episode {episode.number}, and episode {self.counters.episodes} is "
                    "missing: put the journal back, or begin anew in another folder."
                )
            for step in steps_of(episode, *self.sizes):
                self._count(step)
                learn(self.learner, step)
            recalled += 1
        return recalled


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Leave it for when the robot stands: it stops the process for longer than some cycles last."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
