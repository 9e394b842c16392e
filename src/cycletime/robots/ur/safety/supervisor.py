"""What an arm is told passes here, at the controller's rate, and only what can be stopped in time goes on.

Braking is looked ahead. An arm that stops brakes on a straight line of speed space, so from speeds v it comes to stand
at q + v (reaction + max|v| / 2a). Where the tip would be outside the box there, the command is scaled down, and where
the present motion would end there, the arm stops. A joint d before its bound may approach it with the v for which
v * reaction + v^2 / 2a = d. Both count on a braking a that is weaker than that of a stop.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cycletime.robots.ur.safety.limits import ArmLimits
from cycletime.robots.ur.types import JOINTS, ArmState, Command, MoveJ, ServoJ, SpeedJ, StopJ, joints_of, numbers_of

Vector: TypeAlias = NDArray[np.float64]
Tip: TypeAlias = Callable[[Vector], Vector]
"""Where the tip is, in metres, for angles of the joints."""

_SCALES = (1.0, 0.75, 0.5, 0.25)
"""Of a command that would leave the box: the largest that does not is taken, or the arm stops."""
_PATH_POINTS = 33
"""At which the straight line of a move is looked at."""
_RETURN_SPEED = 0.1
"""rad/s of the leading joint, on the way back into the box."""
_SHORTEST_LOOKAHEAD_S = 0.03
"""That a controller takes for following angles."""


class Override(IntEnum):
    """Why a command was not passed on as it came."""

    NONE = 0
    NOT_A_NUMBER = 1
    TOO_FAST = 2
    JOINT_BOUND = 3
    BOX = 4
    GOAL_OUTSIDE = 5
    TOO_OLD = 6
    """The driver's own reason: nobody stood by the command any more."""
    UNSEEN = 7
    """Another: the controller fell silent, or was lost."""


@dataclass(frozen=True)
class Ruling:
    """What the arm is told, and whether that is what the agent wanted."""

    command: Command
    """What may be sent."""
    override: Override = Override.NONE
    """Why it is not what was wanted."""


