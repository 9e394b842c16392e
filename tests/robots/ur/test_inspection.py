"""What is found missing, mode by mode; and that an inspection asks and does nothing."""

import pytest

from cycletime.robots.ur.inspection import _problems, inspect
from cycletime.robots.ur.rtde_client import Address
from cycletime.robots.ur.types import ArmState, LinkError, RobotMode, RuntimeState, SafetyMode
from cycletime.ur5 import Q_REF
from tests.robots.ur.scripted import Realtime, ScriptedRtde, scripted, serving

ZEROS = (0.0,) * 6


def missing(**state: object) -> list[str]:
    values = {"time_s": 0.0, "q": Q_REF, "qd": ZEROS, "target_q": Q_REF, "target_qd": ZEROS} | state
    return _problems(ArmState(**values), {"is in remote control": "true"})  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", [mode for mode in RobotMode if mode is not RobotMode.RUNNING])
def test_every_mode_without_power_has_its_sentence(mode: RobotMode) -> None:
    (sentence,) = missing(robot_mode=mode)
    assert sentence.endswith(".")


@pytest.mark.parametrize("mode", [mode for mode in SafetyMode if not mode.allows_motion])
def test_every_stop_has_its_sentence_and_comes_before_the_power_that_it_cut(mode: SafetyMode) -> None:
    (sentence,) = missing(safety_mode=mode, robot_mode=RobotMode.POWER_OFF)
    assert sentence.endswith(".")


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({"robot_mode": RobotMode.POWER_OFF}, "The arm has no power: press ON, and then START"),
        ({"robot_mode": RobotMode.IDLE}, "The arm's brakes are on: press START"),
        ({"safety_mode": SafetyMode.PROTECTIVE_STOP}, "look for what it ran into, then enable it"),
        ({"safety_mode": SafetyMode.ROBOT_EMERGENCY_STOP}, "The emergency stop is pressed"),
        ({"runtime_state": RuntimeState.PLAYING}, "A program runs on the controller: stop it"),
        ({"speed_scaling": 0.3}, "The speed slider is at 30%: set it to 100 %"),
        ({"q": (0.0, -1.5, 2.4, 0.0, 0.0, 0.0)}, "outside of the task's safety box or joint bounds"),
        ({"q": (Q_REF[0], 0.1, *Q_REF[2:])}, "outside of the task's safety box or joint bounds"),
    ],
)
def test_what_is_missing_is_named(state: dict[str, object], says: str) -> None:
    (sentence,) = missing(**state)
    assert says in sentence


def test_an_arm_in_reduced_mode_is_ready() -> None:
    assert missing(safety_mode=SafetyMode.REDUCED) == []


def test_another_arm_is_not_the_task_s() -> None:
    state = ArmState(0.0, Q_REF, ZEROS, Q_REF, ZEROS)
    assert "The arm is a 'UR10'" in _problems(state, {"get robot model": "UR10"})[0]


def test_all_that_is_missing_is_told_together_and_nothing_was_sent() -> None:
    realtime = Realtime()
    with scripted(ScriptedRtde(), realtime=realtime) as address:  # which plays, at 50 %, somewhere, without a dashboard
        found = inspect(address)
    assert [sentence.split(":")[0] for sentence in found.missing] == [
        "A program runs on the controller",
        "The speed slider is at 50%",
        "The arm is outside of the task's safety box or joint bounds",
        "The dashboard of the controller at 127.0.0.1",
    ]
    assert dict(found.facts)["remote control"] == "not needed"
    assert realtime.received == b""


def test_one_that_is_too_old_is_refused() -> None:
    with serving(Realtime()) as port, pytest.raises(LinkError, match=r"from software 3\.4 on"):
        inspect(Address("127.0.0.1", 9, port, 9))
