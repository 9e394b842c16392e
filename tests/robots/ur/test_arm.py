"""The arm's motion against what its formulas say by hand: ramps, lines that end, moves, the servo."""

import numpy as np
import pytest
from numpy.typing import NDArray

from cycletime.robots.ur.arm import Arm, advance, arm_at_rest, halt, plan_move, receive_command
from cycletime.robots.ur.types import Command, Joints, MoveJ, SpeedJ, StopJ
from cycletime.ur5 import ArmModel, servo

MODEL = ArmModel()
H = MODEL.period_s
START: Joints = (0.0, -1.5, 1.0, 0.0, 0.5, 0.0)


def joints(shoulder: float, elbow: float) -> Joints:
    return (0.0, shoulder, elbow, 0.0, 0.0, 0.0)


def streamed(arm: Arm, command: Command, periods: int) -> list[Arm]:
    """The arm after each period, with the command sent again with every package."""
    arms = []
    for _ in range(periods):
        arm = advance(MODEL, receive_command(arm, command))
        arms.append(arm)
    return arms


def left_alone(arm: Arm, periods: int) -> list[Arm]:
    arms = []
    for _ in range(periods):
        arm = advance(MODEL, arm)
        arms.append(arm)
    return arms


def after_move(arm: Arm, command: MoveJ) -> list[Arm]:
    arm, arms = receive_command(arm, command, latency_ticks=0), []
    while arm.pending or arm.program:
        arm = advance(MODEL, arm)
        arms.append(arm)
    return arms


@pytest.mark.parametrize("latency", [0, 1, 3])
def test_a_command_works_one_period_and_the_latency_after_it_came(latency: int) -> None:
    arm = receive_command(arm_at_rest(START), SpeedJ(joints(1.0, 0.0), 2.0, 0.008), latency)
    speeds = [float(each.target_qd[1]) for each in left_alone(arm, latency + 2)]
    assert speeds[:-1] == [0.0] * (latency + 1)
    assert speeds[-1] == pytest.approx(2.0 * H)


def test_the_joint_that_changes_the_most_gets_the_acceleration_and_others_their_part() -> None:
    arms = streamed(arm_at_rest(START), SpeedJ(joints(0.8, -0.4), 2.0, 0.008), 60)
    speeds = np.array([arm.target_qd for arm in arms])
    np.testing.assert_allclose(speeds[:, 2], -0.5 * speeds[:, 1], atol=1e-15)
    np.testing.assert_allclose(np.diff(speeds[1:51, 1]), 2.0 * H, atol=1e-12)
    np.testing.assert_array_equal(speeds[-1], joints(0.8, -0.4))
    way = np.array(START) + H * speeds.sum(axis=0)
    np.testing.assert_allclose(arms[-1].target_q, way, atol=1e-12)


def test_a_line_that_ends_leaves_the_arm_braking() -> None:
    moving = streamed(arm_at_rest(START), SpeedJ(joints(0.5, 0.0), 40.0, 0.016), 10)[-1]._replace(pending=())
    speeds = [float(arm.target_qd[1]) for arm in left_alone(moving, 10)]
    assert speeds[0] == 0.5, "the last line has one more of its two periods"
    np.testing.assert_allclose(speeds[1:7], 0.5 - 10.0 * H * np.arange(1, 7), atol=1e-12)
    assert speeds[-1] == 0.0


def test_a_line_without_a_time_ends_when_its_speeds_are_reached() -> None:
    arm = receive_command(arm_at_rest(START), SpeedJ(joints(0.04, 0.0), 2.0), 0)
    programs = [each.program for each in left_alone(arm, 4)]
    assert [program is not None for program in programs] == [False, True, True, False]  # 0.016, 0.032, 0.04 rad/s


def test_the_newest_of_commands_that_came_together_counts() -> None:
    arm = receive_command(
        receive_command(arm_at_rest(START), SpeedJ(joints(1.0, 0.0), 2.0)), SpeedJ(joints(-1.0, 0.0), 2.0)
    )
    assert left_alone(arm, 3)[-1].target_qd[1] < 0


def test_commands_beyond_the_arm_s_speed_are_scaled() -> None:
    arm = streamed(arm_at_rest(START), SpeedJ(joints(8.0, 4.0), 40.0, 0.008), 60)[-1]
    np.testing.assert_allclose(arm.target_qd, joints(np.pi, np.pi / 2), atol=1e-12)


