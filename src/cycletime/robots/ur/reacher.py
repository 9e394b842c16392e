"""UR-Reacher-2, the paper's robot task, in pure functions: a UR5's shoulder and elbow bring its flange to a target.

The numbers are those of the authors' runs, and so are the rules: what is observed and paid, and which commands replace
the agent's outside of the safety box and the joints' bounds; `reacher_targets` has what needs the inverse kinematics.
Points are in the task's frame, which is the controller's base frame turned by half a turn about z. Pairs are of the
shoulder and the elbow, or of y and z: plain numbers, or scalars of JAX with jax.numpy as ``xp``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, sin
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cycletime.duration import Duration
from cycletime.robots.ur.kinematics import UR5, Array, flange_place
from cycletime.robots.ur.types import Joints, MoveJ, SpeedJ, StopJ

Pair: TypeAlias = Sequence[Any]
"""Two numbers, or scalars of JAX."""

Q_REF: Joints = (1.58724391, -2.4, 1.5, -0.71790582, 1.63685572, 1.00910473)
"""The pose that episodes begin in."""
MOVED = slice(1, 3)
"""The joints that the agent moves: shoulder lift and elbow."""
SEEN = slice(1, 3)
"""The coordinates in which targets lie: y and z."""
JOINTS_LOW, JOINTS_HIGH = (-170 * pi / 180, -150 * pi / 180), (-10 * pi / 180, 150 * pi / 180)
"""Bounds of the moved joints."""
BOX_LOW, BOX_HIGH = (-0.2, -10.0, 0.4), (0.2, 0.9, 10.0)
"""Where the flange may be, in metres."""
JOINT_MARGIN, BOX_MARGIN_M = 0.001, 0.001
"""How far within its bounds a joint is turned back to, in rad, and the flange into its box."""
SPEED_MAX = 1.0
"""rad/s of each joint: an action of 1."""
ACCELERATION = 2.0
"""Of commands, rad/s^2."""
LINE_S = 0.008
"""How long a speed command works by itself; it is sent again with every package."""
TIME_LIMIT = Duration("4s")
REWARD_DT = Duration("8ms")
"""The time for which the reward was made."""
OBSERVATION_LIMITS = (2 * pi, 2 * pi, pi, pi, 3.0, 3.0, 1.0, 1.0)

STOP = StopJ(2.0)
MOVE_TO_START = MoveJ(Q_REF, acceleration=1.4, speed=1.05, time_s=2.0)

_PRECISION_M2 = 0.01
"""The square of the distance within which the precision bonus is paid."""
_RETURN_SPEED = 0.1
"""rad/s, on the way back into the box."""
_OVERSHOOT = 0.05
"""rad within which the arm should stand after it has left the box."""
_LEAST_ACCELERATION, _MOST_ACCELERATION = 2.0, 5.0
_NO_WAY = 1e-12
"""rad: a way back shorter than this has no direction."""

# With base and wrist as they are, the arm is one of two links in a plane: forearm and wrist are one.
_S1, _C1, _S4, _C4 = sin(Q_REF[0]), cos(Q_REF[0]), sin(Q_REF[3]), cos(Q_REF[3])
_BENT = UR5.d6 * sin(Q_REF[4])
_ALONG, _BESIDE = UR5.a3 + UR5.d5 * _S4 - _BENT * _C4, UR5.d5 * _C4 + _BENT * _S4
_ACROSS = UR5.d4 + UR5.d6 * cos(Q_REF[4])


class Excursion(NamedTuple):
    """Whether the flange has left the safety box, and what was found when it did."""

    outside: Any = False
    """Whether it is outside."""
    back: Pair = (0.0, 0.0)
    """The angles to return to."""
    entry_speed: Any = 0.0
    """rad/s of the fastest joint."""


def flange(upper: Pair, lower: Pair) -> tuple[Any, Any, Any]:
    """The flange's place, with sine and cosine of the shoulder's angle, and of the shoulder's and elbow's together."""
    (s2, c2), (s23, c23) = upper, lower
    reach = UR5.a2 * c2 + _ALONG * c23 + _BESIDE * s23
    height = UR5.d1 + UR5.a2 * s2 + _ALONG * s23 - _BESIDE * c23
    return -_C1 * reach - _S1 * _ACROSS, _C1 * _ACROSS - _S1 * reach, height


def flange_at(pair: Pair) -> tuple[float, float, float]:
    """The flange's place, with plain numbers."""
    both = pair[0] + pair[1]
    return flange((sin(pair[0]), cos(pair[0])), (sin(both), cos(both)))


