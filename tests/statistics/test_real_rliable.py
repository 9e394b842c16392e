"""Statistics against the installed rliable, which needs an environment of its own: its import fails with pandas 3.

Run by './check rliable'. rliable is imported inside the tests, and fails if it is missing: nothing skips. Both sides
draw their own resamples, so that intervals agree up to what the draws of rliable, which is slow, leave open.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cycletime.statistics import (
    Comparison,
    Estimate,
    Options,
    bootstrap,
    frequency_averaged_score,
    holm,
    iqm,
    mean_and_error,
)

pytestmark = pytest.mark.rliable

DTS = ("4ms", "8ms", "16ms", "32ms", "64ms")


def study(seed: int, runs: int = 12) -> dict[str, NDArray[np.float64]]:
    """Skewed scores, unlike from cycle time to cycle time."""
    source = np.random.default_rng(seed)
    return {dt: 5 * i - source.gamma(2.0, 3.0 + i, runs) for i, dt in enumerate(DTS)}


def options(confidence: float = 0.95) -> Options:
    return Options(confidence=confidence, resamples=20_000)


def matrix(cells: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """As rliable wants it: runs by cells."""
    return np.stack(list(cells.values()), axis=1)


def assert_same(ours: Estimate, scores: object, metric: Callable[..., Any], confidence: float, reps: int) -> None:
    library = import_module("rliable.library")
    np.random.seed(0)  # rliable draws from the global generator, whatever it is given
    points, intervals = library.get_interval_estimates(
        {"": scores}, lambda *x: np.array([metric(*x)]), reps=reps, confidence_interval_size=confidence
    )
    low, high = intervals[""][:, 0]
    assert ours.value == pytest.approx(points[""][0], rel=1e-12)
    # An end of a normal distribution's interval varies by 0.7 % of the width with 10,000 draws; three times that.
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=0.021 * (10_000 / reps) ** 0.5 * (high - low))


@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize("seed", [0, 1])
def test_means_and_interquartile_means_are_rliable_s(seed: int, confidence: float) -> None:
    metrics = import_module("rliable.metrics")
    cells = study(seed)
    for ours, metric in ((frequency_averaged_score, metrics.aggregate_mean), (iqm, metrics.aggregate_iqm)):
        assert_same(ours(cells, **options(confidence)), matrix(cells), metric, confidence, reps=5_000)


def test_one_cell_s_too() -> None:
    metrics = import_module("rliable.metrics")
    scores = study(2)["8ms"]
    column = scores[:, np.newaxis]
    assert_same(iqm(scores, **options()), column, metrics.aggregate_iqm, 0.95, reps=5_000)
    assert_same(bootstrap(scores, np.mean, **options()), column, metrics.aggregate_mean, 0.95, reps=5_000)


def test_holm_s_correction_is_that_of_statsmodels() -> None:
    multitest = import_module("statsmodels.stats.multitest")  # which rliable brings along
    p_values = np.random.default_rng(0).uniform(0, 0.1, 12).round(2)
    assert len(set(p_values)) < 12, "ties are wanted"
    table = holm({i: Comparison(mean_and_error([1, 2]), p, 0.95) for i, p in enumerate(p_values.tolist())})
    decided, corrected, *_ = multitest.multipletests(p_values, alpha=0.05, method="holm")
    assert [each.p_value for each in table.values()] == pytest.approx(corrected.tolist())
    assert [each.verdict == "better" for each in table.values()] == decided.tolist()
