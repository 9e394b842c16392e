"""Learning while a robot moves: in the loop itself, within the cycle, or in a thread beside it.

What is learned follows from the steps alone, not from when it was computed: the steps of a journal lead to the same.
In the background, only the policy that acts may be some learnings behind; it is changed between two cycles.
"""

from __future__ import annotations

import sys
from queue import SimpleQueue
from threading import Condition, Thread

import jax
import numpy as np
from numpy.typing import NDArray

from cycletime.agents import Agent
from cycletime.robots.episode_run import AgentStep
from cycletime.training.random_numbers import seed_key
from cycletime.training.spec import LearnerName
from cycletime.training.stepped_agent import Actor, Learner, PackedAgentState, RandomNumbers

_SWITCH_S = 0.2e-3
"""After which a thread of Python lets another one run; usually 5 ms, half of a short cycle."""


class RobotLearner:
    """Where a thread does it, most of its time is spent in compiled code, during which the loop goes on.

    Between two pieces of compiled code Python runs one thread at a time; meanwhile the loop waits for 0.2 ms at most.
    """

    def __init__(self, learner: Learner, name: LearnerName) -> None:
        self._learner = learner
        self._newest = learner.packed, learner.period
        self._steps: SimpleQueue[AgentStep | None] = SimpleQueue()
        self._left, self._changed = 0, Condition()
        self._fault: BaseException | None = None
        self._is_closed = False
        self._thread = Thread(target=self._work, name="learning", daemon=True) if name == "background" else None
        if self._thread is not None:
            self._interval_s = sys.getswitchinterval()
            sys.setswitchinterval(_SWITCH_S)
            self._thread.start()

    @property
    def agent_state(self) -> PackedAgentState:
        """The newest agent state that can be acted by, without waiting."""
        return self._newest[0]

    @property
    def periods(self) -> int:
        return self._newest[1]

    def take(self, step: AgentStep) -> None:
        if self._thread is None:
            self._learn(step)
            return
        self._check()
        with self._changed:
            self._left += 1
        self._steps.put(step)

    def finish(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._left or self._fault is not None)
        self._check()

    def close(self) -> None:
        """End the thread after what it is doing; what is left is forgotten, since somebody wants to stop the robot."""
        if self._thread is not None:
            self._is_closed = True
            self._steps.put(None)
            self._thread.join()
            sys.setswitchinterval(self._interval_s)

    def _work(self) -> None:
        while (step := self._steps.get()) is not None:
            try:
                if self._fault is None and not self._is_closed:
                    self._learn(step)
            except BaseException as error:  # which is the loop's to raise
                self._fault = error
            with self._changed:
                self._left -= 1
                self._changed.notify_all()

    def _learn(self, step: AgentStep) -> None:
        learn_step(self._learner, step)
        self._newest = self._learner.packed, self._learner.period

    def _check(self) -> None:
        if self._fault is not None:
            raise self._fault


def learn_step(learner: Learner, step: AgentStep) -> None:
    """Store a step, and learn if that is due; returns when that is computed."""
    learner.store(step.observation, step.actions, step.result)
    before = learner.packed
    learner.learn_if_due(learner.rows, ended=step.ended)
    if learner.packed is not before:
        jax.block_until_ready(learner.packed)  # type: ignore[no-untyped-call]


class RobotActor:
    """The policy with its noise, ahead of what is stored: an action is sent before the step before it is learned from.

    The numbers of an agent step are those that the other loops draw for it.
    """

    def __init__(self, agent: Agent, seed: int, learner: Learner, action_size: int) -> None:
        self._agent, self._learner = agent, learner
        self._actor = Actor(agent, learner.packed, 1, action_size)
        self._random = RandomNumbers(agent, seed_key(seed), action_size, num_envs=1)

    def begin(self) -> None:
        learner = self._learner
        self.period, self._row, self._agent_steps = learner.period, learner.period_rows, learner.rows
        self._begins = True
        self._random.noise(self.period, self._row)  # drawn in bulk, while the robot stands

    def act(self, agent_state: PackedAgentState, observation: NDArray[np.float32]) -> NDArray[np.float32]:
        normals = self._random.noise(self.period, self._row)
        actions = self._actor.act(agent_state, observation, normals, self._agent_steps, np.array([self._begins]))
        self._begins = False
        self._agent_steps += 1
        self._row += 1
        if self._agent.learn_when == "batch" and self._row == self._agent.period:
            self.period, self._row = self.period + 1, 0
        return actions

    def stale(self, learning: RobotLearner) -> int:
        """Updates that have fallen due, and are not part of the policy."""
        if self._agent_steps < self._agent.learns_from:
            return 0
        return self.period - learning.periods
