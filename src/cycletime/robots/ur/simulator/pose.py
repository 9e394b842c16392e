"""Where the tool is, as a controller tells it: a place in metres and a rotation vector."""

from __future__ import annotations

from math import acos, pi, sin

import numpy as np

from cycletime.robots.ur.arm import Vector
from cycletime.robots.ur.kinematics import Geometry, forward

_SMALL = 1e-6
"""An angle so near to 0 or to half a turn that its axis cannot be had from differences."""


def tool_pose(q: Vector, geometry: Geometry) -> tuple[float, ...]:
    """x, y, z of the flange in the base's frame, and its rotation vector."""
    pose = forward(q, geometry)
    return (*map(float, pose[:3, 3]), *rotation_vector(pose[:3, :3]))


def rotation_vector(rotation: Vector) -> tuple[float, ...]:
    """The axis of a rotation, as long as its angle is large."""
    angle = acos(min(1.0, max(-1.0, (float(np.trace(rotation)) - 1) / 2)))
    if angle < _SMALL:
        return (0.0, 0.0, 0.0)
    if angle > pi - _SMALL:  # R = 2 a a' - 1, of which the longest column is the axis
        columns = (rotation + np.eye(3)) / 2
        longest = columns[:, int(np.argmax(np.diag(columns)))]
        return tuple(map(float, angle * longest / np.linalg.norm(longest)))
    across = (rotation[2, 1] - rotation[1, 2], rotation[0, 2] - rotation[2, 0], rotation[1, 0] - rotation[0, 1])
    return tuple(float(each) * angle / (2 * sin(angle)) for each in across)
