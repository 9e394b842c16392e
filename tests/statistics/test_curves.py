"""Mean curves and their bands, against each bin alone."""

import numpy as np
import pytest
from scipy import stats

from cycletime.loops import Episodes
from cycletime.statistics import bootstrap, mean_curve
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
    band = mean_curve(failed, 4, failed="exclude", band="bootstrap", confidence=0.9, seed=3)
    assert error.low is not None
    assert band.low is not None
    assert band.high is not None
    for i in range(4):
        assert error.low[i] == pytest.approx(runs[:, i].mean() - stats.sem(runs[:, i]))
        alone = bootstrap(runs[:, i], np.mean, confidence=0.9, seed=3)
        assert (band.low[i], band.high[i]) == pytest.approx(ends(alone))
    assert (band.n, band.n_failed, band.interval, band.resamples) == (9, 1, "90 % bootstrap", 10_000)
