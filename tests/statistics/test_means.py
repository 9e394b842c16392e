"""Means, their standard errors and t intervals, against written-out formulas and SciPy."""

import pytest
from scipy import stats

from cycletime.statistics import Estimate, mean_and_error, mean_and_interval
from tests.statistics.samples import draws, ends


def test_the_standard_error_is_that_of_the_formula() -> None:
    found = mean_and_error([1, 2, 3, 4])
    error = (5 / 3 / 4) ** 0.5  # the squares' sum is 5, over n - 1, over n
    assert found.value == 2.5
    assert ends(found) == pytest.approx((2.5 - error, 2.5 + error))
    assert (found.n, found.interval, found.resamples) == (4, "standard error", 0)


def test_the_t_interval_is_scipy_s() -> None:
    scores = draws(7)
    theirs = stats.ttest_1samp(scores, 0).confidence_interval(0.9)
    found = mean_and_interval(scores, confidence=0.9)
    assert ends(found) == pytest.approx(tuple(theirs))
    assert found.interval == "90 % t"


def test_an_estimate_reads_as_a_sentence_s_part() -> None:
    assert (
        str(Estimate(-4.12345, -4.6, -3.7, "standard error", (30,))) == "-4.123 (-4.6 to -3.7, standard error, n = 30)"
    )
    assert str(Estimate(1, 0, 2, "95 % Welch t", (30, 30), 1)) == "1 (0 to 2, 95 % Welch t, n = 30 + 30, 1 failed)"
    assert str(Estimate(1, 0, 2, "95 % bootstrap", (30,) * 5)) == "1 (0 to 2, 95 % bootstrap, n = 5 x 30)"
    assert str(mean_and_error([3])) == "3 (no interval from 1 run, n = 1)"
