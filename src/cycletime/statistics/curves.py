"""Learning curves of means and of interquartile means, aligned by environment steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycletime.errors import InputError
from cycletime.statistics.means import NO_INTERVAL, Failed, as_score_array, count_failed, mean, standard_error
from cycletime.statistics.resampling import RESAMPLES, bootstrap_interval, interquartile_mean


@dataclass(frozen=True, eq=False)
class Curve:
    env_steps: NDArray[np.float64]
    """Each bin's end, in environment steps."""
    mean: NDArray[np.float64]
    """The mean, or the interquartile mean, over runs in each bin."""
    low: NDArray[np.float64] | None
    """The band's lower edge, for each bin by itself; None without a band."""
    high: NDArray[np.float64] | None
    interval: str
    """Which band: 'standard error', '95 % bootstrap', or why there is none."""
    n: int
    n_failed: int = 0
    """Runs that were left out since a bin of theirs is not finite."""
    resamples: int = 0


def mean_curve(runs: Iterable[ArrayLike], env_steps: int, *, failed: Failed = "refuse") -> Curve:
    """The mean over runs of learning curves in bins of environment steps, with a band of one standard error.

    Args:
        runs: The binned curve of each run, as from `Episodes.binned(env_steps)`; all with as many bins.
        env_steps: How long each run was, in environment steps: the end of the last bin.
        failed: What happens to curves that are not finite everywhere.
    """
    ends, values, n_failed = _finite_curves(runs, env_steps, failed)
    means, n = mean(values), values.shape[-1]
    if n < 2:
        return Curve(ends, means, None, None, NO_INTERVAL, n, n_failed)
    error = standard_error(values)
    return Curve(ends, means, means - error, means + error, "standard error", n, n_failed)


def iqm_curve(
    runs: Iterable[ArrayLike],
    env_steps: int,
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    failed: Failed = "refuse",
) -> Curve:
    """The interquartile means over runs, with a percentile bootstrap's band; for the arguments see `mean_curve`."""
    ends, values, n_failed = _finite_curves(runs, env_steps, failed)
    places = np.arange(values.shape[-1])
    low, high, interval, taken = bootstrap_interval(
        [places], partial(_resampled_iqms, values), confidence, resamples, seed
    )
    return Curve(ends, interquartile_mean(values, -1), low, high, interval, len(places), n_failed, taken)


def _finite_curves(
    runs: Iterable[ArrayLike], env_steps: int, failed: Failed
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """The ends of the bins, [bins, runs] the curves that are finite, and how many are left out."""
    curves = [as_score_array(run, "bin") for run in runs]
    finite = np.array([np.isfinite(curve).all() for curve in curves], bool)
    n_failed = count_failed(finite, failed)
    bins = sorted({len(curve) for curve in curves})
    if len(bins) > 1 or bins == [0]:
        raise InputError(f"The curves have {' or '.join(map(str, bins))} bins: bin all alike, such as into 100.")
    ends = np.linspace(0, env_steps, bins[0] + 1)[1:]
    return ends, np.stack(curves, axis=-1)[:, finite], n_failed


def _resampled_iqms(values: NDArray[np.float64], drawn: NDArray[np.int64], axis: int) -> NDArray[np.float64]:
    """[bins, resamples] the interquartile means of resampled runs, [resamples, runs], the same in all bins.

    Only the runs are sorted, and no resample: it is enough to know how many times each run was drawn. With the runs'
    values v_1 <= ... <= v_n, of which c are cut at either side, and N_j the drawn ones up to v_j, but at least c and at
    most n - c, the sum of what is left is (n - c) v_n - c v_1 - sum_j (v_(j+1) - v_j) N_j.
    """
    n = values.shape[-1]
    cut, order = int(0.25 * n), values.argsort(axis=-1)
    ordered = np.take_along_axis(values, order, axis=-1)
    times = (drawn == np.arange(n)[:, np.newaxis, np.newaxis]).sum(axis, dtype=np.int16)  # [runs, resamples]
    below = np.zeros((len(values), len(drawn)), np.int16)
    sums = np.broadcast_to((n - cut) * ordered[:, -1:] - cut * ordered[:, :1], below.shape).copy()
    for place, gap in zip(order.T, np.diff(ordered).T, strict=False):
        below += times[place]
        sums -= gap[:, np.newaxis] * below.clip(cut, n - cut)
    return np.asarray(sums / (n - 2 * cut))
