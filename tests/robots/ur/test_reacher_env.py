"""UR-Reacher-2 on a link whose controller is the arm model itself: resets, the grid of steps, commands, pay."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.robots.ur.types import ArmState, SpeedJ, StopJ
from cycletime.tasks.timing_contract import timing_contract
from cycletime.ur5 import Q_REF
from tests.robots.ur.reachers import an_arm, make, sent
from tests.robots.ur.virtual import VirtualArm, VirtualClock


def test_gymnasium_s_own_checks_pass() -> None:
    env = make(an_arm(), reset_time="3.5s")
    check_env(env.unwrapped, skip_render_check=True)
    env.close()


def test_a_reset_stops_the_arm_moves_it_and_shows_it_standing_in_its_first_pose() -> None:
    arm = an_arm()
    env = make(arm)
    env.reset(seed=1)
    for _ in range(50):
        env.step(np.array([0.8, -0.6]))
    arm.commands.clear()
    began_s = arm.clock.time_s
    observation, _ = env.reset()
    stop, move = sent(arm)
    assert stop == StopJ(2.0)
    assert (move.q, move.time_s) == (Q_REF, 2.0)
    assert 2.0 < arm.clock.time_s - began_s < 2.6
    np.testing.assert_allclose(observation[:4], (-2.4, 1.5, 0, 0), atol=0.01)


def test_a_reset_takes_the_authors_time_if_asked_to() -> None:
    arm = an_arm()
    env = make(arm, reset_time="3.5s")
    env.reset(seed=0)
    assert arm.clock.time_s - 1000.0 == pytest.approx(3.5, abs=0.03)


def test_an_observation_is_of_the_newest_package() -> None:
    arm = an_arm()
    env = make(arm)
    first, _ = env.reset(seed=4)
    tip = np.array([0.01940327, 0.76997748])
    target = tip - first[4:6]
    assert ((target >= (-0.3, 0.5)) & (target <= (0.4, 1.0))).all()
    assert (np.abs(first[6:]) <= 1).all(), "the previous action is a random one"
    assert first[6:].any()
    observation, *_ = env.step(np.array([2.0, -0.25]))
    np.testing.assert_allclose(observation[:2], arm.arm.q[1:3], atol=1e-6)
    np.testing.assert_allclose(observation[2:4], arm.arm.qd[1:3], atol=1e-6)
    np.testing.assert_array_equal(observation[6:], np.array([1.0, -0.25], np.float32))


@pytest.mark.parametrize(
    ("env_dt", "packages"), [("10ms", [1, 1, 1, 2] * 2), ("40ms", [5] * 4), ("8ms", [1] * 8), ("4ms", [0, 1] * 4)]
)
def test_steps_end_on_an_absolute_grid(env_dt: str, packages: list[int]) -> None:
    env = make(an_arm(), env_dt=env_dt)
    _, began = env.reset(seed=0)
    infos = [env.step(np.zeros(2))[-1] for _ in packages]
    assert [info["packages"] for info in infos] == packages
    assert infos[-1]["robot_time_s"] - began["robot_time_s"] == pytest.approx(0.008 * sum(packages))


def test_the_command_is_sent_at_once_and_again_with_every_package() -> None:
    arm = an_arm()
    env = make(arm, env_dt="40ms")
    env.reset(seed=0)
    arm.commands.clear()
    began_s = arm.clock.time_s
    env.step(np.array([0.5, -2.0]))
    expected = SpeedJ((0.0, 0.5, -1.0, 0.0, 0.0, 0.0), 2.0, 0.008)
    assert sent(arm) == [expected] * 6
    np.testing.assert_allclose([time_s - began_s for time_s, _ in arm.commands], 0.008 * np.arange(6), atol=1e-9)


def test_an_episode_is_truncated_after_4_s_and_the_arm_stopped() -> None:
    arm = an_arm()
    env = make(arm, dt="120ms", env_dt="40ms")
    env.reset(seed=0)
    lengths, truncated = [], False
    while not truncated:
        *_, terminated, truncated, info = env.step(np.zeros(2))
        lengths.append(info["cycle_steps"])
        assert not terminated
    assert lengths == [3] * 33 + [1]
    assert info["elapsed_s"] == 4.0
    assert sent(arm)[-1] == StopJ(2.0)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(2))


def test_a_cycle_pays_the_sum_of_its_steps() -> None:
    short, long = (make(an_arm(), dt=dt) for dt in ("10ms", "40ms"))
    for env in (short, long):
        env.reset(seed=2)
    action = np.array([0.3, 0.3])
    paid = sum(float(short.step(action)[1]) for _ in range(4))
    assert long.step(action)[1] == pytest.approx(paid)


def test_an_arm_that_stands_is_paid_for_its_distance() -> None:
    env = make(an_arm(), dt="4s", env_dt="40ms", reset_time="3.5s")
    observation, _ = env.reset(seed=0)
    squared = float((observation[4:6] ** 2).sum())
    assert env.step(np.zeros(2))[1] == pytest.approx(500 * (np.exp(-squared / 0.01) - np.sqrt(squared)), abs=1e-3)


class SleepyArm(VirtualArm):
    """Of which the newest package is asked for late, once."""

    asleep_s = 0.0

    def receive(self, timeout_s: float) -> ArmState:
        self.pass_time(self.asleep_s)
        self.asleep_s = 0.0
        return super().receive(timeout_s)


def test_a_late_step_is_told_and_the_grid_goes_on_without_a_burst() -> None:
    arm = SleepyArm(VirtualClock())
    env = make(arm, env_dt="40ms")
    _, began = env.reset(seed=0)
    arm.asleep_s = 0.1 - 0.004  # 12 packages
    info = env.step(np.zeros(2))[-1]
    assert (info["missed_steps"], info["packages"], info["missed_packages"]) == (1, 1, 12)
    info = env.step(np.zeros(2))[-1]
    assert info["missed_steps"] == 0
    assert info["robot_time_s"] - began["robot_time_s"] == pytest.approx(0.120)


def test_a_closed_environment_has_closed_its_link() -> None:
    arm = an_arm()
    env = make(arm)
    env.close()
    env.close()
    assert not arm.connected


def test_neither_the_environment_nor_a_driver_loads_jax() -> None:
    modules = "cycletime.robots.ur.reacher_env, cycletime.robots.ur.driver.process"
    code = f"import sys, {modules}; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_the_environment_was_made_with_can_be_told_while_it_is_connected() -> None:
    class Connected(VirtualArm):
        def __deepcopy__(self, memo: object) -> VirtualArm:
            raise TypeError("nobody can copy a connection")

    arm = Connected(VirtualClock())
    env = make(arm, dt="20ms")
    assert env.spec is not None
    assert env.spec.kwargs["dt"] == "20ms"


@pytest.mark.parametrize(("history", "dt", "seen"), [(None, "40ms", [0.3]), ("30ms", "10ms", [0.1, 0.2, 0.3])])
def test_actions_are_observed_as_far_back_as_asked_for(history: str | None, dt: str, seen: list[float]) -> None:
    env = make(an_arm(), dt=dt, action_history=history)
    first, _ = env.reset(seed=0)
    count = len(seen)
    assert first.shape == env.observation_space.shape == (6 + 2 * count,)
    np.testing.assert_array_equal(first[6:].reshape(count, 2), np.tile(first[6:8], (count, 1)))
    for action in (0.1, 0.2, 0.3):
        last, *_ = env.step(np.full(2, action))
    np.testing.assert_allclose(last[6:], np.repeat(seen, 2), atol=1e-7)
    assert env.observation_space.contains(last)
    contract = timing_contract(env, Duration("10ms"))
    assert contract["observation"][-2:] == ["action_shoulder 1 step ago", "action_elbow 1 step ago"]
    ((_, steps, step_s, _),) = (each.values() for each in contract["timing"])
    assert (steps, step_s) == ([count, count], 0.01)


def test_a_history_is_a_whole_number_of_steps() -> None:
    with pytest.raises(InputError, match="The action history 15ms is not a whole multiple of the environment's step"):
        make(an_arm(), action_history="15ms")
