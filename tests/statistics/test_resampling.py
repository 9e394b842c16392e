"""The bootstrap's own draws against SciPy's, and what it does without."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cycletime.statistics import bootstrap, interquartile_mean, resampling

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