def test_a_stop_takes_its_deceleration() -> None:
    moving = streamed(arm_at_rest(START), SpeedJ(joints(0.5, 0.25), 2.0, 0.008), 60)[-1]
    arms = left_alone(receive_command(moving._replace(pending=()), StopJ(2.0), 0), 40)
    speeds = np.array([arm.target_qd[1:3] for arm in arms])
    np.testing.assert_allclose(speeds[1, 0], 0.5 - 10 * H - 2.0 * H, atol=1e-12)  # a period without a line came first
    np.testing.assert_allclose(speeds[:30, 1], speeds[:30, 0] / 2, atol=1e-12)
    assert arms[-1].program is None
    np.testing.assert_array_equal(arms[-1].target_qd, np.zeros(6))


def test_what_is_halted_forgets_what_was_on_its_way() -> None:
    arm = receive_command(arm_at_rest(START), SpeedJ(joints(1.0, 0.0), 2.0, 0.008))
    np.testing.assert_array_equal(left_alone(halt(arm, 20.0), 10)[-1].target_q, START)


@pytest.mark.parametrize("time_s", [2.0, 0.4])
def test_a_timed_move_speeds_up_for_a_quarter_of_its_time(time_s: float) -> None:
    goal = np.array(START) + np.array([0.3, -0.9, 0.6, 0.0, 0.0, 0.1])
    arms = after_move(arm_at_rest(START), MoveJ(tuple(goal.tolist()), time_s=time_s))
    assert len(arms) == 1 + round(time_s / H)
    np.testing.assert_array_equal(arms[-1].target_q, goal)
    speeds = np.array([arm.target_qd for arm in arms])
    np.testing.assert_allclose(np.abs(speeds).max(axis=0), np.abs(goal - START) / (0.75 * time_s), rtol=1e-9)
    steps = np.diff([arm.target_q for arm in arms], axis=0)
    kinks = 0.02 * H * np.abs(speeds).max()  # where a ramp ends within a period
    np.testing.assert_allclose(steps, H * (speeds[1:] + speeds[:-1]) / 2, atol=kinks)


@pytest.mark.parametrize(("distance", "expected_s"), [(2.1, 1.05 / 1.4 + 2.1 / 1.05), (0.35, 2 * np.sqrt(0.35 / 1.4))])
def test_a_move_takes_the_time_of_its_speed_and_acceleration(distance: float, expected_s: float) -> None:
    move = MoveJ((START[0] + distance, *START[1:]))
    assert plan_move(MODEL, np.array(START), move).total_s == pytest.approx(expected_s)
    arms = after_move(arm_at_rest(START), move)
    assert len(arms) == 1 + np.ceil(expected_s / H)
    speeds = np.array([arm.target_qd[0] for arm in arms])
    assert speeds.max() <= 1.05 + 1e-12
    assert np.abs(np.diff(speeds[1:])).max() <= 1.4 * H + 1e-9


def test_a_move_to_where_the_arm_is_ends_at_once() -> None:
    arms = after_move(arm_at_rest(START), MoveJ(START))
    assert len(arms) == 2
    np.testing.assert_array_equal(arms[-1].q, START)


def test_an_arm_that_moves_brakes_before_a_move() -> None:
    moving = streamed(arm_at_rest(START), SpeedJ(joints(0.5, 0.0), 2.0, 0.008), 60)[-1]
    arms = after_move(moving._replace(pending=()), MoveJ(START, acceleration=2.0, time_s=1.0))
    stood = next(index for index, arm in enumerate(arms) if not arm.target_qd.any())
    assert arms[stood].target_q[1] > moving.target_q[1]
    assert np.all(np.diff([arm.target_qd[1] for arm in arms[1 : stood + 1]]) < 0)
    np.testing.assert_array_equal(arms[-1].target_q, START)


def test_at_a_constant_speed_nothing_lags() -> None:
    arm = streamed(arm_at_rest(START), SpeedJ(joints(0.7, -0.2), 2.0, 0.008), 200)[-1]
    np.testing.assert_allclose(arm.qd, arm.target_qd, atol=1e-12)
    np.testing.assert_allclose(arm.q, arm.target_q, atol=1e-12)


def test_the_servo_solves_its_equation() -> None:
    """By many small steps of Runge and Kutta: (q - r)'' = -2 w (q - r)' - w^2 (q - r), with r straight."""
    q, qd, before, after = 0.30, -0.4, 0.31, 0.32
    slope, w, small = (after - before) / H, MODEL.servo_rate, H / 200

    def change(y: NDArray[np.float64], t: float) -> NDArray[np.float64]:
        reference = before + slope * t
        return np.array([y[1], -2 * w * (y[1] - slope) - w**2 * (y[0] - reference)])

    y = np.array([q, qd])
    for step in range(200):
        t = step * small
        k1 = change(y, t)
        k2 = change(y + small / 2 * k1, t + small / 2)
        k3 = change(y + small / 2 * k2, t + small / 2)
        k4 = change(y + small * k3, t + small)
        y = y + small / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    np.testing.assert_allclose(servo(MODEL, q, qd, before, after), y, rtol=1e-9)
