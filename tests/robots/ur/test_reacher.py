"""UR-Reacher-2's rules against written-out numbers, those of the authors' own functions among them."""

import numpy as np
import pytest

from cycletime import ur5
from cycletime.duration import Duration
from cycletime.robots.ur import reacher_env
from cycletime.ur5 import (
    JOINTS_HIGH,
    JOINTS_LOW,
    Q_REF,
    TARGETS_HIGH,
    TARGETS_LOW,
    Excursion,
    draw_target,
    flange_at,
    guard_action,
    target_of,
    tip,
    update_excursion,
)

SHOULDER, ELBOW = Q_REF[1:3]


def test_episodes_begin_at_the_authors_point() -> None:
    np.testing.assert_allclose(tip(np.array(Q_REF)), (-0.10405, 0.01940, 0.76998), atol=5e-6)


def test_the_arm_of_two_links_is_the_whole_arm_with_base_and_wrist_at_rest() -> None:
    for pair in np.random.default_rng(0).uniform(-np.pi, np.pi, (20, 2)):
        np.testing.assert_allclose(flange_at(pair), tip(np.array([Q_REF[0], *pair, *Q_REF[3:]])), atol=1e-14)


def test_the_elbow_is_an_upper_arm_away_from_the_shoulder() -> None:
    for shoulder in (-2.4, 0.0, 1.0):
        assert np.linalg.norm(np.subtract(ur5.elbow_at(shoulder), (0, 0, 0.089159))) == pytest.approx(0.425)


@pytest.mark.parametrize(("distance", "paid"), [(0.0, 1.25), (0.1, 0.335), (0.3, -0.375), (0.6, -0.75)])
def test_a_step_of_10_ms_pays_what_the_authors_does(distance: float, paid: float) -> None:
    away = (0.6 * distance, -0.8 * distance)
    assert ur5.reward(away, Duration("10ms")) == pytest.approx(paid, abs=5e-4)
    assert ur5.reward(away, Duration("40ms")) == pytest.approx(4 * ur5.reward(away, Duration("10ms")))


def test_an_observation_has_angles_speeds_the_way_from_the_target_and_the_previous_action() -> None:
    seen = ur5.observation((1.0, 2.0), (3.0, 4.0), (5.0, 6.0), (7.0, 8.0))
    np.testing.assert_array_equal(seen, np.arange(1.0, 9.0))


def test_a_command_moves_shoulder_and_elbow_and_nothing_else() -> None:
    command = reacher_env.speed_command((0.25, -1.0))
    assert (command.qd, command.acceleration, command.time_s) == ((0.0, 0.25, -1.0, 0.0, 0.0, 0.0), 2.0, 0.008)


def test_within_all_bounds_the_action_is_clipped_and_commanded() -> None:
    pair = (SHOULDER, ELBOW)
    speeds, acceleration = guard_action((0.3, -1.7), pair, (0.5, 0.5), pair, Excursion())
    assert (speeds, acceleration) == ((0.3, -1.0), 2.0)


def test_a_joint_outside_its_bounds_goes_back_as_fast_as_the_agent_wanted_to_move() -> None:
    outside = (JOINTS_LOW[0] - 0.01, 1.0)
    speeds, acceleration = guard_action((-0.2, 0.7), outside, (0.0, 0.0), outside, Excursion())
    assert (speeds, acceleration) == ((0.7, 0.7), 2.0)
    over = (-1.5, JOINTS_HIGH[1] + 0.01)
    assert guard_action((-0.2, 0.1), over, (0.0, 0.0), over, Excursion())[0] == (-0.2, -0.2)


def test_the_target_angles_tell_what_is_outside_and_the_measured_ones_which_joint() -> None:
    inside, outside = (JOINTS_LOW[0] + 0.01, 1.0), (JOINTS_LOW[0] - 0.01, 1.0)
    assert guard_action((-0.5, 0.0), outside, (0.0, 0.0), inside, Excursion())[0] == (-0.5, 0.0)
    assert guard_action((-0.5, 0.0), inside, (0.0, 0.0), outside, Excursion())[0] == (-0.5, 0.0)


