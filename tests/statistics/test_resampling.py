"""The bootstrap's own draws against SciPy's, and what it does without."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cycletime.statistics import bootstrap, interquartile_mean, probability_of_improvement, resampling

Drawn = Callable[..., Any]


def difference(x: Any, y: Any, axis: int) -> Any:  # noqa: ANN401
    return x.mean(axis) - y.mean(axis)


@pytest.mark.parametrize("at_once", [2e6, 700])
@pytest.mark.parametrize(("statistic", "sizes"), [(np.mean, [7]), (interquartile_mean, [30]), (difference, [5, 9])])
def test_a_percentile_interval_is_scipy_s_in_one_draw_or_in_many(
    statistic: Drawn, sizes: list[int], at_once: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resampling, "_NUMBERS_AT_ONCE", at_once)
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
    drawn = resampling._drawn_anew(cells, statistic, 501, 3)
    np.testing.assert_array_equal(drawn, theirs.bootstrap_distribution)
    # Between two resamples SciPy's versions interpolate with other roundings.
    assert (found.low, found.high) == pytest.approx(tuple(theirs.confidence_interval), rel=1e-14)


def share_above(x: Any, y: Any, axis: int) -> Any:  # noqa: ANN401
    """Of all pairs, one by one."""
    del axis  # always the last
    x, y = x[..., :, np.newaxis], y[..., np.newaxis, :]
    return np.mean(np.where(x == y, 0.5, x > y), axis=(-2, -1))


@pytest.mark.parametrize("sizes", [(2, 2), (7, 12), (30, 30)])
@pytest.mark.parametrize("digits", [6, 0])
def test_the_probability_of_improvement_has_the_interval_of_all_pairs_of_scipy_s_draws(
    digits: int, sizes: tuple[int, int]
) -> None:
    random = np.random.default_rng(8)
    x, y = (random.normal(size=size).round(digits) for size in sizes)  # with no digits there are ties
    found = probability_of_improvement(x, y, resamples=400, seed=3)
    theirs = stats.bootstrap(
        (x, y), share_above, vectorized=True, n_resamples=400, method="percentile", rng=np.random.default_rng(3)
    )
    assert (found.low, found.high) == pytest.approx(tuple(theirs.confidence_interval), rel=1e-12)
    assert found.value == pytest.approx(share_above(x, y, -1), rel=1e-12)


def test_pairs_are_compared_once_and_not_in_each_resample(monkeypatch: pytest.MonkeyPatch) -> None:
    compared, above = [], resampling._above

    def counted(x: resampling.Array, y: resampling.Array) -> resampling.Array:
        compared.append(x.shape + y.shape)
        return above(x, y)

    monkeypatch.setattr(resampling, "_above", counted)
    probability_of_improvement({"4ms": [1, 2], "8ms": [3, 4]}, {"4ms": [0, 1, 2], "8ms": [5]}, resamples=100)
    assert compared == [(2, 3), (2, 1)]


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
