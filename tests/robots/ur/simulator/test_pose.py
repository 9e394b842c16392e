from math import pi

import numpy as np
import pytest

from cycletime.robots.ur.arm import Vector
from cycletime.robots.ur.simulator.controller import rotation_vector


def rotated(vector: tuple[float, float, float]) -> Vector:
    """Rodrigues' formula, as the sum of its exponential series."""
    x, y, z = vector
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    term = total = np.eye(3)
    for order in range(1, 60):
        term = term @ cross / order
        total = total + term
    return total


@pytest.mark.parametrize("vector", [(0.0, 0.0, 0.0), (0.1, -0.2, 0.3), (1.0, 2.0, -2.0), (0.0, pi, 0.0)])
def test_a_rotation_vector_makes_its_rotation(vector: tuple[float, float, float]) -> None:
    assert rotation_vector(rotated(vector)) == pytest.approx(vector, abs=1e-6)


def test_half_a_turn_has_an_axis_in_any_direction() -> None:
    axis = np.array([2.0, -1.0, 2.0]) / 3
    told = np.array(rotation_vector(2 * np.outer(axis, axis) - np.eye(3)))
    assert np.linalg.norm(told) == pytest.approx(pi)
    assert abs(told @ axis) == pytest.approx(pi)
