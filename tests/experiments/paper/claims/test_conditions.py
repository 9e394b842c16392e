"""Conditions against SciPy's tests and written-out formulas, and what several amount to."""

from collections.abc import Iterable
from math import nan, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cycletime.experiments.judging import (
    Condition,
    above,
    below,
    difference,
    mean_difference,
    mean_of,
    verdict_of,
    within,
)
from cycletime.statistics import Estimate

RNG = np.random.default_rng(0)
X, Y, Z = RNG.normal(1.0, 2.0, 12), RNG.normal(0.5, 0.7, 20), RNG.normal(0.0, 1.0, 7)


def runs(scores: Iterable[float], first: int = 0) -> dict[int, float]:
    return dict(enumerate(map(float, scores), first))


A, B, C = runs(X), runs(Y, 100), runs(Z, 200)
"""The same runs by seed, of which no two are equal."""


def made(p_holds: float, p_fails: float) -> Condition:
    return Condition("made up", Estimate(0.0, None, None, "none", (2,)), 0.0, True, p_holds, p_fails)


@pytest.mark.parametrize("bound", [-0.3, 0.0, 1.4])
def test_a_mean_is_tested_as_scipy_does(bound: float) -> None:
    over, under = above("x", bound, mean_of(A)), below("x", bound, mean_of(A))
    greater, less = (stats.ttest_1samp(X, bound, alternative=side) for side in ("greater", "less"))
    assert (over.p_holds, over.p_fails) == pytest.approx((greater.pvalue, less.pvalue))
    assert (under.p_holds, under.p_fails) == pytest.approx((less.pvalue, greater.pvalue))
    ends = stats.ttest_1samp(X, bound).confidence_interval(0.95)
    assert (over.estimate.low, over.estimate.high) == pytest.approx((ends.low, ends.high))


@pytest.mark.parametrize("bound", [-0.3, 0.0, 1.4])
def test_a_difference_is_tested_as_scipy_does(bound: float) -> None:
    over = above("x minus y", bound, difference(A, B))
    greater, less = (stats.ttest_ind(X - bound, Y, equal_var=False, alternative=side) for side in ("greater", "less"))
    assert (over.p_holds, over.p_fails) == pytest.approx((greater.pvalue, less.pvalue))
    ends = stats.ttest_ind(X, Y, equal_var=False).confidence_interval(0.95)
    assert (over.estimate.low, over.estimate.high) == pytest.approx((ends.low, ends.high))
    assert over.estimate.cells == (12, 20)


@pytest.mark.parametrize("bound", [-0.3, 0.0, 1.4])
def test_a_difference_of_equal_seeds_is_that_of_pairs(bound: float) -> None:
    over = above("x minus y", bound, difference(runs(X), runs(Y[:12])))
    greater, less = (stats.ttest_rel(X - bound, Y[:12], alternative=side) for side in ("greater", "less"))
    assert (over.p_holds, over.p_fails) == pytest.approx((greater.pvalue, less.pvalue))
    assert over.estimate.cells == (12,)


def test_a_contrast_of_several_means_is_welch_s_written_out() -> None:
    found = below("x minus y and z", 0.9, difference(A, B, C))
    shares = [np.var(X, ddof=1) / 12, np.var(Y, ddof=1) / 20 / 4, np.var(Z, ddof=1) / 7 / 4]
    error = sqrt(sum(shares))
    freedom = sum(shares) ** 2 / (shares[0] ** 2 / 11 + shares[1] ** 2 / 19 + shares[2] ** 2 / 6)
    value = X.mean() - (Y.mean() + Z.mean()) / 2
    assert found.estimate.value == pytest.approx(value)
    assert found.p_holds == pytest.approx(stats.t.cdf((value - 0.9) / error, freedom))
    assert found.estimate.high == pytest.approx(value + stats.t.ppf(0.975, freedom) * error)


def test_the_mean_of_differences_has_each_pair_s_weight() -> None:
    found = above("mean", 0.0, mean_difference([(A, B), (C, B)])).estimate
    assert found.value == pytest.approx(((X.mean() - Y.mean()) + (Z.mean() - Y.mean())) / 2)
    one, same = above("one", 0.2, mean_difference([(A, B)])), above("one", 0.2, difference(A, B))
    assert one == same


