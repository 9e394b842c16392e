"""Forward kinematics against the product of Denavit-Hartenberg's matrices, and the inverse against the forward."""

import numpy as np
import pytest
from numpy.typing import NDArray

from cycletime.ur5 import Q_REF, UR5, UR5E, Geometry, flange_position, forward, inverse, nearest_solution

ARMS = pytest.mark.parametrize("arm", [UR5, UR5E], ids=["UR5", "UR5e"])


def product_of_joints(q: NDArray[np.float64], arm: Geometry) -> NDArray[np.float64]:
    pose = np.eye(4)
    offsets, lengths = (arm.d1, 0.0, 0.0, arm.d4, arm.d5, arm.d6), (0.0, arm.a2, arm.a3, 0.0, 0.0, 0.0)
    twists = (np.pi / 2, 0.0, 0.0, np.pi / 2, -np.pi / 2, 0.0)
    for angle, d, a, twist in zip(q, offsets, lengths, twists, strict=True):
        c, s, ct, st = np.cos(angle), np.sin(angle), np.cos(twist), np.sin(twist)
        pose = pose @ [[c, -s * ct, s * st, a * c], [s, c * ct, -c * st, a * s], [0, st, ct, d], [0, 0, 0, 1]]
    return pose


@ARMS
def test_the_flange_is_where_the_joints_put_it_one_after_another(arm: Geometry) -> None:
    for q in np.random.default_rng(0).uniform(-np.pi, np.pi, (30, 6)):
        np.testing.assert_allclose(forward(q, arm), product_of_joints(q, arm), atol=1e-14)
        np.testing.assert_allclose(flange_position(q.tolist(), arm), product_of_joints(q, arm)[:3, 3], atol=1e-15)


def test_many_poses_at_once_are_the_single_ones() -> None:
    many = np.random.default_rng(1).uniform(-np.pi, np.pi, (6, 4))
    np.testing.assert_allclose(forward(many)[..., 2], forward(many[:, 2]), atol=1e-15)


@ARMS
def test_every_solution_reaches_the_pose_and_one_is_what_it_came_from(arm: Geometry) -> None:
    for q in np.random.default_rng(2).uniform(-np.pi, np.pi, (60, 6)):
        pose = product_of_joints(q, arm)
        solutions = inverse(pose, 0.0, arm)
        assert solutions.valid.any()
        for angles in solutions.angles[solutions.valid]:
            np.testing.assert_allclose(product_of_joints(angles, arm), pose, atol=1e-7)
        found, any_found = nearest_solution(solutions, q)
        assert any_found
        np.testing.assert_allclose(solutions.angles[found], q, atol=1e-6)


def test_an_arm_well_within_reach_has_eight_different_solutions() -> None:
    solutions = inverse(forward(np.array(Q_REF)), Q_REF[5])
    assert solutions.valid.all()
    assert len(np.unique(solutions.angles.round(6), axis=0)) == 8
    assert (np.abs(solutions.angles) <= np.pi).all()


@pytest.mark.parametrize("q5", [0.0, 1e-9, -1e-9])
def test_where_the_wrist_is_straight_its_last_angle_is_the_wished_one(q5: float) -> None:
    q = np.array([0.4, -1.3, 1.1, -0.6, q5, 0.9])
    solutions = inverse(forward(q), 0.9)
    found, _ = nearest_solution(solutions, q)
    np.testing.assert_allclose(solutions.angles[found], q, atol=1e-5)


@pytest.mark.parametrize("place", [(2.0, 0.0, 0.3), (0.0, 0.0, 1.9), (0.02, 0.02, 0.4)])
def test_what_is_out_of_reach_has_no_solution(place: tuple[float, float, float]) -> None:
    pose = np.eye(4)
    pose[:3, 3] = place
    solutions = inverse(pose, 0.0)
    assert not solutions.valid.any()
    assert not nearest_solution(solutions, np.zeros(6))[1]
