"""Where a UR arm's flange is, and with which angles it gets there: both ways in closed form.

The base's frame is the controller's. With Denavit-Hartenberg's A = Rz(q) Tz(d) Tx(a) Rx(alpha) and alpha = (pi/2, 0,
0, pi/2, -pi/2, 0), joints 2 to 4 turn about one direction t = (sin q1, -cos q1, 0), so that upper arm and forearm move
in the plane of r = (cos q1, sin q1, 0) and z. With u = r cos q234 + z sin q234 and w = r sin q234 - z cos q234, the
flange's axes are x = cos q6 (u cos q5 + t sin q5) - w sin q6, y = -sin q6 (u cos q5 + t sin q5) - w cos q6, and
z = t cos q5 - u sin q5; it is d4 t + d5 w + d6 z away from the forearm's end. The inverse takes this apart.

Functions with ``xp`` also take JAX's arrays, with jax.numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import cos, pi, sin
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Array: TypeAlias = Any
"""An array of ``xp``, NumPy or jax.numpy."""


@dataclass(frozen=True)
class Geometry:
    """The lengths of an arm in metres, by the names of Denavit and Hartenberg."""

    d1: float
    a2: float
    a3: float
    d4: float
    d5: float
    d6: float


UR5 = Geometry(d1=0.089159, a2=-0.425, a3=-0.39225, d4=0.10915, d5=0.09465, d6=0.0823)
UR5E = Geometry(d1=0.1625, a2=-0.425, a3=-0.3922, d4=0.1333, d5=0.0997, d6=0.0996)

_BRANCHES = tuple(product((1.0, -1.0), repeat=3))
"""Shoulder left or right, wrist up or down, elbow up or down."""
_SINGULAR = 1e-6
"""Below this sine of q5 the flange turns about the axis of joint 4, and q6 can be anything."""
_ON_AXIS_M = 1e-9
"""Nearer to the base's axis the direction to a place is anything."""
_REACH_TOLERANCE = 1e-6
"""By which rounding may put a cosine beyond 1 at a straight arm; in float32 more is not to be had."""


class Solutions(NamedTuple):
    """The angles with which a pose is reached."""

    angles: Array
    """[8, 6] within half a turn of zero."""
    valid: Array
    """[8] which of them are solutions."""


def forward(q: Array, geometry: Geometry = UR5, xp: Any = np) -> Array:  # noqa: ANN401 - NumPy or jax.numpy
    """[4, 4] the pose of the flange, with all six angles."""
    (s1, c1), (s5, c5), (s6, c6) = ((xp.sin(q[joint]), xp.cos(q[joint])) for joint in (0, 4, 5))
    q23 = q[1] + q[2]
    s234, c234 = xp.sin(q23 + q[3]), xp.cos(q23 + q[3])
    zero, one = xp.zeros_like(s1), xp.ones_like(s1)
    r, t, up = xp.stack([c1, s1, zero]), xp.stack([s1, -c1, zero]), xp.stack([zero, zero, one])
    u, w = c234 * r + s234 * up, s234 * r - c234 * up
    bent = c5 * u + s5 * t
    x, y, z = c6 * bent - s6 * w, -s6 * bent - c6 * w, c5 * t - s5 * u
    along = geometry.a2 * xp.cos(q[1]) + geometry.a3 * xp.cos(q23)
    above = geometry.d1 + geometry.a2 * xp.sin(q[1]) + geometry.a3 * xp.sin(q23)
    place = along * r + above * up + geometry.d4 * t + geometry.d5 * w + geometry.d6 * z
    return xp.concatenate([xp.stack([x, y, z, place], axis=1), xp.stack([zero, zero, zero, one])[None]])


def flange_place(q: Sequence[float], geometry: Geometry = UR5) -> tuple[float, float, float]:
    """Where the flange is: the last column of `forward`, of plain numbers, for who asks with every package."""
    q1, q2, q3, q4, q5, _ = q
    q23 = q2 + q3
    q234 = q23 + q4
    s1, c1, s234, c234, s5 = sin(q1), cos(q1), sin(q234), cos(q234), sin(q5)
    along = geometry.a2 * cos(q2) + geometry.a3 * cos(q23) + geometry.d5 * s234 - geometry.d6 * s5 * c234
    above = geometry.d1 + geometry.a2 * sin(q2) + geometry.a3 * sin(q23) - geometry.d5 * c234 - geometry.d6 * s5 * s234
    across = geometry.d4 + geometry.d6 * cos(q5)
    return along * c1 + across * s1, along * s1 - across * c1, above


def inverse(pose: Array, wrist: float, geometry: Geometry = UR5, xp: Any = np) -> Solutions:  # noqa: ANN401
    """The angles that reach a pose, eight of them at the most; ``wrist`` is q6 where the pose leaves it open."""
    shoulder, wrist_side, elbow = xp.asarray(_BRANCHES, pose.dtype).T
    x, y, z, place = (pose[:3, column] for column in range(4))
    centre = place - geometry.d6 * z
    reach = xp.sqrt(centre[0] ** 2 + centre[1] ** 2)
    beside = geometry.d4 / xp.maximum(reach, _ON_AXIS_M)
    q1 = xp.arctan2(centre[1], centre[0]) + shoulder * xp.arccos(xp.clip(beside, -1, 1)) + pi / 2
    s1, c1 = xp.sin(q1), xp.cos(q1)

    def along(vector: Array) -> Array:
        return vector[0] * c1 + vector[1] * s1

    def across(vector: Array) -> Array:
        return vector[0] * s1 - vector[1] * c1

    q5 = wrist_side * xp.arccos(xp.clip(across(z), -1, 1))
    s5 = xp.sin(q5)
    turned = xp.arctan2(-across(y) * wrist_side, across(x) * wrist_side)  # the side is the sign of s5
    q6 = xp.where(xp.abs(s5) < _SINGULAR, wrist, turned)
    s6, c6 = xp.sin(q6), xp.cos(q6)
    w_along, w_up = -(s6 * along(x) + c6 * along(y)), -(s6 * x[2] + c6 * y[2])
    q234 = xp.arctan2(w_along, -w_up)
    end_along = along(centre) - geometry.d5 * w_along
    end_up = centre[2] - geometry.d1 - geometry.d5 * w_up
    squares = end_along**2 + end_up**2 - geometry.a2**2 - geometry.a3**2
    bend = squares / (2 * geometry.a2 * geometry.a3)
    q3 = elbow * xp.arccos(xp.clip(bend, -1, 1))
    q2 = xp.arctan2(end_up, end_along) - xp.arctan2(geometry.a3 * xp.sin(q3), geometry.a2 + geometry.a3 * xp.cos(q3))
    angles = xp.stack([q1, q2, q3, q234 - q2 - q3, q5, q6], axis=1)
    valid = (xp.abs(beside) <= 1 + _REACH_TOLERANCE) & (xp.abs(bend) <= 1 + _REACH_TOLERANCE)
    return Solutions(xp.mod(angles + pi, 2 * pi) - pi, valid)


def nearest(solutions: Solutions, reference: Array, xp: Any = np) -> tuple[Array, Array]:  # noqa: ANN401
    """The index of the valid solution that is nearest to given angles, and whether there is one at all."""
    away = xp.sum((solutions.angles - reference) ** 2, axis=1)
    return xp.argmin(xp.where(solutions.valid, away, xp.inf)), xp.any(solutions.valid)
