"""UR-Reacher-2 where it cannot go on: stops, silence, an arm that is not to be moved, input that is refused."""

from typing import Any

import gymnasium
import numpy as np
import pytest

from cycletime.errors import InputError, RunError
from cycletime.robots.ur.driver.driver import DriverTimeouts
from cycletime.robots.ur.reacher_env import URReacher2Env
from cycletime.robots.ur.types import (
    ArmState,
    LinkError,
    MoveInterruptedError,
    MoveJ,
    RobotMode,
    SafetyMode,
    StateTimeoutError,
    StopJ,
)
from tests.robots.ur.reachers import ID, an_arm, make, sent
from tests.robots.ur.virtual import VirtualArm, VirtualClock


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
    with pytest.raises(StateTimeoutError):
        env.step(np.zeros(2))
    assert arm.clock.time_s - began_s == DriverTimeouts().give_up_s == 10


class ForgetfulArm(VirtualArm):
    """Which does not do the first moves that it is told, as behind a driver that hears nothing."""

    left = 2

    def receive(self, timeout_s: float) -> ArmState:
        if self.left and self.commands and isinstance(self.commands[-1][1], MoveJ):
            self.left -= 1
            self.commands.append((self.clock.time_s, StopJ()))
            raise MoveInterruptedError("The driver did not let the arm complete a move.")
        return super().receive(timeout_s)


def test_a_move_that_was_not_done_for_a_silence_is_ordered_again() -> None:
    arm = ForgetfulArm(VirtualClock())
    make(arm).reset(seed=0)
    assert sum(isinstance(command, MoveJ) for command in sent(arm)) == 3


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
