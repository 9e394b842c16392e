"""Contrasts and Holm's correction, against SciPy and written-out numbers."""

from math import inf

import numpy as np
import pytest
from scipy import stats

from cycletime.statistics import Contrast, holm_corrected

RNG = np.random.default_rng(0)
X, Y = RNG.normal(1.0, 2.0, 9), RNG.normal(0.0, 0.5, 14)


def test_a_difference_has_scipy_s_freedom_tails_and_interval() -> None:
    found, theirs = Contrast.of([(1.0, X), (-1.0, Y)]), stats.ttest_ind(X, Y, equal_var=False)
    assert found.freedom == pytest.approx(theirs.df)
    assert 2 * found.tail(abs(found.value)) == pytest.approx(theirs.pvalue)
    low = theirs.confidence_interval(0.9).low
    assert found.value - found.half_width(0.9) == pytest.approx(low)


def test_weights_count_as_a_change_of_units() -> None:
    found, scaled = Contrast.of([(3.0, X), (-3.0, Y)]), Contrast.of([(1.0, 3 * X), (-1.0, 3 * Y)])
    assert (found.value, found.error, found.freedom) == pytest.approx((scaled.value, scaled.error, scaled.freedom))


def test_without_any_spread_nothing_is_left_to_chance() -> None:
    found = Contrast.of([(1.0, np.full(3, 0.1)), (-1.0, np.full(4, 0.1))])
    assert (found.value, found.error, found.freedom, found.half_width(0.95)) == (0.0, 0.0, inf, 0.0)
    assert [found.tail(distance) for distance in (-1.0, 0.0, 1.0)] == [1.0, 0.5, 0.0]


def test_holm_s_correction_of_bare_p_values_is_the_written_out_one() -> None:
    assert holm_corrected([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm_corrected([0.01, 0.3], comparisons=5) == pytest.approx([0.05, 1.0])
    assert holm_corrected([]) == []