@given(bound=st.floats(-3, 5), is_above=st.booleans())
def test_one_condition_is_decided_where_its_interval_is_on_one_side(bound: float, is_above: bool) -> None:
    condition = (above if is_above else below)("x", bound, mean_of(A))
    low, high = condition.estimate.low, condition.estimate.high
    assert low is not None
    assert high is not None
    sides = {"above": low > bound, "below": high < bound}
    expected = "not decided"
    if sides["above" if is_above else "below"]:
        expected = "confirmed"
    elif sides["below" if is_above else "above"]:
        expected = "refuted"
    assert verdict_of([condition]) == expected


def test_near_zero_is_held_against_both_sides() -> None:
    assert verdict_of(within("x", 3.0, mean_of(A))) == "confirmed"
    assert verdict_of(within("x", 1.0, mean_of(runs(X + 10)))) == "refuted"
    assert verdict_of(within("x", 1.0, mean_of(runs(X - 10)))) == "refuted"
    assert verdict_of(within("x", 1.0, mean_of(A))) == "not decided"


def test_all_must_hold_without_a_correction_and_one_fails_with_holm_s() -> None:
    assert verdict_of([made(0.02, 0.98)] * 20) == "confirmed"
    assert verdict_of([made(0.02, 0.98), made(0.03, 0.97)]) == "not decided"
    # Of three, the least is held against a third of 2.5 %.
    assert verdict_of([made(0.01, 0.99)] * 2 + [made(0.99, 0.009)]) == "not decided"
    assert verdict_of([made(0.01, 0.99)] * 2 + [made(0.992, 0.008)]) == "refuted"


def test_where_some_may_fail_both_directions_are_corrected() -> None:
    surely, hardly = made(1e-6, 1.0), made(0.02, 0.98)
    assert verdict_of([surely, surely, hardly], may_fail=1) == "confirmed"
    assert verdict_of([surely, hardly, hardly], may_fail=1) == "not decided"
    fails = made(1.0, 1e-6)
    assert verdict_of([surely, surely, fails], may_fail=1) == "confirmed"
    assert verdict_of([surely, fails, fails], may_fail=1) == "refuted"


def test_runs_that_went_astray_are_left_out_and_counted() -> None:
    wild = runs([*X, nan, np.inf])
    found, plain = above("x minus y", 0.0, difference(wild, B)), above("x minus y", 0.0, difference(A, B))
    assert found.p_holds == plain.p_holds
    assert (found.estimate.cells, found.estimate.n_failed) == ((12, 20), 2)


@pytest.mark.parametrize(("scores", "value"), [([3.0], 3.0), ([3.0, nan], 3.0), ([nan], nan), ([], nan)])
def test_fewer_than_two_runs_decide_nothing(scores: list[float], value: float) -> None:
    found = above("x", 0.0, mean_of(runs(scores)))
    assert found.estimate.value == pytest.approx(value, nan_ok=True)
    assert (found.estimate.low, found.p_holds, found.p_fails) == (None, 1.0, 1.0)
    assert verdict_of([found]) == "not decided"
    assert "no interval" in str(found)


@pytest.mark.parametrize(("bound", "verdict"), [(1.0, "confirmed"), (2.0, "not decided"), (3.0, "refuted")])
def test_runs_that_are_all_alike_decide_by_their_value(bound: float, verdict: str) -> None:
    assert verdict_of([above("x", bound, mean_of(runs([2.0] * 5)))]) == verdict


def test_a_condition_reads_as_a_sentence_s_part() -> None:
    text = str(above("score", 0.0, difference(runs([1.0, 2.0, 3.0]), runs([0.5, 1.0, 1.5, 2.0], 10))))
    assert text.startswith("score: 0.75 (")
    assert text.endswith("; n = 3 + 4; required: > 0)")


def test_errors_of_the_first_kind_are_as_rare_as_promised() -> None:
    rng: Any = np.random.default_rng(1)
    # Four conditions that are just true: how often is one called failed, and all called true?
    drawn = rng.normal(size=(400, 4, 10))
    verdicts = [verdict_of([above("x", 0.0, mean_of(runs(scores))) for scores in each]) for each in drawn]
    assert verdicts.count("refuted") / 400 < 0.025 + 2 * sqrt(0.025 * 0.975 / 400)
    assert verdicts.count("confirmed") / 400 < 0.025
