"""Laws: each against the expression that its source writes out, and its inverse."""

import pickle
from collections.abc import Callable
from fractions import Fraction
from math import ceil, exp, isclose, log, sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime.errors import InputError
from cycletime.rules import laws as f

rhos = st.fractions(min_value=Fraction(1, 64), max_value=64, max_denominator=1000)
REVERSIBLE = [
    *(f.KEPT, f.COUNT, f.POWER, f.SMOOTHING, f.PROPORTIONAL, f.ROOT, f.TIMES_ROOT),
    *(f.entropy_shift(3), f.rho_power(-0.3)),
]


@given(rhos)
def test_each_law_is_what_its_source_writes(rho: Fraction) -> None:
    r = float(rho)
    assert f.COUNT.compute(2000, rho) == 2000 / rho
    assert f.KEPT.compute(0.99, rho) == f.PER_UPDATE.compute(0.99, rho) == 0.99
    assert isclose(f.POWER.compute(0.99, rho), 0.99**r)
    assert isclose(f.CAPPED_POWER.compute(0.99, rho), min(0.99, 0.99**r))
    assert isclose(f.SMOOTHING.compute(0.005, rho), 1 - (1 - 0.005) ** r, rel_tol=1e-9)
    grown = max(1, ceil(r - 0.5))
    assert isclose(f.GROWN_SMOOTHING.compute(0.005, rho), 1 - (1 - 0.005) ** (r / grown), rel_tol=1e-9)
    assert isclose(f.PROPORTIONAL.compute(2, rho), 2 * r)
    assert f.GROWN.compute(2, rho) == 2 * grown
    assert isclose(f.ROOT.compute(0.5, rho), 0.5 / sqrt(r))
    assert isclose(f.TIMES_ROOT.compute(0.2, rho), 0.2 * sqrt(r))
    assert isclose(f.rho_power(-0.25).compute(3e-4, rho), 3e-4 * r**-0.25)
    assert isclose(f.capped_rho_power(-0.25).compute(3e-4, rho), min(3e-4, 3e-4 * r**-0.25))
    assert isclose(f.rho_power(-0.5).compute(3e-4, rho), f.ROOT.compute(3e-4, rho))


def horizon_steps(factor: f.Number) -> float:
    return -1 / log(factor)


@given(rhos, st.floats(0.05, 0.9999), st.floats(0.5, 50))
def test_the_floor_is_a_horizon_in_steps_and_raises_none_that_was_below_it(
    rho: Fraction, x: float, steps: float
) -> None:
    after = f.power_with_floor(steps).compute(x, rho)
    lowest = min(steps, horizon_steps(x))
    assert isclose(horizon_steps(after), max(horizon_steps(x) / float(rho), lowest), rel_tol=1e-9)
    assert f.power_with_floor(steps).compute(x, Fraction(1)) == x
    with_min = f.capped_power_with_floor(steps).compute(x, rho)
    assert with_min == (after if rho >= 1 else x)


def test_the_floor_where_the_paper_s_tuned_gammas_of_sac_stop() -> None:
    tuned = {4: 0.961, 8: 0.923, 16: 0.851, 32: 0.851, 64: 0.851}  # by cycle time, in ms
    for dt, gamma in tuned.items():
        # a horizon of 6.2 steps, which .851 has at 16 ms
        assert isclose(f.power_with_floor(6.2).compute(0.851, Fraction(dt, 16)), gamma, abs_tol=6e-4)


def test_the_ends_of_a_decay_stay_with_a_floor_and_the_formula_says_it() -> None:
    law = f.power_with_floor(6)
    assert [law.compute(end, Fraction(4)) for end in (0, 1)] == [0, 1]
    assert law.formula == "max(x0^rho, min(x0, e^(-1/6)))"
    assert isclose(law.compute(0.92, Fraction(4)), exp(-1 / 6))  # .716 otherwise, a horizon of 3 steps
    assert (f.rho_power(-0.5).formula, f.capped_rho_power(0.25).formula) == ("x0 * rho^-0.5", "min(x0, x0 * rho^0.25)")


def test_laws_that_are_made_alike_are_equal_and_survive_pickling() -> None:
    made = [f.power_with_floor(6), f.rho_power(-0.5), f.capped_rho_power(-0.5), f.entropy_shift(2)]
    again = [f.power_with_floor(6.0), f.rho_power(-1 / 2), f.capped_rho_power(-0.5), f.entropy_shift(2)]
    assert made == again
    assert len({*made, f.power_with_floor(7), f.rho_power(-0.25)}) == 6
    for law in made:
        copy = pickle.loads(pickle.dumps(law))
        assert (copy, copy.compute(0.5, Fraction(2))) == (law, law.compute(0.5, Fraction(2)))


@pytest.mark.parametrize("wrong", [0, -3, float("nan"), float("inf"), "6", True, None])
def test_a_floor_that_is_no_number_of_steps_is_refused(wrong: Any) -> None:  # noqa: ANN401
    with pytest.raises(
        InputError, match=rf"^The floor is {wrong!r} steps: it must be a finite number greater than 0\.$"
    ):
        f.power_with_floor(wrong)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), "half", False])
@pytest.mark.parametrize("law", [f.rho_power, f.capped_rho_power])
def test_an_exponent_that_is_no_number_is_refused(law: Callable[[Any], f.Law], wrong: Any) -> None:  # noqa: ANN401
    with pytest.raises(InputError, match=rf"^exponent is {wrong!r}: it must be a finite number\.$"):
        law(wrong)


@given(rhos, st.integers(1, 20))
def test_the_entropy_shift_is_that_of_a_gaussian_under_the_noise_rule(rho: Fraction, action_size: int) -> None:
    def gaussian_entropy(std: float) -> float:
        return action_size * (0.5 * log(2 * 3.141592653589793 * exp(1)) + log(std))

    shift = gaussian_entropy(float(f.ROOT.compute(1.0, rho))) - gaussian_entropy(1.0)
    assert isclose(f.entropy_shift(action_size).compute(-3.0, rho), -3.0 + shift, abs_tol=1e-9)


@pytest.mark.parametrize("law", REVERSIBLE)
@given(rho=rhos)
def test_going_there_and_back_is_the_identity(law: f.Law, rho: Fraction) -> None:
    assert isclose(law.compute(law.compute(0.1, rho), 1 / rho), 0.1, rel_tol=1e-9)


def test_smoothing_keeps_its_digits_where_tau_is_tiny() -> None:
    assert isclose(f.SMOOTHING.compute(1e-18, Fraction(1, 4)), 0.25e-18, rel_tol=1e-12)
    assert f.SMOOTHING.compute(1.0, Fraction(1, 4)) == 1.0


@pytest.mark.parametrize(
    ("value", "whole"),
    [
        (12.5, 12),
        (Fraction(25, 2), 12),
        (12.51, 13),
        (12.49, 12),
        (3, 3),
        (0.2, 1),
        (1.5, 1),
        (Fraction(10**30 + 1, 2), 10**30 // 2),
    ],
)
def test_whole_numbers_round_to_the_nearest_halves_down_and_at_least_one(value: f.Number, whole: int) -> None:
    assert f.nearest_whole(value) == whole


@given(st.integers(1, 10**9), st.integers(1, 10**9), rhos)
def test_rounding_never_puts_a_smaller_number_above_a_larger_one(a: int, b: int, rho: Fraction) -> None:
    small, large = sorted([a, b])
    assert f.nearest_whole(small / rho) <= f.nearest_whole(large / rho)
