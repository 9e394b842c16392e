"""Learning within the cycle and beside it, with a learner that follows a script."""

import sys
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

from cycletime.robots.episode_run import AgentStep
from cycletime.robots.learners import RobotLearner

STEP = AgentStep.nothing(2, 1)


class Gated:
    """Learns from each step, in the background when it is let to."""

    def __init__(self, *, opened: bool = True) -> None:
        self.packed = np.zeros(1)
        self.period = self.rows = 0
        self.gate, self.reached = Event(), Event()
        self.fails = False
        if opened:
            self.gate.set()

    def store(self, *step: Any) -> None:  # noqa: ANN401
        self.rows += 1

    def learn_if_due(self, agent_steps: int, *, ended: bool) -> None:
        assert agent_steps == self.rows
        assert not ended
        self.reached.set()
        assert self.gate.wait(60)
        if self.fails:
            raise FloatingPointError("diverged")
        self.packed = self.packed + 1
        self.period += 1


def test_inline_is_done_when_it_returns() -> None:
    learner = Gated()
    learning = RobotLearner(learner, "inline")  # type: ignore[arg-type]
    for count in (1, 2):
        learning.take(STEP)
        assert (np.asarray(learning.agent_state).item(), learning.periods) == (count, count)
    learning.finish()
    learning.close()


def test_in_the_background_acting_goes_on_with_the_policy_before() -> None:
    learner = Gated(opened=False)
    before = sys.getswitchinterval()
    learning = RobotLearner(learner, "background")  # type: ignore[arg-type]
    assert sys.getswitchinterval() < 0.001
    for _ in range(3):
        learning.take(STEP)
    assert learner.reached.wait(60)
    assert (np.asarray(learning.agent_state).item(), learning.periods) == (0, 0)
    learner.gate.set()
    learning.finish()
    assert (np.asarray(learning.agent_state).item(), learning.periods) == (3, 3), "no step is lost"
    learning.close()
    learning.close()
    assert sys.getswitchinterval() == before


def test_what_goes_wrong_in_the_background_is_the_loop_s() -> None:
    learner = Gated()
    learner.fails = True
    learning = RobotLearner(learner, "background")  # type: ignore[arg-type]
    learning.take(STEP)
    with pytest.raises(FloatingPointError, match="diverged"):
        learning.finish()
    with pytest.raises(FloatingPointError, match="diverged"):
        learning.take(STEP)
    learning.close()


def test_who_closes_does_not_wait_for_what_is_left() -> None:
    learner = Gated(opened=False)
    learning = RobotLearner(learner, "background")  # type: ignore[arg-type]
    for _ in range(3):
        learning.take(STEP)
    assert learner.reached.wait(60)
    closing = Thread(target=learning.close)
    closing.start()
    while not learning._is_closed:
        closing.join(0.001)
    learner.gate.set()
    closing.join(60)
    assert learner.rows == 1
