"""Mean learning curves, aligned by environment steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycletime.errors import InputError
from cycletime.statistics.means import NO_INTERVAL, mean, standard_error
from cycletime.statistics.resampling import RESAMPLES, resampled
from cycletime.statistics.scores import Failed, left_out, numbers


@dataclass(frozen=True, eq=False)
class Curve:
    """The mean learning curve of a cell."""

    env_steps: NDArray[np.float64]
    """Each bin's end, in environment steps."""
    mean: NDArray[np.float64]
    """The mean over runs in each bin."""
    low: NDArray[np.float64] | None
    """The band's lower edge, for each bin by itself; None without a band."""
    high: NDArray[np.float64] | None
    """The band's upper edge."""
    interval: str
    """Which band: 'standard error', '95 % bootstrap', or why there is none."""
    n: int
    """The number of runs that count."""
    n_failed: int = 0
    """Runs that were left out since a bin of theirs is not finite."""
    resamples: int = 0
    """How many times the runs were drawn anew, for a bootstrap."""


def mean_curve(
    runs: Iterable[ArrayLike],
    env_steps: int,
    *,
    band: Literal["standard error", "bootstrap"] = "standard error",
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    failed: Failed = "refuse",
) -> Curve:
    """The mean over runs of learning curves in bins of environment steps.

    Args:
        runs: The binned curve of each run, as from `Episodes.binned(env_steps)`; all with as many bins.
        env_steps: How long each run was, in environment steps: the end of the last bin.
        band: One standard error to either side, or a percentile bootstrap in which whole curves are drawn anew.
        confidence: How much the bootstrap's band should cover, in each bin by itself.
        resamples: How many times the runs are drawn anew.
        seed: Of these draws.
        failed: What happens to curves that are not finite everywhere.

    Raises:
        InputError: if there are no curves, they have different numbers of bins, or some are not finite.
    """
    if band not in ("standard error", "bootstrap"):
        raise InputError(f"{band!r} is not a band: take 'standard error' or 'bootstrap'.")
    curves = [numbers(run, "bin") for run in runs]
    finite = np.array([np.isfinite(curve).all() for curve in curves], bool)
    n_failed = left_out(finite, failed)
    bins = sorted({len(curve) for curve in curves})
    if len(bins) > 1 or bins == [0]:
        raise InputError(f"The curves have {' or '.join(map(str, bins))} bins: bin all alike, such as into 100.")
    ends = np.linspace(0, env_steps, bins[0] + 1)[1:]
    values = np.stack(curves, axis=-1)[:, finite]
    means, n = mean(values), values.shape[-1]
    if band == "bootstrap":
        low, high, interval, taken = resampled([values], np.mean, confidence, resamples, seed)
        return Curve(ends, means, low, high, interval, n, n_failed, taken)
    if n < 2:
        return Curve(ends, means, None, None, NO_INTERVAL, n, n_failed)
    error = standard_error(values)
    return Curve(ends, means, means - error, means + error, band, n, n_failed)
