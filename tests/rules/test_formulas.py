"""Formulas: each against the expression that its source writes out, and its inverse."""

from fractions import Fraction
from math import exp, isclose, log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime.rules import formulas as f

rhos = st.fractions(min_value=Fraction(1, 64), max_value=64, max_denominator=1000)


@given(rhos)
def test_each_formula_is_what_its_source_writes(rho: Fraction) -> None:
    r = float(rho)
    assert f.COUNT.compute(2000, rho) == 2000 / rho
    assert f.KEPT.compute(0.99, rho) == f.PER_UPDATE.compute(0.99, rho) == 0.99
    assert isclose(f.POWER.compute(0.99, rho), 0.99**r)
    assert isclose(f.CAPPED_POWER.compute(0.99, rho), min(0.99, 0.99**r))
    assert isclose(f.SMOOTHING.compute(0.005, rho), 1 - (1 - 0.005) ** r, rel_tol=1e-9)
    assert isclose(f.PROPORTIONAL.compute(2, rho), 2 * r)
    assert isclose(f.ROOT.compute(0.5, rho), 0.5 / sqrt(r))


@given(rhos, st.integers(1, 20))
def test_the_entropy_shift_is_that_of_a_gaussian_under_the_noise_rule(rho: Fraction, action_size: int) -> None:
    def gaussian_entropy(std: float) -> float:
        return action_size * (0.5 * log(2 * 3.141592653589793 * exp(1)) + log(std))

    shift = gaussian_entropy(float(f.ROOT.compute(1.0, rho))) - gaussian_entropy(1.0)
    assert isclose(f.entropy_shift(action_size).compute(-3.0, rho), -3.0 + shift, abs_tol=1e-9)


@pytest.mark.parametrize("formula", [f.COUNT, f.POWER, f.SMOOTHING, f.PROPORTIONAL, f.ROOT, f.entropy_shift(3)])
@given(rho=rhos)
def test_going_there_and_back_is_the_identity(formula: f.Formula, rho: Fraction) -> None:
    assert isclose(formula.compute(formula.compute(0.1, rho), 1 / rho), 0.1, rel_tol=1e-9)


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
