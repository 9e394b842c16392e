"""UR-Reacher-2 on a link whose controller is the arm model itself: resets, the grid of steps, commands, stops."""

import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import cycletime.tasks  # noqa: F401 - registers the id
from cycletime.errors import InputError, RunError
from cycletime.robots.clock import Beats
from cycletime.robots.ur.driver.driver import DriverTimeouts
from cycletime.robots.ur.reacher import BOX_LOW, Q_REF, tip
from cycletime.robots.ur.reacher_env import URReacher2Env
from cycletime.robots.ur.types import (
    ArmState,
    LinkError,
    MoveJ,
    RobotMode,
    SafetyMode,
    SilentError,
    SpeedJ,
    StopJ,
    UnheardError,
)
from tests.robots.ur.virtual import Driven, Supervising, VirtualArm, VirtualClock

ID = "cycletime/URReacher2-v0"


def an_arm(**state: Any) -> VirtualArm:  # noqa: ANN401
    return VirtualArm(VirtualClock(), **state)


def make(arm: VirtualArm, **options: Any) -> gymnasium.Env[Any, Any]:  # noqa: ANN401
    env: gymnasium.Env[Any, Any] = gymnasium.make(ID, link=lambda: arm, disable_env_checker=True, **options)
    return env


def sent(arm: VirtualArm) -> list[Any]:
    return [command for _, command in arm.commands]


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


def test_the_authors_first_observation_is_the_last_episode_s_last() -> None:
    env, fresh = make(an_arm(), dt="2s", stale_first_obs=True), make(an_arm(), dt="2s")
    np.testing.assert_array_equal(env.reset(seed=5)[0], np.zeros(8))
    assert fresh.reset(seed=5)[0].any()
    for _ in range(2):
        last, *_ = env.step(np.array([0.2, 0.2]))
    np.testing.assert_array_equal(env.reset()[0], last)


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


def test_a_protective_stop_ends_the_episode_and_the_next_one_begins_when_it_is_unlocked() -> None:
    arm = an_arm()
    env = make(arm)
    env.reset(seed=0)
    env.step(np.zeros(2))
    arm.stop_protectively()
    *_, truncated, info = env.step(np.ones(2))
    assert (truncated, info["safety_mode"]) == (True, "PROTECTIVE_STOP")
    with pytest.raises(RunError, match="not unlocked after 30 s, with the safety mode PROTECTIVE_STOP: look at it"):
        env.reset()
    arm.dashboard("unlock protective stop")
    env.reset()
    assert isinstance(sent(arm)[-1], MoveJ)


def test_a_gate_that_was_opened_ends_the_episode_and_the_next_one_begins_when_it_is_closed() -> None:
    arm = an_arm()
    env = make(arm)
    env.reset(seed=0)
    arm.safety_mode = SafetyMode.SAFEGUARD_STOP
    *_, truncated, info = env.step(np.zeros(2))
    assert (truncated, info["safety_mode"]) == (True, "SAFEGUARD_STOP")
    arm.commands.clear()
    with pytest.raises(RunError, match="not unlocked after 30 s, with the safety mode SAFEGUARD_STOP"):
        env.reset()
    assert not any(isinstance(command, MoveJ) for command in sent(arm))
    arm.safety_mode = SafetyMode.NORMAL
    env.reset()


def test_a_silent_controller_is_given_up_after_as_long_as_a_driver_tries() -> None:
    arm = an_arm()
    env = make(arm)
    env.reset(seed=0)
    arm.frozen, began_s = True, arm.clock.time_s
    with pytest.raises(SilentError):
        env.step(np.zeros(2))
    assert arm.clock.time_s - began_s == DriverTimeouts().give_up_s == 10


class ForgetfulArm(VirtualArm):
    """Which does not do the first moves that it is told, as behind a driver that hears nothing."""

    left = 2

    def receive(self, timeout_s: float) -> ArmState:
        if self.left and self.commands and isinstance(self.commands[-1][1], MoveJ):
            self.left -= 1
            self.commands.append((self.clock.time_s, StopJ()))
            raise UnheardError("The driver did not let the arm complete a move.")
        return super().receive(timeout_s)


def test_a_move_that_was_not_done_for_a_silence_is_ordered_again() -> None:
    arm = ForgetfulArm(VirtualClock())
    make(arm).reset(seed=0)
    assert sum(isinstance(command, MoveJ) for command in sent(arm)) == 3


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


@pytest.mark.parametrize(
    "state",
    [
        {"safety_mode": SafetyMode.ROBOT_EMERGENCY_STOP},
        {"safety_mode": SafetyMode.UNKNOWN},
        {"robot_mode": RobotMode.POWER_OFF},
    ],
)
def test_an_arm_that_only_people_may_start_again_is_not_commanded(state: dict[str, Any]) -> None:
    arm = an_arm(**state)
    env = make(arm)
    with pytest.raises(RunError, match=next(iter(state.values())).name):
        env.reset(seed=0)
    assert not arm.commands


def test_an_arm_that_does_not_get_to_its_first_pose_is_an_error() -> None:
    arm = an_arm()
    arm.send = lambda command: None  # type: ignore[method-assign]
    arm.arm = arm.arm._replace(q=arm.arm.q + 0.5, target_q=arm.arm.target_q + 0.5)
    with pytest.raises(
        RunError, match="not in its first pose after 8 s, with the safety mode NORMAL: look whether the contr"
    ):
        make(arm).reset(seed=0)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"link": None}, "link is None: UR-Reacher-2 moves an arm, so give a function that makes a link"),
        ({"link": "10.0.0.2"}, "link is '10.0.0.2'"),
        ({"dt": "15ms"}, "not a whole multiple of the environment time step 10ms"),
        ({"env_dt": "7ms"}, "not a whole multiple of the environment time step 7ms"),
    ],
)
def test_what_cannot_be_made_is_refused_before_anything_is_connected(options: dict[str, Any], sentence: str) -> None:
    arm = an_arm()
    with pytest.raises(InputError, match=sentence):
        gymnasium.make(ID, **{"link": lambda: arm, **options})
    assert not arm.connected


@pytest.mark.parametrize("action", [np.array([np.nan, 0.0]), np.zeros(3), "left"])
def test_no_action_is_refused_and_nothing_is_sent(action: Any) -> None:  # noqa: ANN401
    arm = an_arm()
    env = URReacher2Env(arm)
    env.reset(seed=0)
    arm.commands.clear()
    with pytest.raises(InputError, match="is not an action"):
        env.step(action)
    assert not arm.commands


def test_an_unknown_reset_option_is_refused() -> None:
    with pytest.raises(InputError, match="'state' is no reset option"):
        make(an_arm()).reset(options={"state": [1, 2]})


def test_a_controller_that_is_not_there_is_an_error_when_the_environment_is_made() -> None:
    with pytest.raises(LinkError):
        make(an_arm(reachable=False))


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


def test_a_history_is_a_whole_number_of_steps() -> None:
    with pytest.raises(InputError, match="The action history 15ms is not a whole multiple of the environment's step"):
        make(an_arm(), action_history="15ms")


def test_a_step_has_two_parts_between_which_others_may_work() -> None:
    one, other = URReacher2Env(an_arm(), "40ms"), URReacher2Env(an_arm(), "40ms")
    action = np.array([0.5, -0.5])
    for env in (one, other):
        env.reset(seed=0)
    beats = Beats("40ms", other.clock)
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
    link._arm.clock.time_s += 0.19
    *_, truncated, _ = env.receive()
    assert not truncated, "orders hold for so long"
    link._arm.clock.time_s += 0.02
    *_, truncated, _ = env.receive()
    assert truncated
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
