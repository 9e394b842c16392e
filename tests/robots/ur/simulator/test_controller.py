"""The controller without a network. CB3: a tick is 8 ms, and a line works after one tick of latency."""

import numpy as np
import pytest

from cycletime.robots.ur.simulator.controller import Controller
from cycletime.robots.ur.simulator.profile import PROFILES, SimulatorSettings, TripLimits
from cycletime.robots.ur.types import RobotMode, RuntimeState, SafetyMode, SpeedJ
from cycletime.robots.ur.wire.dashboard import UNLOCK_REFUSED, UNLOCKED

FAST = "speedj([0, 0.5, 0, 0, 0, 0], 2.0, 0.4)"
UNLOCK_TICKS = 625
"""5 s."""


def advanced(controller: Controller, ticks: int) -> Controller:
    for _ in range(ticks):
        controller.advance()
    return controller


def speed(controller: Controller) -> float:
    return max(map(abs, controller.state.qd))


def said(controller: Controller) -> str:
    return controller.log[-1][1]


@pytest.mark.parametrize("latency_ticks", [0, 1, 3])
def test_a_line_works_after_its_latency(latency_ticks: int) -> None:
    controller = advanced(Controller(SimulatorSettings(latency_ticks=latency_ticks)), 5)
    controller.run_line(FAST)
    advanced(controller, 1 + latency_ticks)
    assert controller.state.target_qd == (0.0,) * 6
    advanced(controller, 1)
    assert controller.state.target_qd[1] == pytest.approx(2.0 * 0.008)


def test_a_line_ends_after_its_time_and_the_arm_brakes() -> None:
    controller = Controller()
    controller.run_line(FAST)
    assert controller.runs_line
    advanced(controller, 2 + 50)
    assert controller.state.target_qd[1] == pytest.approx(0.5)
    advanced(controller, 20)
    assert controller.state.runtime_state == RuntimeState.STOPPED
    assert speed(controller) < 0.01


def test_the_next_line_replaces_the_one_that_runs() -> None:
    controller = Controller()
    controller.run_line(FAST)
    advanced(controller, 20)
    controller.run_line("stopj(10)")
    advanced(controller, 40)
    assert speed(controller) < 1e-3


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("popup(1)", "not simulated"),
        ("def mine():", "no call"),
        ("x = 1", "no call"),
        ("speedj([1], 1)", "6 joint values"),
    ],
)
def test_a_line_that_is_not_understood_is_logged_and_moves_nothing(line: str, why: str) -> None:
    controller = Controller()
    controller.run_line(line)
    assert why in said(controller)
    assert not controller.runs_line


@pytest.mark.parametrize(
    ("limits", "line", "why"),
    [
        (TripLimits(), "speedj([0, 1, 0, 0, 0, 0], 500, 0.4)", "rad/s2"),
        (TripLimits(speed=0.3), FAST, "rad/s, faster than 0.3"),
        (TripLimits(angle=2.41), "movej([1.5, -2.5, 1.5, -0.7, 1.6, 1.0], t=1)", "beyond 2.41"),
        (TripLimits(floor_m=0.76), "movej([1.58724391, -2.4, 2.4, -0.71790582, 1.6, 1.0], t=1)", "below 0.76"),
    ],
)
def test_the_safety_system_stops_what_goes_too_far(limits: TripLimits, line: str, why: str) -> None:
    controller = Controller(SimulatorSettings(limits=limits))
    controller.run_line(line)
    for _ in range(125):
        controller.advance()
        if controller.safety.safety_mode is SafetyMode.PROTECTIVE_STOP:
            break
    assert why in said(controller)
    assert not controller.runs_line
    advanced(controller, 60)
    assert speed(controller) < 0.01


