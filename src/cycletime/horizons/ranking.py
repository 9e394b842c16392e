"""How rules compare: scores between doing nothing (0) and tuning at each cycle time (1), from several starting points.

Of a rule and a kind of starting points, the *average* is over tasks, starting points and cycle times, and the *worst*
is the mean over tasks and starting points of the lowest score among the cycle times. Intervals are of a bootstrap that
draws runs anew in every cell, those of the scale's upper end too; all rules have the same draws, so that differences
between them have intervals as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.horizons.fields import Place, Rules, Start, place_of
from cycletime.paper.outcome import Outcome
from cycletime.statistics.resampling import means_drawn_anew

CONFIDENCE = 0.95
RESAMPLES = 4000
Measure: TypeAlias = Literal["average", "worst"]
MEASURES: tuple[Measure, ...] = ("average", "worst")
Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A number, and between which two it lies with 95 % confidence."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, drawn: Array) -> Interval:
        """From the number itself, and those of runs that were drawn anew."""
        tail = (1 - CONFIDENCE) / 2
        low, high = np.quantile(drawn[1:], [tail, 1 - tail])
        return cls(float(drawn[0]), float(low), float(high))

    def __str__(self) -> str:
        """Such as '0.92 [0.90, 0.94]'."""
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class Scale:
    """What scores on a task are measured against."""

    nothing: float
    """The score of doing nothing."""
    retuned: Mapping[Duration, Mapping[str, Any]]
    """By cycle time, the point that tuning there found best."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Rules from starting points, and the outcomes of their runs."""

    rules: Rules
    starts: Sequence[Start]
    outcomes: Mapping[str, Outcome]
    """By task."""
    scales: Mapping[str, Scale]
    """By task."""

    def scores(self, rule: str, kind: str) -> Array:
        """[1 + resamples, starts, dts] normalised scores of a rule from a kind of starting points."""
        return np.stack([self._scores_from(start, rule) for start in self.starts if start.kind == kind], axis=1)

    @cached_property
    def measured(self) -> Mapping[tuple[str, str, Measure], Array]:
        """By rule, kind of starting points and measure, [1 + resamples] numbers."""
        found: dict[tuple[str, str, Measure], Array] = {}
        for rule, kind in product(self.rules, self.kinds):
            scores = self.scores(rule, kind)
            found[rule, kind, "average"] = scores.mean(axis=(1, 2))
            found[rule, kind, "worst"] = scores.min(axis=2).mean(axis=1)
        return found

    def interval(self, rule: str, kind: str, measure: Measure, less: str | None = None) -> Interval:
        """A measure of a rule, or what it has more of it than another rule."""
        drawn = self.measured[rule, kind, measure]
        return Interval.of(drawn if less is None else drawn - self.measured[less, kind, measure])

    def ranked(self, kind: str, measure: Measure) -> list[str]:
        """The rules, the best first."""
        return sorted(self.rules, key=lambda rule: -float(self.measured[rule, kind, measure][0]))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of starting points."""
        return tuple(dict.fromkeys(start.kind for start in self.starts))

    def _scores_from(self, start: Start, rule: str) -> Array:
        scale = self.scales[start.task]
        points = {dt: start.point(dt, self.rules[rule]) for dt in scale.retuned}
        ours = self._means(start.task, points)
        best = self._means(start.task, scale.retuned)
        return (ours - scale.nothing) / (best - scale.nothing)

    def _means(self, task: str, points: Mapping[Duration, Mapping[str, Any]]) -> Array:
        columns, means = self._drawn[task]
        for point in points.values():
            if place_of(point) not in columns:
                raise InputError(f"{self.outcomes[task].name} has no runs of {dict(point)}: it is of other candidates.")
        return means[:, [columns[place_of(point)] for point in points.values()]]

    @cached_property
    def _drawn(self) -> dict[str, tuple[dict[Place, int], Array]]:
        """By task, where the cells of its points are, and their means."""
        return {task: _means_of(outcome) for task, outcome in self.outcomes.items()}


def _means_of(outcome: Outcome) -> tuple[dict[Place, int], Array]:
    columns = {place_of({**cell.values, "dt": cell.dt}): index for index, cell in enumerate(outcome.cells)}
    every = np.concatenate([cell.scores for cell in outcome.cells])
    worst = float(np.min(every[np.isfinite(every)]))  # which runs that went astray count as, as in a sweep
    cells = [np.where(np.isfinite(cell.scores), cell.scores, worst) for cell in outcome.cells]
    return columns, means_drawn_anew(cells, RESAMPLES)
