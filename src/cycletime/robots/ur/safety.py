"""What keeps an arm from harm: limits, the supervisor of commands, and what follows a stop of the controller's own.

All of it is software: it keeps a learning agent from bumping into the real safety functions, and is none of them.
Limits of joints, planes and speeds on the teach pendant, and an emergency stop in reach, are.

The supervisor looks ahead by the braking distance. An arm that stops brakes on a straight line of speed space, so from
speeds v it comes to stand at q + v (reaction + max|v| / 2a). Where the tip would be outside the box there, the command
is scaled down, and where the present motion would end there, the arm stops. A joint d before its bound may approach it
with the v for which v * reaction + v^2 / 2a = d. Both count on a braking a that is weaker than that of a stop.

A protective stop is released after a while, so many times and no more. Whatever a person did, or has to see to (an
emergency stop, a violation, a fault, an arm without power), ends the run: no program ever releases that.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from cycletime import ur5
from cycletime.errors import InputError
from cycletime.robots.ur.arm import Vector
from cycletime.robots.ur.types import (
    JOINTS,
    ArmState,
    Command,
    Joints,
    MoveJ,
    RobotMode,
    SafetyMode,
    SpeedJ,
    StopJ,
    joints_of,
    numbers_of,
)


@dataclass(frozen=True)
class ArmLimits:
    low: Joints
    """Least angles, rad."""
    high: Joints
    """Largest angles, rad."""
    box_low: tuple[float, ...]
    """The box for the tip, metres: its corner of least coordinates."""
    box_high: tuple[float, ...]
    """Its other corner."""
    speed: float = 1.0
    """The most of any joint that an agent may ask for, rad/s."""
    move_speed: float = 1.05
    """The most of the leading joint in moves, such as that of a reset, rad/s."""
    acceleration: float = 5.0
    """The most that a command may ask for, rad/s^2."""
    braking: float = 2.0
    """Deceleration that is counted on, rad/s^2."""
    stop: float = 3.0
    """Deceleration of a stop, rad/s^2: more than what is counted on."""
    reaction_s: float = 0.040
    """From a package of the controller until a command that answers it works."""
    joint_margin: float = 0.001
    """Kept from the bounds of joints, rad."""
    box_margin: float = 0.001
    """Kept from the faces of the box, metres."""

    def __post_init__(self) -> None:
        _check_intervals("joints", self.low, self.high, JOINTS)
        _check_intervals("box", self.box_low, self.box_high, 3)
        for name in ("speed", "move_speed", "acceleration", "braking", "stop"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"The limit {name!r} is {getattr(self, name)}: give a positive number.")
        for name in ("reaction_s", "joint_margin", "box_margin"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"The limit {name!r} is {getattr(self, name)}: give zero or a positive number.")
        if self.stop < self.braking:
            raise InputError(
                f"A stop at {self.stop} rad/s^2 is weaker than the {self.braking} that are counted on: give more."
            )


def _check_intervals(what: str, low: tuple[float, ...], high: tuple[float, ...], count: int) -> None:
    if not len(low) == len(high) == count:
        raise InputError(f"The limits of the {what} are {len(low)} and {len(high)} numbers: give {count} of each.")
    for least, largest in zip(low, high, strict=True):
        if not least < largest:
            raise InputError(f"The {what} may be from {least} to {largest}: give a lower and a higher number.")


REACHER_LIMITS = ArmLimits(
    low=(-2 * math.pi, *ur5.JOINTS_LOW, -2 * math.pi, -2 * math.pi, -2 * math.pi),
    high=(2 * math.pi, *ur5.JOINTS_HIGH, 2 * math.pi, 2 * math.pi, 2 * math.pi),
    box_low=ur5.BOX_LOW,
    box_high=ur5.BOX_HIGH,
    speed=ur5.SPEED_MAX,
    joint_margin=ur5.JOINT_MARGIN,
    box_margin=ur5.BOX_MARGIN_M,
)
"""Those of UR-Reacher-2, in the frame of `cycletime.ur5.tip`."""


_SCALES = (1.0, 0.75, 0.5, 0.25)
"""Of a command that would leave the box: the largest that does not is taken, or the arm stops."""
_PATH_POINTS = 33
"""At which the straight line of a move is looked at."""
_RETURN_SPEED = 0.1
"""rad/s of the leading joint, on the way back into the box."""


class Override(IntEnum):
    """Why a command was not passed on as it came."""

    NONE = 0
    NOT_A_NUMBER = 1
    TOO_FAST = 2
    JOINT_BOUND = 3
    BOX = 4
    GOAL_OUTSIDE = 5
    TOO_OLD = 6
    """By the driver: the order was not renewed in time."""
    UNSEEN = 7
    """By the driver: the controller fell silent, or was lost."""


@dataclass(frozen=True)
class Ruling:
    """The command that may be sent, and why it differs from the agent's, if it does."""

    command: Command
    override: Override = Override.NONE


