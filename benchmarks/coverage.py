"""How often 95 % intervals hold the truth, by simulated studies of which the truth is known.

    python benchmarks/coverage.py                 # the table in results/coverage.txt; about five minutes on one core
    python benchmarks/coverage.py 200 500         # of 200 studies each, with 500 resamples

Each line has scores of one shape and number of runs; the numbers are percents of the studies.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from cycletime.statistics import (
    Estimate,
    bootstrap,
    compare,
    iqm,
    mean_and_error,
    mean_and_interval,
)

Scores: TypeAlias = NDArray[np.float64]
RUNS = (3, 5, 10, 30)
FAILING = 0.2
GOOD, BAD = stats.norm(-20, 5), stats.norm(-100, 5)


@dataclass(frozen=True)
class Shape:
    """How scores are distributed."""

    draw: Callable[[np.random.Generator, int], Scores]
    cumulative: Callable[[Scores], Scores]
    mean: float

    @property
    def iqm(self) -> float:
        """The mean of the middle half, by its quantiles."""
        scores = np.linspace(-140, 40, 2_000_001)
        middle = np.linspace(0.25, 0.75, 1_000_001)
        return float(np.interp(middle, self.cumulative(scores), scores).mean())


def some_fail(rng: np.random.Generator, runs: int) -> Scores:
    """One run in five ends near -100, the others near -20."""
    return np.where(rng.random(runs) < FAILING, rng.normal(-100, 5, runs), rng.normal(-20, 5, runs))


SHAPES = {
    "normal": Shape(lambda rng, runs: rng.normal(size=runs), stats.norm.cdf, 0.0),
    "exponential": Shape(lambda rng, runs: rng.exponential(size=runs), stats.expon.cdf, 1.0),
    "fails": Shape(some_fail, lambda x: FAILING * BAD.cdf(x) + (1 - FAILING) * GOOD.cdf(x), -36.0),
}


def covered(shape: Shape, runs: int, studies: int, resamples: int) -> list[float]:
    """By column of the table, the percent of studies whose interval holds the truth."""
    rng, held, middle = np.random.default_rng(runs), np.zeros(5), shape.iqm
    for study in range(studies):
        x, y = shape.draw(rng, runs), shape.draw(rng, runs)
        held += [
            holds(mean_and_error(x), shape.mean),
            holds(mean_and_interval(x), shape.mean),
            holds(bootstrap(x, np.mean, resamples=resamples, seed=study), shape.mean),
            holds(iqm(x, resamples=resamples, seed=study), middle),
            holds(compare(x, y).difference, 0.0),
        ]
    return list(100 * held / studies)


def covered_with_and_without_failures(runs: int, studies: int) -> float:
    """The percent of studies in which `compare` holds the difference between runs that fail and runs that do not."""
    rng = np.random.default_rng(runs)
    pairs = ((some_fail(rng, runs), rng.normal(-20, 5, runs)) for _ in range(studies))
    return 100 * float(np.mean([holds(compare(x, y).difference, -16.0) for x, y in pairs]))


def holds(estimate: Estimate, truth: float) -> bool:
    """Whether its interval does."""
    return estimate.low is not None and estimate.high is not None and estimate.low <= truth <= estimate.high


def main(studies: int = 2000, resamples: int = 1000) -> None:
    """Print the table."""
    print(f"{studies} studies for each line, {resamples} resamples")
    print("scores, runs: standard error, mean t, mean percentile, IQM, compare")
    for name, shape in SHAPES.items():
        for runs in RUNS:
            percents = covered(shape, runs, studies, resamples)
            print(f"| {name} | {runs} | " + " | ".join(f"{percent:.1f}" for percent in percents) + " |", flush=True)
    for runs in RUNS:
        print(
            f"compare, one cell fails and one does not, {runs}: {covered_with_and_without_failures(runs, studies):.1f}"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
