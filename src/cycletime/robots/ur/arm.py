"""The arm and its servo in pure functions of NumPy: one call is one period of the controller.

A command that arrives in period k works from period k + 1 + latency. It moves the targets; the servo follows them with
a critically damped error, solved exactly for a reference that is straight within a period. The arm of the simulated
controller, and what the closed-form task is held against.
"""

from __future__ import annotations

from math import ceil, sqrt
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cycletime.robots.ur.types import Command, Joints, MoveJ, SpeedJ, StopJ
from cycletime.ur5 import ArmModel, servo

Vector: TypeAlias = NDArray[np.float64]
"""[6] one number per joint."""

_STOPPED_SPEED = 1e-9
"""rad/s: slower than this, an arm that brakes has stopped."""
_PERIOD_TOLERANCE = 1e-6
"""Of a period: what is forgiven where a time in seconds is counted in periods."""


class Path(NamedTuple):
    """A straight line of joint space, travelled with a trapezoid of speed."""

    start: Vector
    goal: Vector
    ramp_s: float
    total_s: float


class RunningLine(NamedTuple):
    command: Command
    periods: int = 0
    """For how long it has been running; a move's path, since the arm stood and it began."""
    path: Path | None = None


class Arm(NamedTuple):
    tick: int
    """Periods since the controller was switched on."""
    q: Vector
    qd: Vector
    target_q: Vector
    target_qd: Vector
    program: RunningLine | None = None
    pending: tuple[tuple[int, Command], ...] = ()
    """Commands on their way, each with the tick from which it works."""


def arm_at_rest(q: Joints | Vector) -> Arm:
    angles = np.array(q, np.float64)
    return Arm(0, angles, np.zeros_like(angles), angles.copy(), np.zeros_like(angles))


def receive_command(arm: Arm, command: Command, latency_ticks: int = 1) -> Arm:
    """The command has arrived, between this tick and the next; it works after the latency."""
    return arm._replace(pending=(*arm.pending, (arm.tick + 1 + latency_ticks, command)))


def halt(arm: Arm, deceleration: float) -> Arm:
    """Forget what runs and what is on its way, and brake: what a protective stop does."""
    return arm._replace(program=RunningLine(StopJ(deceleration)), pending=())


def advance(model: ArmModel, arm: Arm) -> Arm:
    arm = _with_due_command(arm)
    target_q, target_qd, program = _next_targets(model, arm)
    q, qd = servo(model, arm.q, arm.qd, arm.target_q, target_q)
    return Arm(arm.tick + 1, q, qd, target_q, target_qd, program, arm.pending)


def accelerate_towards(speeds: Vector, wanted: Vector, most: float) -> Vector:
    """Speeds after a period in which the leading joint changes by no more than ``most``, the others in proportion."""
    change = wanted - speeds
    largest = float(np.abs(change).max())
    return wanted if largest <= most else speeds + change * (most / largest)


def _with_due_command(arm: Arm) -> Arm:
    due = [command for tick, command in arm.pending if tick <= arm.tick]
    if not due:
        return arm
    waiting = tuple(each for each in arm.pending if each[0] > arm.tick)
    return arm._replace(program=RunningLine(due[-1]), pending=waiting)


def _next_targets(model: ArmModel, arm: Arm) -> tuple[Vector, Vector, RunningLine | None]:
    if arm.program is None:
        return (*_brake(model, arm, model.idle_deceleration), None)
    match arm.program.command:
        case SpeedJ():
            return _speedj(model, arm, arm.program, arm.program.command)
        case MoveJ():
            return _movej(model, arm, arm.program, arm.program.command)
        case StopJ(deceleration):
            target_q, target_qd = _brake(model, arm, deceleration)
            return target_q, target_qd, arm.program if _moving(target_qd) else None


def _speedj(
    model: ArmModel, arm: Arm, program: RunningLine, command: SpeedJ
) -> tuple[Vector, Vector, RunningLine | None]:
    wanted = np.array(command.qd, np.float64)
    wanted = wanted * min(1.0, model.speed_limit / max(float(np.abs(wanted).max()), _STOPPED_SPEED))
    target_qd = accelerate_towards(arm.target_qd, wanted, command.acceleration * model.period_s)
    later = program._replace(periods=program.periods + 1)
    if command.time_s > 0:
        ended = later.periods >= max(1, ceil(command.time_s / model.period_s - _PERIOD_TOLERANCE))
    else:
        ended = bool(np.array_equal(target_qd, wanted))
    return arm.target_q + model.period_s * target_qd, target_qd, None if ended else later


def _movej(
    model: ArmModel, arm: Arm, program: RunningLine, command: MoveJ
) -> tuple[Vector, Vector, RunningLine | None]:
    if program.path is None and _moving(arm.target_qd):
        return (*_brake(model, arm, command.acceleration), program)
    path = program.path or plan_move(model, arm.target_q, command)
    elapsed_s = (program.periods + 1) * model.period_s
    if elapsed_s >= path.total_s - _PERIOD_TOLERANCE * model.period_s:
        return path.goal.copy(), np.zeros_like(path.goal), None
    share, rate = _along(path, elapsed_s)
    way = path.goal - path.start
    return path.start + share * way, rate * way, RunningLine(command, program.periods + 1, path)


def plan_move(model: ArmModel, start: Vector, command: MoveJ) -> Path:
    """The path of a move from a stand: its leading joint takes the longest way."""
    goal = np.array(command.q, np.float64)
    if command.time_s > 0:
        return Path(start, goal, command.time_s / 4, command.time_s)
    distance = float(np.abs(goal - start).max())
    speed = min(command.speed, model.speed_limit)
    ramp_s = min(speed / command.acceleration, sqrt(distance / command.acceleration))
    cruise_s = max(0.0, distance / speed - ramp_s)
    return Path(start, goal, ramp_s, 2 * ramp_s + cruise_s)


def _along(path: Path, elapsed_s: float) -> tuple[float, float]:
    """The share of a path that is done, and how fast it grows."""
    top = 1 / (path.total_s - path.ramp_s)
    left_s = path.total_s - elapsed_s
    if elapsed_s < path.ramp_s:
        return top * elapsed_s**2 / (2 * path.ramp_s), top * elapsed_s / path.ramp_s
    if left_s < path.ramp_s:
        return 1 - top * left_s**2 / (2 * path.ramp_s), top * left_s / path.ramp_s
    return top * (elapsed_s - path.ramp_s / 2), top


def _brake(model: ArmModel, arm: Arm, deceleration: float) -> tuple[Vector, Vector]:
    target_qd = accelerate_towards(arm.target_qd, np.zeros_like(arm.target_qd), deceleration * model.period_s)
    return arm.target_q + model.period_s * target_qd, target_qd


def _moving(target_qd: Vector) -> bool:
    return bool(np.abs(target_qd).max() > _STOPPED_SPEED)