class Supervisor:
    """Rules on commands, by the newest package of the controller; remembers where the tip was inside last."""

    def __init__(self, limits: ArmLimits, tip: Callable[[Vector], Vector]) -> None:
        """`tip` says where the tip is, in metres, for angles of the joints."""
        self.limits = limits
        self._tip = tip
        self._low, self._high = _shrunk(limits.low, limits.high, limits.joint_margin)
        self._box_low, self._box_high = _shrunk(limits.box_low, limits.box_high, limits.box_margin)
        self._last_inside: Vector | None = None

    def rule(self, state: ArmState, command: Command) -> Ruling:
        is_complete = isinstance(command, StopJ) or len(joints_of(command)) == JOINTS
        if not is_complete or not all(map(math.isfinite, numbers_of(command))):
            return self._stop(Override.NOT_A_NUMBER)
        q, qd = np.array(state.target_q), np.array(state.target_qd)
        if inside := self._inside(q):
            self._last_inside = q
        match command:
            case SpeedJ():
                return self._rule_speed(q, qd, command, inside)
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


class StopAction(IntEnum):
    GO_ON = 0
    WAIT = 1
    UNLOCK = 2
    """Ask the dashboard to release the protective stop, and tell its reply by `unlock_replied`."""
    ABORT = 3


_RELEASE_AFTER_S = 5.5
"""Of a protective stop: a controller refuses to release it for 5 s."""
_RETRY_S = 1.0
_MOST_REQUESTS = 5
"""Without success, after which the run ends."""
_MOST_STOPS, _WINDOW_S = 10, 600.0
"""Protective stops that are released in any such time; one more ends the run."""


class StopHandler:
    """Sees each package of the controller and says what to do; its times are the controller's own."""

    def __init__(self) -> None:
        self._stopped_at: deque[float] = deque()
        self._stopped = False
        self._next_request_s = 0.0
        self._requests = 0
        self._last_reply = ""
        self.count = 0
        """Protective stops so far."""
        self.reason = ""
        """Why the run must end, in a sentence, once it must."""

    def see(self, state: ArmState, now_s: float) -> StopAction:
        if not self.reason:
            self.reason = self._fatal(state)
        if self.reason:
            return StopAction.ABORT
        if state.safety_mode is SafetyMode.PROTECTIVE_STOP:
            return self._protective_stop(now_s)
        self._stopped = False
        return StopAction.GO_ON if state.safety_mode.allows_motion else StopAction.WAIT

    def unlock_replied(self, reply: str) -> None:
        """The dashboard's reply to a request; whether it helped shows in the packages that follow."""
        self._last_reply = reply

    def _protective_stop(self, now_s: float) -> StopAction:
        if not self._stopped:
            self._begin(now_s)
        elif now_s >= self._next_request_s:
            if self._requests == _MOST_REQUESTS:
                self.reason = (
                    f"The controller did not release its protective stop, though asked {self._requests} times; "
                    f"it said {self._last_reply!r}: see to it at the teach pendant."
                )
            else:
                self._requests += 1
                self._next_request_s = now_s + _RETRY_S
                return StopAction.UNLOCK
        return StopAction.ABORT if self.reason else StopAction.WAIT

    def _begin(self, now_s: float) -> None:
        self._stopped, self._requests, self._last_reply = True, 0, ""
        self._next_request_s = now_s + _RELEASE_AFTER_S
        self.count += 1
        self._stopped_at.append(now_s)
        while self._stopped_at[0] <= now_s - _WINDOW_S:
            self._stopped_at.popleft()
        if len(self._stopped_at) > _MOST_STOPS:
            self.reason = (
                f"The controller made {len(self._stopped_at)} protective stops within {_WINDOW_S:g} s, "
                f"and no more than {_MOST_STOPS} are released: look for what the arm runs into."
            )

    def _fatal(self, state: ArmState) -> str:
        mode = state.safety_mode
        if not (mode.allows_motion or mode.may_pass):
            return f"The controller's safety mode is {mode.name}: see to it at the teach pendant, then start again."
        if state.robot_mode is not RobotMode.RUNNING:
            return (
                f"The robot's mode is {state.robot_mode.name}, and must be RUNNING: power it on at the teach pendant."
            )
        return ""
