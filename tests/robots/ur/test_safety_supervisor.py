"""The supervisor: refusals one by one, and that no agent brings the simulated arm out of its limits."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cycletime.robots.ur.arm import Arm, advance, arm_at_rest, receive_command
from cycletime.robots.ur.safety import REACHER_LIMITS, ArmLimits, Override, Supervisor
from cycletime.robots.ur.types import ArmState, Command, Joints, MoveJ, SpeedJ, StopJ
from cycletime.ur5 import Q_REF, ArmModel, tip

MODEL = ArmModel()
WIDE = replace(REACHER_LIMITS, box_low=(-9, -9, -9), box_high=(9, 9, 9))
"""Bounds of joints alone."""


def state_of(arm: Arm) -> ArmState:
    q, qd, target_q, target_qd = (tuple(part.tolist()) for part in (arm.q, arm.qd, arm.target_q, arm.target_qd))
    return ArmState(arm.tick * MODEL.period_s, q, qd, target_q, target_qd)


def at(shoulder: float, elbow: float) -> Joints:
    return (Q_REF[0], shoulder, elbow, *Q_REF[3:])


def speeds(shoulder: float, elbow: float) -> Joints:
    return (0.0, shoulder, elbow, 0.0, 0.0, 0.0)


def standing_at(q: Joints) -> ArmState:
    return state_of(arm_at_rest(q))


def test_what_is_within_the_limits_passes_as_it_is() -> None:
    supervisor = Supervisor(REACHER_LIMITS, tip)
    for command in (SpeedJ(speeds(0.5, -0.5), 2.0, 0.016), MoveJ(at(-2.3, 1.4), time_s=2.0), StopJ(2.0)):
        ruling = supervisor.rule(standing_at(Q_REF), command)
        assert (ruling.command, ruling.override) == (command, Override.NONE)


@pytest.mark.parametrize(
    "command",
    [
        SpeedJ(speeds(math.nan, 0.0)),
        SpeedJ(speeds(0.0, math.inf)),
        SpeedJ(speeds(0.1, 0.1), math.nan),
        SpeedJ((0.1, 0.1)),
        MoveJ(at(math.nan, 0.0)),
        MoveJ(Q_REF, time_s=math.inf),
        StopJ(math.nan),
    ],
)
def test_what_is_no_number_stops_the_arm(command: Command) -> None:
    ruling = Supervisor(REACHER_LIMITS, tip).rule(standing_at(Q_REF), command)
    assert (ruling.command, ruling.override) == (StopJ(3.0), Override.NOT_A_NUMBER)


def test_speeds_beyond_the_limit_are_scaled_and_keep_their_direction() -> None:
    ruling = Supervisor(REACHER_LIMITS, tip).rule(standing_at(Q_REF), SpeedJ(speeds(2.0, -4.0), 100.0))
    assert ruling.override is Override.TOO_FAST
    assert isinstance(ruling.command, SpeedJ)
    assert ruling.command.qd == pytest.approx(speeds(0.5, -1.0))
    assert ruling.command.acceleration == 5.0


def test_a_move_to_the_outside_or_through_it_is_refused() -> None:
    supervisor = Supervisor(REACHER_LIMITS, tip)
    beyond_joint = MoveJ(at(-2.4, 2.7))
    below_the_table = MoveJ(at(-0.3, 0.2))
    assert tip(np.array(below_the_table.q))[2] < 0.4
    for command in (beyond_joint, below_the_table):
        ruling = supervisor.rule(standing_at(Q_REF), command)
        assert (ruling.command, ruling.override) == (StopJ(3.0), Override.GOAL_OUTSIDE)
    under_a_shelf = replace(REACHER_LIMITS, box_high=(0.2, 0.9, 0.9))
    other_side = MoveJ(at(-0.9, -1.4))
    assert 0.4 < tip(np.array(other_side.q))[2] < 0.9
    assert supervisor.rule(standing_at(Q_REF), other_side).override is Override.NONE
    assert Supervisor(under_a_shelf, tip).rule(standing_at(Q_REF), other_side).override is Override.GOAL_OUTSIDE


def test_a_move_that_is_too_fast_takes_longer() -> None:
    supervisor = Supervisor(REACHER_LIMITS, tip)
    ruling = supervisor.rule(standing_at(Q_REF), MoveJ(at(-2.4, 1.0), acceleration=50, speed=3.0, time_s=0.1))
    assert ruling.override is Override.TOO_FAST
    assert isinstance(ruling.command, MoveJ)
    assert (ruling.command.speed, ruling.command.acceleration) == (1.05, 5.0)
    assert ruling.command.time_s == pytest.approx(0.5 / 0.75 / 1.05)


def test_a_joint_outside_its_bound_goes_back_as_fast_as_the_agent_moves() -> None:
    supervisor = Supervisor(WIDE, tip)
    ruling = supervisor.rule(standing_at(at(-2.4, math.radians(151))), SpeedJ(speeds(0.2, 0.7), 2.0))
    assert ruling.override is Override.JOINT_BOUND
    assert isinstance(ruling.command, SpeedJ)
    assert ruling.command.qd == pytest.approx(speeds(0.2, -0.7))


def test_from_outside_the_box_the_arm_returns_slowly_to_where_it_was_inside_last() -> None:
    supervisor = Supervisor(REACHER_LIMITS, tip)
    inside, outside = at(-2.4, 1.5), at(-0.3, 0.2)
    command = SpeedJ(speeds(1.0, 1.0), 2.0, 0.016)
    assert supervisor.rule(standing_at(outside), command).command == StopJ(3.0)  # it never was
    supervisor.rule(standing_at(inside), command)
    ruling = supervisor.rule(standing_at(outside), command)
    assert ruling.override is Override.BOX
    assert isinstance(ruling.command, SpeedJ)
    way = np.array(inside) - np.array(outside)
    assert ruling.command.qd == pytest.approx(0.1 * way / np.abs(way).max())
    assert ruling.command.time_s == 0.016
    move = MoveJ(Q_REF)
    assert supervisor.rule(standing_at(outside), move).command == move  # a reset leads inside


@pytest.mark.parametrize("latency_ticks", [0, 2])
@pytest.mark.parametrize("box", [True, False])
def test_no_agent_brings_the_arm_out_of_its_limits(box: bool, latency_ticks: int) -> None:
    """Agents that hold random actions for a while, mostly towards corners; targets are what is bounded."""
    limits = REACHER_LIMITS if box else WIDE
    supervisor, rng = Supervisor(limits, tip), np.random.default_rng(3)
    arm, wanted, overrides, least = arm_at_rest(at(-2.7, 2.0)), np.zeros(2), set(), math.inf
    low, high, box_low, box_high = (
        np.array(each) for each in (limits.low, limits.high, limits.box_low, limits.box_high)
    )
    for tick in range(500):
        if tick % 50 == 0:
            wanted = rng.choice([-1.0, 1.0], 2) if rng.random() < 0.6 else rng.uniform(-1, 1, 2)
        ruling = supervisor.rule(state_of(arm), SpeedJ(speeds(*wanted.tolist()), 2.0, 0.016))
        overrides.add(ruling.override)
        arm = advance(MODEL, receive_command(arm, ruling.command, latency_ticks))
        place = tip(arm.target_q)
        distances = (arm.target_q - low, high - arm.target_q, place - box_low, box_high - place)
        least = min(least, *(float(each.min()) for each in distances))
    assert 0 <= least < 0.01  # led to the limits, and not kept far away from them
    assert (Override.BOX if box else Override.JOINT_BOUND) in overrides


def test_a_motion_that_would_end_outside_must_stop() -> None:
    supervisor = Supervisor(REACHER_LIMITS, tip)
    down = np.array(at(-0.3, 0.2)) - np.array(Q_REF)
    on_the_way = [np.array(Q_REF) + share * down for share in np.linspace(0, 1, 200)]
    lowest = next(q for q in on_the_way if tip(q)[2] < 0.41)
    for speed, stops in ((0.5, True), (-0.5, False), (0.001, False)):
        moving = replace(standing_at(tuple(lowest.tolist())), target_qd=tuple((speed * down).tolist()))
        assert supervisor.must_stop(moving) is stops


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"speed": 0.0}, "The limit 'speed' is 0.0: give a positive number"),
        ({"braking": math.nan}, "The limit 'braking' is nan: give a positive number"),
        ({"reaction_s": -0.1}, "The limit 'reaction_s' is -0.1: give zero or a positive number"),
        ({"stop": 1.0}, "A stop at 1.0 rad/s^2 is weaker than the 2.0 that are counted on: give more"),
        ({"low": (0.0,)}, "The limits of the joints are 1 and 6 numbers: give 6 of each"),
        ({"box_low": (0.2, 0.0, 0.0)}, "The box may be from 0.2 to 0.2: give a lower and a higher number"),
    ],
)
def test_limits_that_hold_nothing_back_are_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says.replace("^", r"\^")):
        replace(REACHER_LIMITS, **change)  # type: ignore[arg-type]


def test_the_limits_are_the_tasks() -> None:
    assert isinstance(REACHER_LIMITS, ArmLimits)
    assert REACHER_LIMITS.low[1:3] == pytest.approx((math.radians(-170), math.radians(-150)))
    assert (REACHER_LIMITS.box_low[2], REACHER_LIMITS.box_high[1]) == (0.4, 0.9)
