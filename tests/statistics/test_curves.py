"""Mean curves and their bands, against each bin alone."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from cycletime.statistics import iqm, iqm_curve, mean_curve
from cycletime.training.learning_curve import Episodes
from tests.statistics.samples import ends


def test_a_mean_curve_is_the_mean_in_each_bin_at_its_end() -> None:
    steps = np.array([10, 30])
    runs = [Episodes(steps, steps, np.array(returns), steps) for returns in ([1.0, 5.0], [3.0, 5.0])]
    curve = mean_curve([run.binned(40, bins=4) for run in runs], env_steps=40)
    assert curve.env_steps.tolist() == [10, 20, 30, 40]
    assert curve.mean.tolist() == [2, 2, 5, 5]
    assert curve.low is not None
    assert curve.high is not None
    assert curve.low.tolist() == pytest.approx([1, 1, 5, 5])
    assert curve.high.tolist() == pytest.approx([3, 3, 5, 5])
    assert (curve.n, curve.interval) == (2, "standard error")


def test_a_curve_s_bands_are_those_of_each_bin_alone() -> None:
    runs = np.random.default_rng(0).normal(size=(9, 4)).cumsum(axis=1)
    failed = [*runs, np.full(4, np.nan)]
    error = mean_curve(failed, 4, failed="exclude")
    assert error.low is not None
    for i in range(4):
        assert error.low[i] == pytest.approx(runs[:, i].mean() - stats.sem(runs[:, i]))
    assert (error.n, error.n_failed, error.interval) == (9, 1, "standard error")


@pytest.mark.parametrize("n", [2, 3, 4, 9])
def test_the_band_of_interquartile_means_is_that_of_each_bin_alone(n: int) -> None:
    runs = np.round(np.random.default_rng(n).normal(size=(n, 5)).cumsum(axis=1), 1)  # with ties
    curve = iqm_curve([*runs, np.full(5, np.inf)], 50, failed="exclude", confidence=0.9, resamples=3_000, seed=3)
    assert curve.low is not None
    assert curve.high is not None
    for i in range(5):
        alone = iqm(runs[:, i], confidence=0.9, resamples=3_000, seed=3)
        assert (curve.mean[i], curve.low[i], curve.high[i]) == pytest.approx((alone.value, *ends(alone)), abs=1e-12)
    assert (curve.n, curve.n_failed, curve.interval, curve.resamples) == (n, 1, "90 % bootstrap", 3_000)
    assert curve.env_steps.tolist() == [10, 20, 30, 40, 50]


def test_the_band_of_interquartile_means_is_that_of_all_resamples_of_whole_runs() -> None:
    runs = np.array([[0.0, 9.0, 2.0], [1.0, 7.0, 2.5], [4.0, 3.0, 2.1], [9.0, 1.0, 2.2]])
    # Of four runs the middle two count; all 4**4 ways to draw four of them are written out.
    drawn = [np.sort(runs[list(four)], axis=0)[1:3].mean(axis=0) for four in product(range(4), repeat=4)]
    low, high = np.quantile(drawn, [0.1, 0.9], axis=0)
    curve = iqm_curve(runs, 30, confidence=0.8, resamples=20_000)
    assert curve.low == pytest.approx(low, abs=0.02)
    assert curve.high == pytest.approx(high, abs=0.02)


def test_one_run_has_interquartile_means_without_a_band() -> None:
    curve = iqm_curve([[3.0, 4.0]], 10)
    assert curve.mean.tolist() == [3.0, 4.0]
    assert (curve.low, curve.high, curve.interval) == (None, None, "no interval from 1 run")
