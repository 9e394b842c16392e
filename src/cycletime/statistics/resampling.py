"""Bootstrap intervals: runs are resampled within each cell (stratified, as in rliable)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.statistics.means import NO_INTERVAL, Estimate, Failed, Scores, finite_scores, percent

Array = NDArray[np.float64]
Cells = Scores | Mapping[Any, Scores]
"""One cell, or several by their names."""

RESAMPLES = 10_000
"""The ends of a 95 % interval then vary from seed to seed by about 1 % of its width."""
_MAX_NUMBERS_PER_CHUNK = 2e6  # which bounds the memory


class Options(TypedDict, total=False):
    """How a bootstrap is done; all have defaults."""

    confidence: float
    """How much the interval should cover; 0.95."""
    resamples: int
    """How many times the runs of each cell are resampled; 10,000."""
    seed: int
    """Of the resampling; 0."""
    failed: Failed
    """What happens to scores that are not finite; 'refuse'."""


def bootstrap(scores: Cells, statistic: Callable[..., Any], **options: Unpack[Options]) -> Estimate:
    """Any statistic of one or several cells, with a percentile bootstrap's interval, as rliable has it.

    Args:
        scores: One cell, or several by their names.
        statistic: A function of the cells in turn and of `axis`, the runs', such as `numpy.mean` for one cell. It is
            called with arrays of many resamples at once.
        options: See `Options`.
    """
    by_name = scores if isinstance(scores, Mapping) else {"": scores}
    if not by_name:
        raise InputError("There are no cells: give at least one, such as {'16ms': [...]}.")
    failed = options.pop("failed", "refuse")
    kept = [finite_scores(cell, failed) for cell in by_name.values()]
    cells = [values for values, _ in kept]
    low, high, interval, resamples = bootstrap_interval(cells, statistic, **options)  # type: ignore[misc]
    return Estimate(
        value=float(statistic(*cells, axis=-1)),
        low=None if low is None else float(low),
        high=None if high is None else float(high),
        interval=interval,
        cells=tuple(map(len, cells)),
        n_failed=sum(n_failed for _, n_failed in kept),
        resamples=resamples,
    )


def interquartile_mean(values: Array, axis: int) -> Array:
    """The means along an axis without the lowest and the highest quarter, of which each is rounded down."""
    count = values.shape[axis]
    cut = int(0.25 * count)
    # Sorted whole, since NumPy sorts several numbers at a time and partitions one by one; and so the sum is the same in
    # whatever order the runs come.
    middle = np.sort(values, axis).take(range(cut, count - cut), axis)
    return np.asarray(middle.mean(axis))


def iqm(scores: Cells, **options: Unpack[Options]) -> Estimate:
    """The interquartile mean: of all runs of all cells together, without the lowest and the highest quarter.

    A quarter is rounded down, as in rliable and SciPy; below four runs nothing is cut. A cell with more runs than
    another weighs more. For options see `Options`.
    """
    return bootstrap(scores, lambda *cells, axis: interquartile_mean(np.concatenate(cells, axis), axis), **options)


def frequency_averaged_score(scores: Mapping[Any, Scores], **options: Unpack[Options]) -> Estimate:
    """The mean over cycle times of the mean over runs, on the scale of the scores.

    Each listed cycle time weighs the same, however many runs it has: on a geometric grid that is uniform in log dt.

    Args:
        scores: The scores of the runs at each cycle time, such as {'4ms': [...], '8ms': [...]}.
        options: See `Options`.
    """
    seen: dict[Duration, Any] = {}
    for dt in scores:
        if (other := seen.setdefault(Duration.of_seconds(dt), dt)) is not dt:
            raise InputError(f"The cycle times {other!r} and {dt!r} are the same: give each once.")
    return bootstrap(scores, lambda *cells, axis: np.mean([cell.mean(axis) for cell in cells], axis=0), **options)


def resample_means(cells: Sequence[Mapping[int, float]], resamples: int = RESAMPLES, seed: int = 0) -> Array:
    """[1 + resamples, cells] the mean over seeds of each cell, and of each resample; equal seeds are drawn together."""
    rng, drawn, columns = np.random.default_rng(seed), dict[tuple[int, ...], NDArray[np.int64]](), list[Array]()
    for cell in cells:
        seeds = tuple(sorted(cell))
        if seeds not in drawn:
            drawn[seeds] = rng.integers(len(seeds), size=(resamples, len(seeds)))
        scores = np.array([cell[each] for each in seeds])
        columns.append(np.append(scores.mean(), scores[drawn[seeds]].mean(axis=1)))
    return np.stack(columns, axis=1)


def bootstrap_interval(
    cells: Sequence[NDArray[Any]],
    statistic: Callable[..., Any],
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[Array | None, Array | None, str, int]:
    """The interval's ends, which interval it is, and how many resamples it took; runs are the cells' last axis."""
    words = f"{percent(confidence)} bootstrap"
    if resamples < 1:
        raise InputError(f"{resamples} resamples make no interval: take 1 or more, such as {RESAMPLES}.")
    if min(cell.shape[-1] for cell in cells) < 2:
        return None, None, NO_INTERVAL, 0
    tail = (1 - confidence) / 2
    ends = 100 * tail, 100 * (1 - tail)
    low, high = np.percentile(_resample_statistic(cells, statistic, resamples, seed), ends, axis=-1)
    return low, high, words, resamples


def _resample_statistic(
    cells: Sequence[NDArray[Any]], statistic: Callable[..., Any], resamples: int, seed: int
) -> Array:
    """The statistic of each resample, along the last axis: SciPy's draws, without its checks, which take longer."""
    largest = max(max(cell.size, cell.shape[-1] ** 2) for cell in cells)  # the square is for statistics of all pairs
    rng, most, parts = np.random.default_rng(seed), max(1, int(_MAX_NUMBERS_PER_CHUNK / largest)), []
    for begin in range(0, resamples, most):
        count = min(most, resamples - begin)
        drawn = [cell.take(rng.integers(cell.shape[-1], size=(count, cell.shape[-1])), axis=-1) for cell in cells]
        parts.append(statistic(*drawn, axis=-1))
    return np.concatenate(parts, axis=-1)