def test_a_protective_stop_brakes_at_once_and_ignores_scripts_until_it_is_unlocked() -> None:
    controller = Controller()
    controller.run_line(FAST)
    advanced(controller, 40)
    controller.stop(SafetyMode.PROTECTIVE_STOP, "test")
    advanced(controller, 25)
    assert speed(controller) < 0.01
    controller.run_line(FAST)
    stood = controller.state.target_q
    advanced(controller, UNLOCK_TICKS - 26)
    assert controller.state.target_q == stood
    assert controller.safety.unlock(controller.time_s).startswith(UNLOCK_REFUSED)
    advanced(controller, 1)
    assert controller.safety.unlock(controller.time_s) == UNLOCKED
    assert controller.safety.safety_mode is SafetyMode.NORMAL
    controller.run_line(FAST)
    advanced(controller, 10)
    assert speed(controller) > 0.01


def test_an_unlock_can_be_refused_for_ever() -> None:
    controller = Controller()
    controller.safety.refuses_unlock = True
    controller.stop(SafetyMode.PROTECTIVE_STOP, "test")
    advanced(controller, UNLOCK_TICKS)
    controller.safety.unlock(controller.time_s)
    assert controller.safety.safety_mode is SafetyMode.PROTECTIVE_STOP


def test_after_an_emergency_stop_someone_must_bring_the_power_back() -> None:
    controller = Controller()
    controller.stop(SafetyMode.ROBOT_EMERGENCY_STOP, "test")
    advanced(controller, UNLOCK_TICKS)
    controller.safety.unlock(controller.time_s)
    controller.safety.release_brakes()
    assert (controller.safety.robot_mode, controller.safety.allows_motion) == (RobotMode.POWER_OFF, False)
    controller.safety.release_emergency_stop()
    assert not controller.safety.allows_motion
    controller.safety.release_brakes()
    assert controller.safety.allows_motion


def test_a_lesser_stop_does_not_lift_a_worse_one() -> None:
    controller = Controller()
    controller.stop(SafetyMode.VIOLATION, "test")
    controller.stop(SafetyMode.PROTECTIVE_STOP, "test")
    assert controller.safety.safety_mode is SafetyMode.VIOLATION
    controller.safety.restart()
    assert (controller.safety.safety_mode, controller.safety.robot_mode) == (SafetyMode.NORMAL, RobotMode.POWER_OFF)


def test_out_of_remote_control_an_e_series_takes_no_scripts_and_a_cb3_does() -> None:
    for profile, runs in ((PROFILES["e"], False), (PROFILES["cb3"], True)):
        controller = Controller(SimulatorSettings(profile=profile))
        controller.in_remote_control = False
        controller.run_line(FAST)
        assert controller.runs_line is runs
        controller.end_line()
        controller.run_command(SpeedJ((1.0,) * 6))
        assert controller.runs_line is runs, "nor in lock-step"


def test_of_many_lines_that_are_refused_only_the_first_is_told_of() -> None:
    controller = Controller(SimulatorSettings(profile=PROFILES["e"]))
    for is_remote in (False, False, False, True, False, False):
        controller.in_remote_control = is_remote
        controller.run_line(FAST)
    assert len(controller.log) == 2
    assert said(controller).startswith(f"The controller is not in remote control: {FAST} was not run")


def test_noise_and_jitter_come_from_the_seed_alone() -> None:
    def states(seed: int) -> list[tuple[float, ...]]:
        controller = Controller(SimulatorSettings(noise=True, jitter_ticks=3, seed=seed))
        seen = []
        for _ in range(40):
            controller.run_line(FAST)
            controller.advance()
            seen.append(controller.state.q + controller.state.target_qd)
        return seen

    assert states(1) == states(1)
    assert states(1) != states(2)


def test_the_noise_is_as_large_as_it_should_be() -> None:
    controller = Controller(SimulatorSettings(noise=True))
    states = [advanced(controller, 1).state for _ in range(300)]
    still = np.array([(state.q, state.qd) for state in states])
    assert still[:, 0].std(axis=0) == pytest.approx(np.full(6, 5e-5), rel=0.2)
    assert still[:, 1].std(axis=0) == pytest.approx(np.full(6, 2e-3), rel=0.2)