def tip(q: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """[3] the flange's place, with all six angles."""
    x, y, z = flange_place(q.tolist() if isinstance(q, np.ndarray) else q)
    return np.array((-x, -y, z))


def place_of(pose: Array, xp: Any = np) -> Array:  # noqa: ANN401 - NumPy or jax.numpy
    """[3, ...] the place of a pose, which is in the controller's frame."""
    return xp.stack([-pose[0, 3], -pose[1, 3], pose[2, 3]])


def elbow_at(shoulder: float) -> tuple[float, float, float]:
    """The elbow's place, for pictures."""
    reach = UR5.a2 * cos(shoulder)
    return -_C1 * reach, -_S1 * reach, UR5.d1 + UR5.a2 * sin(shoulder)


def observation(q: Pair, qd: Pair, away: Pair, action: Pair, xp: Any = np) -> Array:  # noqa: ANN401
    """[8] angles, speeds, from the target to the flange, and the previous action."""
    return xp.stack([*q, *(speed / SPEED_MAX for speed in qd), *away, *action])


def reward(away: Pair, env_dt: Duration, xp: Any = np) -> Any:  # noqa: ANN401
    """What an environment step pays that ends so far away from the target."""
    squared = away[0] ** 2 + away[1] ** 2
    return (xp.exp(-squared / _PRECISION_M2) - xp.sqrt(squared)) * float(env_dt / REWARD_DT)


def speed_command(speeds: Pair, acceleration: float = ACCELERATION) -> SpeedJ:
    """The line that moves shoulder and elbow."""
    return SpeedJ((0.0, float(speeds[0]), float(speeds[1]), 0.0, 0.0, 0.0), float(acceleration), LINE_S)


def in_box(place: Sequence[Any], margin_m: float = 0.0) -> Any:  # noqa: ANN401
    """Whether a place is in the safety box."""
    return within(place, BOX_LOW, BOX_HIGH, margin_m)


def within(values: Sequence[Any], low: Joints, high: Joints, margin: float = 0.0) -> Any:  # noqa: ANN401
    """Whether all values are within their bounds."""
    inside: Any = True
    for value, lowest, highest in zip(values, low, high, strict=True):
        inside = inside & (lowest + margin <= value) & (value <= highest - margin)
    return inside


def guarded(
    action: Pair,
    q: Pair,
    qd: Pair,
    target_q: Pair,
    excursion: Excursion,
    xp: Any = np,  # noqa: ANN401
) -> tuple[tuple[Any, Any], Any]:
    """The speeds that are commanded for an action, and their acceleration.

    Outside of the box the arm goes slowly back; a joint outside of its bounds goes back as fast as the agent wanted to
    move at all.

    Args:
        action: The agent's.
        q: Measured angles.
        qd: Measured speeds.
        target_q: Angles that the controller is steering to, which tell what is outside.
        excursion: As it is now.
        xp: NumPy or jax.numpy.
    """
    way = [back - angle for back, angle in zip(excursion.back, q, strict=True)]
    hurry = _RETURN_SPEED / xp.sqrt(way[0] ** 2 + way[1] ** 2 + _NO_WAY**2)
    turned = _joints_turned_back([SPEED_MAX * xp.clip(each, -1, 1) for each in action], q, target_q, xp)
    shoulder, elbow = (
        xp.where(excursion.outside, each * hurry, speed) for each, speed in zip(way, turned, strict=True)
    )
    braking = fastest(qd, xp) * excursion.entry_speed / _OVERSHOOT
    acceleration = xp.where(excursion.outside, xp.clip(braking, _LEAST_ACCELERATION, _MOST_ACCELERATION), ACCELERATION)
    return (shoulder, elbow), acceleration


def fastest(speeds: Pair, xp: Any = np) -> Any:  # noqa: ANN401
    """The larger of two speeds, whatever their directions."""
    return xp.maximum(xp.abs(speeds[0]), xp.abs(speeds[1]))


def _joints_turned_back(wanted: Pair, q: Pair, target_q: Pair, xp: Any) -> list[Any]:  # noqa: ANN401
    over = xp.logical_not(within(target_q, JOINTS_LOW, JOINTS_HIGH))
    speed = fastest(wanted, xp)
    turned = []
    for each, angle, low, high in zip(wanted, q, JOINTS_LOW, JOINTS_HIGH, strict=True):
        back = xp.clip(angle, low + JOINT_MARGIN, high - JOINT_MARGIN) - angle
        turned.append(xp.where(over & (back != 0), xp.sign(back) * speed, each))
    return turned
