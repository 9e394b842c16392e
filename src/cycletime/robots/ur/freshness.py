"""Which states of a controller are news: only those are driven by, shown to an agent and learned from.

A package proves little by coming. It may repeat another, be late, or have a running clock over frozen angles. So a
state is believed where it agrees with all else that is known:

- its numbers are an arm's, and its time is after that of the ones before;
- it is not late by its clock. The offset of both clocks is the least that was seen, and may grow by `_DRIFT` alone;
- its angles go on by its speeds, and the measured ones are near their targets;
- its angles are where the orders lead to, by the law of the controller: towards the ordered speeds with the ordered
  acceleration, begun at once or up to `REACTION_S` and the allowed lateness later.

What fails one of the first three counts as no state at all. What fails the last is an arm that does not obey, or states
that are not its own, also where they were late from the start: a person has to look.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from cycletime.errors import InputError, RunError
from cycletime.robots.ur.arm import Vector, accelerate_towards
from cycletime.robots.ur.types import JOINTS, ArmState, Command, SpeedJ, StopJ

LATE_S = 0.04
"""By which a state may be older than the youngest ones."""
REACTION_S = 0.04
"""From a state until a command that answers it works."""
ANGLE_TOLERANCE = 0.01
"""rad by which angles may differ from where speeds and orders lead to."""
_DRIFT = 0.01
"""Of the time: more than two clocks differ by, so that a simulated controller may be held up now and then."""
_FORGET_S = 1.0
"""In which most of a difference of angles is forgotten, where it is within the tolerance."""
_FORGET_ORDERS_S = 0.1
"""The same where orders lead to other angles and speeds, and the arm does move by them: what delays that vary make of
orders that vary would add up."""
_LONGEST_GAP_S = 0.1
"""Between states, after which angles do not follow from each other."""
_SERVO_ERROR = 0.1
"""rad between measured angles and their targets: three times what an arm of 1 rad/s has."""
_MOST = 100.0
"""rad, rad/s: no arm has more."""
_BRAKING = 20.0
"""rad/s^2 at most, where a line has ended and no other came."""
_DELAYS = np.linspace(0.0, 1.0, 5)
"""Of the longest, with which an arm may obey."""

STANDSTILL_CAUSES = (
    "whether the controller is in remote control, whether a program runs at its teach pendant, and whether the speed "
    "slider there is at 0"
)
"""Why an arm may not move when commanded, though nothing has stopped it."""


class Freshness:
    """Judges the states of one connection, in the order in which they come."""

    def __init__(self, late_s: float = LATE_S) -> None:
        """`late_s` is by the clock that `check` is told, which may be faster than real time."""
        self._late_s = late_s
        self._delays_s = _DELAYS * (REACTION_S + late_s)
        self.restart()

    def restart(self) -> None:
        """The connection is a new one, maybe to another controller: nothing is known."""
        self._offset_s, self._told_s = math.inf, 0.0
        self._before: ArmState | None = None
        self._path: _OrderedPath | None = None
        self._orders: deque[tuple[float, Command]] = deque()

    def sent(self, command: Command) -> None:
        """A command was sent, which answers the newest state."""
        if self._before is not None:
            self._orders.append((self._before.time_s, command))

    def check(self, now_s: float, state: ArmState) -> str:
        """Why a state that came now is not believed, in a sentence; a RunError where the arm does not obey."""
        if why := _implausible(state) or self._late(now_s, state):
            return why
        before, self._before = self._before, state
        if before is None or not state.safety_mode.allows_motion:
            self._path, self._by_speeds = None, np.array(state.target_q)
            return ""
        passed_s = state.time_s - before.time_s
        return self._disagrees(before, state, passed_s) or self._disobeys(before, state, passed_s)

    def _late(self, now_s: float, state: ArmState) -> str:
        if self._before is not None and state.time_s <= self._before.time_s:
            return f"The controller sent a state of {state.time_s:.3f} s after one of {self._before.time_s:.3f} s."
        offset_s, passed_s = now_s - state.time_s, now_s - self._told_s
        self._offset_s, self._told_s = min(offset_s, self._offset_s + _DRIFT * passed_s), now_s
        late_s = offset_s - self._offset_s
        return f"The controller's state came {late_s:.3f} s late." if late_s > self._late_s else ""

    def _disagrees(self, before: ArmState, state: ArmState, passed_s: float) -> str:
        """Whether angles do not follow from speeds, and measured angles not their targets."""
        angles = np.array(state.target_q)
        by_speeds = passed_s * (np.array(before.target_qd) + np.array(state.target_qd)) / 2
        self._by_speeds = angles.copy() if passed_s > _LONGEST_GAP_S else self._by_speeds + by_speeds
        apart = angles - self._by_speeds
        if (most := float(np.abs(apart).max())) > ANGLE_TOLERANCE:
            return f"The controller's angles do not move as its speeds say: they are {most:.3f} rad apart."
        self._by_speeds += min(1.0, passed_s / _FORGET_S) * apart
        if (most := float(np.abs(angles - np.array(state.q)).max())) > _SERVO_ERROR:
            return f"The controller's measured angles are {most:.3f} rad from their targets."
        return ""

    def _disobeys(self, before: ArmState, state: ArmState, passed_s: float) -> str:
        orders = self._orders
        while len(orders) > 1 and orders[1][0] <= before.time_s - self._delays_s[-1]:
            orders.popleft()
        newest = orders[-1][1] if orders else None
        if not isinstance(newest, SpeedJ | StopJ):  # where a move leads to is not computed: its path was checked
            self._path = None
            return ""
        line_s = newest.time_s if isinstance(newest, SpeedJ) and newest.time_s else _LONGEST_GAP_S
        if passed_s > 1.01 * line_s:  # it has ended, and the arm brakes
            orders.append((before.time_s + line_s, StopJ(_BRAKING)))
            self._path = None
        if self._path is None:
            self._path = _OrderedPath(state, len(self._delays_s))
            return ""
        in_force = [_in_force(orders, before.time_s - delay_s) for delay_s in self._delays_s]
        apart = self._path.advance(state, passed_s, in_force)
        if apart > ANGLE_TOLERANCE:
            raise RunError(
                f"The arm does not obey, or what it shows is old: it was told to move with up to "
                f"{self._path.fastest:.2g} rad/s, and shows angles that are {apart:.3f} rad from where that leads to "
                f"within {self._delays_s[-1]:g} s, with the safety mode {state.safety_mode.name} and its speed scaled "
                f"to {state.speed_scaling:.0%}. Look {STANDSTILL_CAUSES}."
            )
        return ""


class _OrderedPath:
    """Where the orders lead to from a state, with several delays."""

    def __init__(self, state: ArmState, delays: int) -> None:
        self._angles: Vector = np.tile(np.array(state.target_q), (delays, 1))
        self._speeds: Vector = np.tile(np.array(state.target_qd), (delays, 1))
        self._shift: Vector = np.zeros(JOINTS)
        self.fastest = 0.0

    def advance(self, state: ArmState, passed_s: float, orders: list[Command | None]) -> float:
        """Go on, with the order that is in force after each delay; how far the state's angles are off, in rad."""
        for place, order in enumerate(orders):
            if isinstance(order, SpeedJ | StopJ):  # else the arm goes on as it did
                wanted = state.speed_scaling * np.array(order.qd) if isinstance(order, SpeedJ) else np.zeros(JOINTS)
                change = passed_s * (order.acceleration if isinstance(order, SpeedJ) else order.deceleration)
                self._speeds[place] = accelerate_towards(self._speeds[place], wanted, change)
        self._angles += passed_s * self._speeds
        self.fastest = max(self.fastest, float(np.abs(self._speeds[0]).max()))
        angles = np.array(state.target_q) - self._shift
        apart = _outside(angles, self._angles)
        slip = _outside(np.array(state.target_qd), self._speeds)
        obeyed = max(0.0, 1 - float(np.abs(slip).max()) / max(float(np.abs(self._speeds).max()), 1e-9))
        forgotten = obeyed * min(1.0, passed_s / _FORGET_ORDERS_S)
        self._shift += forgotten * apart
        self._speeds += forgotten * slip
        return float(np.abs(apart).max())