@pytest.mark.parametrize(
    ("q", "target_q", "back", "speeds"),
    [
        (
            (-0.889, 0.921),
            (-0.897, 0.913),
            (-0.8971468098994073, 0.8998617193012884),
            (-0.035962125245908694, -0.09330983628641504),
        ),
        (
            (-1.405, -2.059),
            (-1.422, -2.062),
            (-1.3876670885611322, -1.9610046174771787),
            (0.017417131106373367, 0.09847153672012741),
        ),
        (
            (-2.013, 2.253),
            (-2.013, 2.242),
            (-2.038114644651019, 2.0957566318135443),
            (-0.015771927174916614, -0.09874839904114459),
        ),
        ((-2.645, -0.474), (-2.651, -0.472), (-2.645, -0.474), (0.0, 0.0)),  # an outstretched arm finds no way
    ],
)
def test_out_of_the_box_the_arm_goes_the_authors_way_back(
    q: tuple[float, float], target_q: tuple[float, float], back: tuple[float, float], speeds: tuple[float, float]
) -> None:
    excursion = update_excursion(Excursion(), q, (0.3, -0.6), target_q)
    assert excursion.outside
    np.testing.assert_allclose(excursion.back, back, atol=1e-11)
    commanded, acceleration = guard_action((0.5, 0.5), q, (0.3, -0.6), target_q, excursion)
    np.testing.assert_allclose(commanded, speeds, atol=1e-9)
    assert acceleration == 5.0  # 0.6 * 0.6 / 0.05 would be more


def test_the_way_back_is_found_once_and_forgotten_inside() -> None:
    low, lower, inside = (-1.405, -2.059), (-1.405, -2.1), (SHOULDER, ELBOW)
    first = update_excursion(Excursion(), low, (0.1, -0.4), low)
    assert first.entry_speed == 0.4
    assert update_excursion(first, lower, (0.0, -0.9), lower) == first
    assert guard_action((0.0, 0.0), lower, (0.0, -0.35), lower, first)[1] == pytest.approx(0.35 * 0.4 / 0.05)
    assert update_excursion(first, lower, (0.0, -0.9), inside) == Excursion()


@pytest.mark.parametrize(
    ("drawn", "target"),
    [
        ((-1.145, -1.39), (-0.07451077161543262, 0.8010117566998128)),
        ((-1.871, -0.037), (-0.2771448458670984, 0.9890106178389307)),
        ((-2.332, 2.071), (0.2084353953633019, 0.5134231180752933)),
        ((-0.716, -0.961), (0.38503476139810555, 0.822150049568307)),
        ((-2.727, 1.806), (-0.0645290780773996, 0.6610401643444708)),
    ],
)
def test_drawn_angles_lead_to_the_authors_targets(drawn: tuple[float, float], target: tuple[float, float]) -> None:
    chosen, found = target_of(np.array(drawn))
    assert found
    np.testing.assert_allclose(chosen, target, atol=1e-12)


@pytest.mark.parametrize("drawn", [(-0.2, 0.0), (-2.9, -2.5), (-1.5, 2.6)])
def test_angles_with_the_flange_out_of_the_targets_box_lead_to_none(drawn: tuple[float, float]) -> None:
    assert not target_of(np.array(drawn))[1]


def test_targets_lie_in_their_box_and_a_seed_draws_the_same() -> None:
    rng, again = np.random.default_rng(3), np.random.default_rng(3)
    drawn = np.array([draw_target(rng) for _ in range(20)])
    assert ((drawn >= TARGETS_LOW[1:]) & (drawn <= TARGETS_HIGH[1:])).all()
    assert draw_target(again) == tuple(drawn[0])