class Supervisor:
    """Rules on commands, by the newest package of the controller; remembers where the tip was inside last."""

    def __init__(self, limits: ArmLimits, tip: Tip) -> None:
        """Say what to keep, and how the arm's tip follows from its angles."""
        self.limits = limits
        self._tip = tip
        self._low, self._high = _shrunk(limits.low, limits.high, limits.joint_margin)
        self._box_low, self._box_high = _shrunk(limits.box_low, limits.box_high, limits.box_margin)
        self._last_inside: Vector | None = None

    def rule(self, state: ArmState, command: Command) -> Ruling:
        """What may be sent now in place of a command."""
        if not _is_sound(command):
            return self._stop(Override.NOT_A_NUMBER)
        q, qd = np.array(state.target_q), np.array(state.target_qd)
        if inside := self._inside(q):
            self._last_inside = q
        match command:
            case SpeedJ():
                return self._rule_speed(q, qd, command, inside)
            case ServoJ():
                return self._rule_servo(q, qd, command, inside)
            case MoveJ():
                return self._rule_move(q, command, inside)
            case StopJ():
                return Ruling(command)

    def must_stop(self, state: ArmState) -> bool:
        """Whether the present motion, such as of a move that was sent long ago, would leave the box."""
        q, qd = np.array(state.target_q), np.array(state.target_qd)
        return self._inside(q) and not self._stops_inside(q, qd)

    def _rule_speed(self, q: Vector, qd: Vector, command: SpeedJ, inside: bool) -> Ruling:
        if not inside:
            return self._back_inside(q, command)
        if not self._stops_inside(q, qd):
            return self._stop(Override.BOX)
        speeds, override = np.array(command.qd), Override.NONE
        if (fastest := float(np.abs(speeds).max())) > self.limits.speed:
            speeds, override = speeds * (self.limits.speed / fastest), Override.TOO_FAST
        bounded = self._within_joint_bounds(q, qd, speeds)
        if not np.array_equal(bounded, speeds):
            speeds, override = bounded, Override.JOINT_BOUND
        scale = next((scale for scale in _SCALES if self._stops_inside(q, scale * speeds)), None)
        if scale is None:
            return self._stop(Override.BOX)
        if scale < 1:
            speeds, override = scale * speeds, Override.BOX
        acceleration = min(command.acceleration, self.limits.acceleration)
        if override in (Override.JOINT_BOUND, Override.BOX):
            acceleration = max(acceleration, self.limits.stop)
        return Ruling(replace(command, qd=tuple(speeds.tolist()), acceleration=acceleration), override)

    def _rule_servo(self, q: Vector, qd: Vector, command: ServoJ, inside: bool) -> Ruling:
        """Angles to follow are a speed of (angles - q) / look-ahead, and ruled on as such."""
        lookahead_s = max(command.lookahead_s, _SHORTEST_LOOKAHEAD_S)
        speeds = (np.array(command.q) - q) / lookahead_s
        ruling = self._rule_speed(q, qd, SpeedJ(tuple(speeds.tolist()), self.limits.acceleration), inside)
        if ruling.override is Override.NONE:
            return Ruling(command)
        if not isinstance(ruling.command, SpeedJ):
            return ruling
        nearer = q + lookahead_s * np.array(ruling.command.qd)
        return Ruling(replace(command, q=tuple(nearer.tolist()), lookahead_s=lookahead_s), ruling.override)

    def _rule_move(self, q: Vector, command: MoveJ, inside: bool) -> Ruling:
        goal, limits = np.array(command.q), self.limits
        looked_at = np.linspace(0.0, 1.0, _PATH_POINTS) if inside else (1.0,)
        in_bounds = bool(np.all((goal >= self._low) & (goal <= self._high)))
        if not in_bounds or not all(self._inside(q + share * (goal - q)) for share in looked_at):
            return self._stop(Override.GOAL_OUTSIDE)
        shortest_s = float(np.abs(goal - q).max()) / (0.75 * limits.move_speed)  # the first and last quarter are ramps
        allowed = replace(
            command,
            speed=min(command.speed, limits.move_speed),
            acceleration=min(command.acceleration, limits.acceleration),
            time_s=max(command.time_s, shortest_s) if command.time_s > 0 else 0.0,
        )
        return Ruling(allowed, Override.NONE if allowed == command else Override.TOO_FAST)

    def _back_inside(self, q: Vector, command: SpeedJ) -> Ruling:
        """Slowly to where the tip was inside last; where it never was, no way is known, and a move is needed."""
        way = np.zeros(JOINTS) if self._last_inside is None else self._last_inside - q
        longest = float(np.abs(way).max())
        if longest == 0:
            return self._stop(Override.BOX)
        back = tuple((way * (_RETURN_SPEED / longest)).tolist())
        return Ruling(SpeedJ(back, self.limits.stop, command.time_s), Override.BOX)

    def _within_joint_bounds(self, q: Vector, qd: Vector, speeds: Vector) -> Vector:
        """Speeds from which every joint can still brake before its bound; joints that are outside go back.

        The joint that changes its speed the most gets the whole acceleration, the others their part of it; so while a
        joint must brake, none may change its speed by more than that one.
        """
        most, least = self._approach(self._high - q), -self._approach(q - self._low)
        back = float(np.abs(speeds).max())
        allowed = np.where(q > self._high, -back, np.where(q < self._low, back, np.clip(speeds, least, most)))
        brakes = np.where((qd > most) | (qd < least), np.abs(qd - allowed), 0.0)
        leader = float(brakes.max())
        return qd + np.clip(allowed - qd, -leader, leader) if leader else allowed

    def _approach(self, distance: Vector) -> Vector:
        braking, reacting = self.limits.braking, self.limits.braking * self.limits.reaction_s
        approach: Vector = np.sqrt(reacting**2 + 2 * braking * np.maximum(distance, 0.0)) - reacting
        return approach

    def _stops_inside(self, q: Vector, qd: Vector) -> bool:
        brakes_s = float(np.abs(qd).max()) / (2 * self.limits.braking)
        return self._inside(q + qd * (self.limits.reaction_s + brakes_s))

    def _inside(self, q: Vector) -> bool:
        tip = self._tip(q)
        return bool(np.all((tip >= self._box_low) & (tip <= self._box_high)))

    def _stop(self, why: Override) -> Ruling:
        return Ruling(StopJ(self.limits.stop), why)


def _shrunk(low: tuple[float, ...], high: tuple[float, ...], margin: float) -> tuple[Vector, Vector]:
    return np.array(low) + margin, np.array(high) - margin


def _is_sound(command: Command) -> bool:
    """Whether all of a command are numbers, one for each joint."""
    complete = isinstance(command, StopJ) or len(joints_of(command)) == JOINTS
    return complete and all(map(math.isfinite, numbers_of(command)))
