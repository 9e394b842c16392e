"""UR-Reacher-2 behind a driver, and a step in its two parts."""

import gymnasium
import numpy as np
import pytest

from cycletime.robots.clock import Ticker
from cycletime.robots.ur.reacher_env import URReacher2Env
from cycletime.robots.ur.types import StopJ
from cycletime.ur5 import BOX_LOW, tip
from tests.robots.ur.reachers import an_arm, sent
from tests.robots.ur.virtual import Driven, Supervising


@pytest.mark.parametrize("supervised", [False, True])
def test_behind_a_driver_the_task_s_own_rules_have_nothing_to_do(supervised: bool) -> None:
    """An agent that leads the flange to the floor of the box, and holds on; nor is the arm said not to obey there."""
    arm = an_arm()
    link = Supervising(arm)
    env = URReacher2Env(link if supervised else arm, "40ms")
    env.reset(seed=0)
    heights = []
    for _ in range(60):
        link.step(env, np.array([-0.4, 1.0])) if supervised else env.step(np.array([-0.4, 1.0]))
        heights.append(float(tip(arm.arm.target_q)[2]))
    assert min(heights) < BOX_LOW[2] + 0.01
    assert (min(heights) >= BOX_LOW[2]) is supervised


def test_a_step_has_two_parts_between_which_others_may_work() -> None:
    one, other = URReacher2Env(an_arm(), "40ms"), URReacher2Env(an_arm(), "40ms")
    action = np.array([0.5, -0.5])
    for env in (one, other):
        env.reset(seed=0)
    beats = Ticker("40ms", other.clock)
    for _ in range(3):
        expected = one.step(action)
        other.send(action)
        beats.wait()
        told = other.receive()
        np.testing.assert_array_equal(told[0], expected[0])
        assert told[1:] == expected[1:]
    with pytest.raises(gymnasium.error.ResetNeeded):
        URReacher2Env(an_arm()).receive()


def test_behind_a_driver_the_newest_state_is_looked_at_when_the_step_is_over() -> None:
    link = Driven(an_arm())
    env = URReacher2Env(link, "40ms", where="real robot")
    assert env.where == "real robot"
    assert env.clock is link.clock, "the machine's"
    _, began = env.reset(seed=0)
    link._arm.commands.clear()
    env.send(np.array([0.4, 0.0]))
    link.drive(4)
    link._arm.clock.time_s += 0.003
    *_, info = env.receive()
    assert (info["packages"], info["missed_packages"]) == (4, 0)
    assert info["robot_time_s"] - began["robot_time_s"] == pytest.approx(0.032)
    assert link.clock.now_s() - info["observed_s"] == pytest.approx(0.003)
    seen, *_, info = env.receive()
    assert (info["packages"], info["missed_packages"]) == (0, 0), "no package since then is no error"
    np.testing.assert_allclose(seen[:2], link._arm.arm.q[1:3], atol=1e-6)
    assert len(sent(link._arm)) == 1, "to send it again is the driver's"


def test_behind_a_driver_an_episode_ends_when_the_arm_is_out_of_sight() -> None:
    link = Driven(an_arm())
    env = URReacher2Env(link, "40ms")
    env.reset(seed=0)
    env.send(np.ones(2))
    link._arm.clock.time_s += 0.09
    seen, _, _, truncated, _ = env.receive()
    assert not truncated, "a driver goes on for so long"
    link._arm.clock.time_s += 0.02
    last, paid, _, truncated, info = env.receive()
    assert (truncated, paid, info["safety_mode"]) == (True, 0.0, "UNSEEN")
    np.testing.assert_array_equal(last, seen)
    assert isinstance(sent(link._arm)[-1], StopJ)
    env.reset(seed=1)
    link.drive(1)
    *_, truncated, _ = env.receive()
    assert not truncated


def test_a_last_step_that_is_late_is_not_paid_beyond_4_s() -> None:
    env = URReacher2Env(an_arm(), "40ms")
    first, _ = env.reset(seed=0)
    env.send(np.zeros(2))
    away = np.linalg.norm(first[4:6])
    _, reward, _, truncated, _ = env.receive(130)
    assert truncated
    assert reward == pytest.approx(500 * (np.exp(-(away**2) / 0.01) - away), rel=1e-5)
