"""Commands that a controller refuses, whichever way they came."""

from __future__ import annotations

import math

from cycletime.robots.ur.types import Command, MoveJ, ServoJ, SpeedJ, StopJ, joints_of, numbers_of

_LOOKAHEAD_S, _GAIN = (0.03, 0.2), (100.0, 2000.0)


def why_refused(command: Command) -> str | None:
    """What is wrong with a command's numbers, if anything."""
    joints = joints_of(command)
    if not all(map(math.isfinite, numbers_of(command))):
        return f"{_name(command)} has a number that is not finite"
    if len(joints) not in (0, 6):
        return f"{_name(command)} has {len(joints)} joint values, and the arm 6 joints"
    match command:
        case SpeedJ(_, acceleration, time_s):
            return _unless(command, acceleration > 0 and time_s >= 0, "an acceleration above 0, and no negative time")
        case MoveJ(_, acceleration, speed, time_s, _):
            given = acceleration > 0 and speed > 0 and time_s >= 0
            return _unless(command, given, "an acceleration and a speed above 0, and no negative time")
        case StopJ(deceleration):
            return _unless(command, deceleration > 0, "a deceleration above 0")
        case ServoJ(_, time_s, lookahead_s, gain):
            given = time_s > 0 and _within(lookahead_s, _LOOKAHEAD_S) and _within(gain, _GAIN)
            return _unless(command, given, "a time above 0, a lookahead of 0.03 to 0.2 s and a gain of 100 to 2000")


def _unless(command: Command, given: bool, needed: str) -> str | None:
    return None if given else f"{_name(command)} needs {needed}"


def _within(value: float, bounds: tuple[float, float]) -> bool:
    return bounds[0] <= value <= bounds[1]


def _name(command: Command) -> str:
    return type(command).__name__.lower()
