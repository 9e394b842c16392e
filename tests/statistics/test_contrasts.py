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
    assert found.estimate(0.9).low == pytest.approx(theirs.confidence_interval(0.9).low)
    assert (found.cells, found.kind) == ((9, 14), "Welch t")


def test_terms_with_equal_seeds_are_scipy_s_pairs_in_whatever_order() -> None:
    x, y = X, RNG.normal(0.0, 0.5, 9)
    seeds = np.arange(9)[::-1]
    shuffled = RNG.permutation(9)
    found = Contrast.of(
        [(1.0, dict(zip(seeds, x, strict=True))), (-1.0, dict(zip(seeds[shuffled], y[shuffled], strict=True)))]
    )
    theirs = stats.ttest_rel(x, y)
    assert (found.freedom, found.cells, found.kind) == (8, (9,), "paired t")
    assert 2 * found.tail(abs(found.value)) == pytest.approx(theirs.pvalue)
    assert found.estimate(0.9).low == pytest.approx(theirs.confidence_interval(0.9).low)


def test_where_some_seeds_are_shared_the_variance_is_that_of_independent_parts() -> None:
    """Written out: of 12 and 8 runs 5 seeds are the same; the mean's variance is the sum over three sets of seeds."""
    x, y = RNG.normal(0, 3, 12), RNG.normal(1, 2, 8)
    found = Contrast.of([(1.0, dict(enumerate(x))), (-1.0, dict(enumerate(y, start=7)))])
    parts = [x[:7] / 12, x[7:] / 12 - y[:5] / 8, -y[5:] / 8]
    variances = np.array([len(part) * part.var(ddof=1) for part in parts])
    assert found.value == pytest.approx(x.mean() - y.mean())
    assert found.error == pytest.approx(np.sqrt(variances.sum()))
    assert found.freedom == pytest.approx(variances.sum() ** 2 / np.sum(variances**2 / np.array([6, 4, 2])))
    assert (found.cells, found.kind) == ((7, 5, 3), "paired t")


def test_intervals_of_partly_shared_seeds_cover_the_difference() -> None:
    rng, covered = np.random.default_rng(0), 0
    for _ in range(1000):
        both = rng.normal(0, 3, 20)
        x, y = both[:14] + rng.normal(0, 1, 14), both[6:] + rng.normal(0, 1, 14)
        interval = Contrast.of([(1.0, dict(enumerate(x))), (-1.0, dict(enumerate(y, start=6)))]).estimate()
        assert interval.low is not None
        assert interval.high is not None
        covered += interval.low < 0 < interval.high
    assert 930 <= covered <= 970  # a binomial of 950 strays farther once in 250 times


def test_a_seed_whose_run_diverged_is_left_out_of_all_terms() -> None:
    found = Contrast.of([(1.0, {0: 1.0, 1: float("nan"), 2: 3.0, 3: 4.0}), (-1.0, {0: 0.0, 1: 5.0, 2: 1.0, 3: None})])
    assert (found.value, found.cells, found.n_failed) == (1.5, (2,), 2)


def test_a_seed_with_terms_of_its_own_is_left_out_and_one_run_has_no_spread() -> None:
    assert Contrast.of([(1.0, {0: 1.0, 1: 2.0}), (-1.0, {0: 0.0, 1: 0.0, 2: 9.0})]).value == 1.5
    alone = Contrast.of([(1.0, {0: 1.0, 1: 2.0}), (-1.0, {5: 4.0})])
    assert (alone.value, alone.error, alone.tail(1.0), alone.estimate().low) == (-2.5, None, 1.0, None)


def test_weights_count_as_a_change_of_units() -> None:
    found, scaled = Contrast.of([(3.0, X), (-3.0, Y)]), Contrast.of([(1.0, 3 * X), (-1.0, 3 * Y)])
    assert (found.value, found.error, found.freedom) == pytest.approx((scaled.value, scaled.error, scaled.freedom))


def test_without_any_spread_nothing_is_left_to_chance() -> None:
    found = Contrast.of([(1.0, np.full(3, 0.1)), (-1.0, np.full(4, 0.1))])
    assert (found.value, found.error, found.freedom, found.estimate().high) == (0.0, 0.0, inf, 0.0)
    assert [found.tail(distance) for distance in (-1.0, 0.0, 1.0)] == [1.0, 0.5, 0.0]


def test_holm_s_correction_of_bare_p_values_is_the_written_out_one() -> None:
    assert holm_corrected([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm_corrected([0.01, 0.3], comparisons=5) == pytest.approx([0.05, 1.0])
    assert holm_corrected([]) == []
