"""The bootstrap against resamples enumerated in full, Efron's formula and SciPy's draws, and what it does without."""

import subprocess
import sys
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cycletime.statistics import (
    bootstrap,
    frequency_averaged_score,
    interquartile_mean,
    iqm,
    mean_and_error,
    resampling,
)
from cycletime.statistics.resampling import resample_means
from tests.statistics.samples import draws, ends

Drawn = Callable[..., Any]


def difference(x: Any, y: Any, axis: int) -> Any:  # noqa: ANN401
    return x.mean(axis) - y.mean(axis)


@pytest.mark.parametrize("at_once", [2e6, 700])
@pytest.mark.parametrize(("statistic", "sizes"), [(np.mean, [7]), (interquartile_mean, [30]), (difference, [5, 9])])
def test_a_percentile_interval_is_scipy_s_in_one_draw_or_in_many(
    statistic: Drawn, sizes: list[int], at_once: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resampling, "_MAX_NUMBERS_PER_CHUNK", at_once)
    random = np.random.default_rng(5)
    cells = [random.normal(size=size) for size in sizes]
    found = bootstrap(dict(enumerate(cells)), statistic, resamples=501, seed=3, confidence=0.9)
    theirs = stats.bootstrap(
        cells,
        statistic,
        vectorized=True,
        n_resamples=501,
        confidence_level=0.9,
        method="percentile",
        batch=max(1, int(at_once / max(sizes) ** 2)),
        rng=np.random.default_rng(3),
    )
    drawn = resampling._resample_statistic(cells, statistic, 501, 3)
    np.testing.assert_array_equal(drawn, theirs.bootstrap_distribution)
    # Between two resamples SciPy's versions interpolate with other roundings.
    assert (found.low, found.high) == pytest.approx(tuple(theirs.confidence_interval), rel=1e-14)


@pytest.mark.parametrize("count", [1, 3, 4, 10, 31])
def test_the_interquartile_mean_is_scipy_s_and_the_same_in_any_order(count: int) -> None:
    values = np.random.default_rng(count).normal(size=(50, count))
    found = interquartile_mean(values, 1)
    np.testing.assert_allclose(found, stats.trim_mean(values, 0.25, axis=1), rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(found, interquartile_mean(values[:, ::-1], 1))


def test_statistics_are_there_without_all_of_scipy_s() -> None:
    program = "import cycletime.statistics, sys; cycletime.statistics.iqm; print('scipy.stats' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


SKEWED = [1.0, 1.2, 1.3, 1.7, 2.0, 2.1, 3.5, 9.0]


def test_a_percentile_interval_is_that_of_all_resamples() -> None:
    scores = np.array([0.0, 1.0, 3.1, 7.7, 8.4])
    all_means = [np.mean(resample) for resample in product(scores, repeat=5)]
    found = bootstrap(scores, np.mean, confidence=0.8, resamples=40_000)
    assert ends(found) == pytest.approx(tuple(np.quantile(all_means, [0.1, 0.9])), abs=0.05)
    assert (found.interval, found.resamples, found.n) == ("80 % bootstrap", 40_000, 5)


def test_runs_are_drawn_within_each_cell_by_itself() -> None:
    a, b = np.array([0.0, 1.0, 5.0]), np.array([20.0, 23.3])
    combinations = product(product(a, repeat=3), product(b, repeat=2))
    all_scores = [(np.mean(one) + np.mean(other)) / 2 for one, other in combinations]
    found = frequency_averaged_score({"4ms": a, "8ms": b}, confidence=0.8, resamples=40_000)
    assert ends(found) == pytest.approx(tuple(np.quantile(all_scores, [0.1, 0.9])), abs=0.05)
    assert (found.cells, found.n) == ((3, 2), 5)


def test_differences_between_cells_are_no_uncertainty() -> None:
    assert ends(frequency_averaged_score({"4ms": [0, 0, 0], "8ms": [100, 100, 100]})) == (50, 50)


def test_every_cycle_time_weighs_the_same_however_many_runs_it_has() -> None:
    assert frequency_averaged_score({"4ms": [0.0] * 30, "8ms": [10.0, 10.0], 0.016: [2.0, 8.0]}).value == 5.0


@pytest.mark.parametrize(
    ("scores", "expected"), [([800, 70, 6, 5, 4, 3, 2, 1], 4.5), ([0, 1, 2, 30, 400], 11), ([1, 6], 3.5)]
)
def test_the_iqm_cuts_a_quarter_at_either_side(scores: list[float], expected: float) -> None:
    assert iqm(scores).value == pytest.approx(expected)
    assert iqm(scores).value == pytest.approx(stats.trim_mean(scores, 0.25))


def test_the_iqm_of_several_cells_is_that_of_all_their_runs() -> None:
    found = iqm({"a": [1, 2, 3, 100], "b": [-50, 4, 5, 6]})
    assert found.value == np.mean([2, 3, 4, 5])
    assert found.cells == (4, 4)


def test_one_wild_run_moves_the_mean_and_not_the_iqm() -> None:
    calm, wild = [*range(10)], [*range(9), 1e6]
    assert iqm(wild).value == iqm(calm).value
    assert mean_and_error(wild).value > 1e4


def test_the_same_seed_draws_the_same_and_another_differs() -> None:
    scores = draws(20)
    assert iqm(scores, seed=5) == iqm(scores, seed=5)
    assert ends(iqm(scores, seed=5)) != ends(iqm(scores, seed=6))
    width = np.ptp(ends(iqm(scores)))
    assert np.std([ends(iqm(scores, seed=seed))[0] for seed in range(10)]) < 0.02 * width


def test_means_drawn_anew_spread_as_their_standard_errors() -> None:
    cells = [
        dict(enumerate(np.arange(20.0))),
        dict.fromkeys(range(3), 7.0),
        {19 - seed: 2.0 * seed for seed in range(20)},
    ]
    drawn = resample_means(cells, resamples=20_000)
    assert drawn.shape == (20_001, 3)
    assert list(drawn[0]) == [9.5, 7.0, 19.0]
    assert drawn[1:, 0].mean() == pytest.approx(9.5, abs=0.05)
    assert drawn[1:, 0].std() == pytest.approx(np.std(np.arange(20)) / 20**0.5, rel=0.03)
    np.testing.assert_allclose(drawn[:, 2], 2 * (19 - drawn[:, 0]), err_msg="equal seeds are drawn together")
    assert set(drawn[:, 1]) == {7.0}
    np.testing.assert_array_equal(drawn, resample_means(cells, resamples=20_000))