def _outside(values: Vector, several: Vector) -> Vector:
    """How far values are beyond the least and the greatest of several."""
    return values - np.clip(values, several.min(axis=0), several.max(axis=0))


def _in_force(orders: deque[tuple[float, Command]], time_s: float) -> Command | None:
    return next((command for sent_s, command in reversed(orders) if sent_s <= time_s + 1e-9), None)


def _implausible(state: ArmState) -> str:
    parts = {"angles": state.q, "speeds": state.qd, "target angles": state.target_q, "target speeds": state.target_qd}
    for name, values in parts.items():
        if wrong := [value for value in values if not abs(value) < _MOST]:
            return f"The controller's {name} have the value {wrong[0]:g}, which no arm has."
    return "" if math.isfinite(state.time_s) else f"The controller's clock is at {state.time_s:g} s."


_PACE_TOLERANCE = 0.2
"""The share by which they may differ."""
_DELAY_TOLERANCE_S = 0.5
"""Of real time, by which a busy machine may delay either side."""


def check_pace(controller_s: float, ours_s: float, pace: float) -> None:
    """Refuse a controller whose clock went on by another time than ours, at `pace` of our seconds in a real one."""
    apart_s = abs(controller_s - ours_s)
    if apart_s > _PACE_TOLERANCE * ours_s and apart_s > _DELAY_TOLERANCE_S * pace:
        clock = f"the controller's clock went on by {controller_s:.3g} s in {ours_s:.3g} s"
        remedy = f"give the pace that it is simulated at, here about {pace * controller_s / ours_s:.2g}"
        raise InputError(f"The pace is {pace:g}, and {clock}: {remedy}.")
