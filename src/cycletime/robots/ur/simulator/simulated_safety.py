"""The simulated safety system: commands that it refuses, what it stops for, and how a stop is left again."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cycletime.robots.ur.arm import Arm
from cycletime.robots.ur.simulator.profile import TripLimits
from cycletime.robots.ur.types import Command, MoveJ, RobotMode, SafetyMode, SpeedJ, StopJ, joints_of, numbers_of
from cycletime.robots.ur.wire.dashboard import UNLOCK_REFUSED, UNLOCKED


def refusal_reason(command: Command) -> str | None:
    joints, name = joints_of(command), type(command).__name__.lower()
    if not all(map(math.isfinite, numbers_of(command))):
        return f"{name} has a number that is not finite"
    if len(joints) not in (0, 6):
        return f"{name} has {len(joints)} joint values, and the arm 6 joints"
    match command:
        case SpeedJ(_, acceleration, time_s):
            given = acceleration > 0 and time_s >= 0
            needed = "an acceleration above 0, and no negative time"
        case MoveJ(_, acceleration, speed, time_s):
            given = acceleration > 0 and speed > 0 and time_s >= 0
            needed = "an acceleration and a speed above 0, and no negative time"
        case StopJ(deceleration):
            given, needed = deceleration > 0, "a deceleration above 0"
    return None if given else f"{name} needs {needed}"


UNLOCK_AFTER_S = 5.0
_POWER_CUT = (SafetyMode.SYSTEM_EMERGENCY_STOP, SafetyMode.ROBOT_EMERGENCY_STOP, SafetyMode.VIOLATION, SafetyMode.FAULT)


@dataclass
class SafetySystem:
    robot_mode: RobotMode = RobotMode.RUNNING
    safety_mode: SafetyMode = SafetyMode.NORMAL
    stopped_at_s: float = 0.0
    """The controller's time of the last protective stop."""
    refuses_unlock: bool = False
    """A fault that tests ask for: whatever stops the arm has not gone away."""

    @property
    def allows_motion(self) -> bool:
        return self.safety_mode.allows_motion and self.robot_mode is RobotMode.RUNNING

    def stop(self, mode: SafetyMode, time_s: float) -> None:
        """A stop; one that is worse is not lifted by one that is less."""
        if mode > self.safety_mode:
            self.safety_mode = mode
            self.stopped_at_s = time_s
        if mode in _POWER_CUT:
            self.robot_mode = RobotMode.POWER_OFF

    def unlock(self, time_s: float) -> str:
        if self.safety_mode is not SafetyMode.PROTECTIVE_STOP:
            return UNLOCKED
        if time_s - self.stopped_at_s < UNLOCK_AFTER_S:
            return f"{UNLOCK_REFUSED}. Always inspect cause of protective stop before unlocking"
        if not self.refuses_unlock:
            self.safety_mode = SafetyMode.NORMAL
        return UNLOCKED

    def restart(self) -> None:
        """Leave a violation or a fault, with the power off."""
        if self.safety_mode in (SafetyMode.VIOLATION, SafetyMode.FAULT):
            self.safety_mode = SafetyMode.NORMAL

    def release_emergency_stop(self) -> None:
        """Someone has turned the button back; the power stays off."""
        if self.safety_mode in (SafetyMode.SYSTEM_EMERGENCY_STOP, SafetyMode.ROBOT_EMERGENCY_STOP):
            self.safety_mode = SafetyMode.NORMAL

    def power_on(self) -> None:
        if self.robot_mode is RobotMode.POWER_OFF and self.safety_mode not in _POWER_CUT:
            self.robot_mode = RobotMode.IDLE

    def release_brakes(self) -> None:
        self.power_on()
        if self.robot_mode is RobotMode.IDLE:
            self.robot_mode = RobotMode.RUNNING


def violation_reason(limits: TripLimits, before: Arm, after: Arm, period_s: float, tip_m: float) -> str | None:
    asked = float(np.abs(after.target_qd - before.target_qd).max()) / period_s
    speed, angle = float(np.abs(after.qd).max()), float(np.abs(after.q).max())
    if asked > limits.acceleration:
        return f"a program asks for {asked:.1f} rad/s2, more than {limits.acceleration:g}"
    if speed > limits.speed:
        return f"a joint moves at {speed:.2f} rad/s, faster than {limits.speed:g}"
    if angle > limits.angle:
        return f"a joint is at {angle:.2f} rad, beyond {limits.angle:g}"
    if limits.floor_m is not None and tip_m < limits.floor_m:
        return f"the tip is at {tip_m:.3f} m, below {limits.floor_m:g}"
    return None
