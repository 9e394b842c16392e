"""The state machine of stops, package by package."""

import pytest

from cycletime.robots.ur.safety import StopAction, StopHandler
from cycletime.robots.ur.types import ArmState, RobotMode, SafetyMode

ZEROS = (0.0,) * 6


def package(safety: SafetyMode = SafetyMode.NORMAL, robot: RobotMode = RobotMode.RUNNING) -> ArmState:
    return ArmState(0.0, ZEROS, ZEROS, ZEROS, ZEROS, robot, safety)


STOPPED = package(SafetyMode.PROTECTIVE_STOP)


@pytest.mark.parametrize(
    ("mode", "wish"),
    [
        (SafetyMode.NORMAL, StopAction.GO_ON),
        (SafetyMode.REDUCED, StopAction.GO_ON),
        (SafetyMode.PROTECTIVE_STOP, StopAction.WAIT),
        (SafetyMode.SAFEGUARD_STOP, StopAction.WAIT),
        (SafetyMode.AUTOMATIC_MODE_SAFEGUARD_STOP, StopAction.WAIT),
        (SafetyMode.UNKNOWN, StopAction.ABORT),
        (SafetyMode.RECOVERY, StopAction.ABORT),
        (SafetyMode.SYSTEM_EMERGENCY_STOP, StopAction.ABORT),
        (SafetyMode.ROBOT_EMERGENCY_STOP, StopAction.ABORT),
        (SafetyMode.VIOLATION, StopAction.ABORT),
        (SafetyMode.FAULT, StopAction.ABORT),
        (SafetyMode(99), StopAction.ABORT),
    ],
)
def test_what_each_mode_asks_for(mode: SafetyMode, wish: StopAction) -> None:
    assert StopHandler().see(package(mode), 0.0) is wish


@pytest.mark.parametrize("mode", [mode for mode in RobotMode if mode is not RobotMode.RUNNING])
def test_an_arm_that_does_not_run_ends_it(mode: RobotMode) -> None:
    stops = StopHandler()
    assert stops.see(package(robot=mode), 0.0) is StopAction.ABORT
    assert f"The robot's mode is {mode.name}" in stops.reason


def test_release_is_asked_for_after_a_while_and_again_until_the_mode_is_normal() -> None:
    stops = StopHandler()
    wishes = {time_s: stops.see(STOPPED, time_s) for time_s in (10.0, 12.0, 15.4, 15.5, 15.6, 16.4, 16.5)}
    assert [time_s for time_s, wish in wishes.items() if wish is StopAction.UNLOCK] == [15.5, 16.5]
    assert stops.see(package(), 16.6) is StopAction.GO_ON
    assert stops.count == 1


def test_requests_without_success_end_it_with_the_last_reply() -> None:
    stops = StopHandler()
    stops.see(STOPPED, 0.0)
    for time_s in (5.5, 6.5, 7.5, 8.5, 9.5):
        assert stops.see(STOPPED, time_s) is StopAction.UNLOCK
        stops.unlock_replied("Cannot unlock")
    assert stops.see(STOPPED, 10.0) is StopAction.WAIT
    assert stops.see(STOPPED, 10.5) is StopAction.ABORT
    assert "asked 5 times; it said 'Cannot unlock'" in stops.reason


def stop_at(stops: StopHandler, time_s: float) -> StopAction:
    wish = stops.see(STOPPED, time_s)
    if wish is not StopAction.ABORT:
        stops.see(package(), time_s + 6)
    return wish


def test_ten_in_a_window_are_released_and_the_eleventh_ends_it() -> None:
    stops = StopHandler()
    assert [stop_at(stops, 59.0 * number) for number in range(11)] == [StopAction.WAIT] * 10 + [StopAction.ABORT]


def test_the_window_moves_on() -> None:
    stops = StopHandler()
    assert {stop_at(stops, 60.0 * number) for number in range(50)} == {StopAction.WAIT}
    assert stops.count == 50


def test_what_has_ended_stays_so_even_if_the_mode_is_normal_again() -> None:
    stops = StopHandler()
    assert stops.see(package(SafetyMode.ROBOT_EMERGENCY_STOP), 0.0) is StopAction.ABORT
    assert stops.see(package(), 1.0) is StopAction.ABORT
