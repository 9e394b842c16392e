"""Comparison of rules by scores from 0 (doing nothing) to 1 (tuning at each cycle time), from several starting points.

Of a rule and a kind of starting points, the *average* is over the other cycle times, the starting points on a task and
then the tasks; the *worst* has the lowest of the cycle times in place of their mean. At its own cycle time a starting
point would be compared with itself. A score counts as -1 at least and 2 at most: where tuning has gained little, single
cells are far outside, and would be all that an average shows. Intervals over seeds are of a bootstrap that draws seeds
anew, and with them the runs of all rules, cycle times and tasks, those of the scale's upper end too. Those over tasks
are Student's t of the tasks' numbers: what another task would show.

A cycle time counts where tuning there has learned something: else there is no scale. It has if its score is above that
of doing nothing by a fifth at least of the most that it has gained on the task, with the lower end of its interval. A
starting point where it has not is none either, and a task with fewer than three such cycle times, or without starting
points, says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import inf, isfinite
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.experiments.horizons.candidates import AlgorithmSpec, PointKey, Rules, StartingPoint
from cycletime.experiments.outcome import Outcome
from cycletime.reports.formatting import sign_text
from cycletime.rules import Rule
from cycletime.statistics import mean_and_interval
from cycletime.statistics.resampling import resample_means

CONFIDENCE = 0.95
RESAMPLES = 4000
LOWEST, HIGHEST = -1.0, 2.0
"""What a normalised score counts as, at least and at most."""
LEARNED_SHARE = 0.2
"""The least share of the most that tuning has gained on a task at which it has learned something."""
MIN_CYCLE_TIMES = 3
Measure: TypeAlias = Literal["average", "worst"]
MEASURES: tuple[Measure, ...] = ("average", "worst")
START_KINDS = ("tuned", "untuned")
Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    value: float
    low: float
    high: float

    @classmethod
    def of(cls, drawn: Array, *, together: int = 1) -> Interval:
        """From the number itself, and those of runs drawn anew; `together` intervals hold at once (Bonferroni)."""
        tail = (1 - CONFIDENCE) / 2 / together
        low, high = np.quantile(drawn[1:], [tail, 1 - tail])
        return cls(float(drawn[0]), float(low), float(high))

    @property
    def sign(self) -> str:
        """'more', 'less' or 'undecided', by whether the interval of a difference excludes zero."""
        return sign_text(self.low, self.high)

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class ScoreScale:
    """The two ends of the normalised score on a task."""

    nothing: float
    retuned: Mapping[Duration, Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class RuleComparison:
    rules: Rules
    starts: Sequence[StartingPoint]
    outcomes: Mapping[str, Outcome]
    scales: Mapping[str, ScoreScale]

    @property
    def spec(self) -> AlgorithmSpec:
        return self.starts[0].spec

    @property
    def seeds(self) -> str:
        return " or ".join(map(str, sorted({n for outcome in self.outcomes.values() for n in outcome.n})))

    @property
    def candidates(self) -> dict[str, Rule]:
        return {name: rule for name, rule in self.rules.items() if isinstance(rule, Rule)}

    def scores(self, rule: str, start: StartingPoint) -> Array:
        """[1 + resamples, `targets`] normalised scores of a rule from a starting point."""
        scale, dts = self.scales[start.task], self.targets(start)
        ours = self._means(start.task, [start.point(dt, self.rules[rule]) for dt in dts])
        best = self._means(start.task, [scale.retuned[dt] for dt in dts])
        scores: Array = np.clip((ours - scale.nothing) / (best - scale.nothing), LOWEST, HIGHEST)
        return scores

    def targets(self, start: StartingPoint) -> tuple[Duration, ...]:
        """The cycle times that count, without the starting point's own."""
        return tuple(dt for dt in self.dts[start.task] if dt != start.values.dt)

    @cached_property
    def dts(self) -> Mapping[str, tuple[Duration, ...]]:
        """By task that judges, the cycle times that count."""
        found = {task: self._learned(task, scale) for task, scale in self.scales.items()}
        begun = {(start.task, start.values.dt) for start in self.starts}
        return {
            task: dts
            for task, dts in found.items()
            if len(dts) >= MIN_CYCLE_TIMES and any((task, dt) in begun for dt in dts)
        }

    def starts_of(self, kind: str, task: str | None = None) -> list[StartingPoint]:
        """The starting points of a kind at cycle times that count, on all tasks that judge or on one."""
        return [
            start
            for start in self.starts
            if start.kind == kind and task in (None, start.task) and start.values.dt in self.dts.get(start.task, ())
        ]

    @cached_property
    def measured(self) -> Mapping[tuple[str, str, Measure, str], Array]:
        """By rule, kind of starting points, measure and task, [1 + resamples] numbers."""
        found: dict[tuple[str, str, Measure, str], Array] = {}
        for rule, kind, task in product(self.rules, START_KINDS, self.dts):
            scores = np.stack([self.scores(rule, start) for start in self.starts_of(kind, task)], axis=1)
            found[rule, kind, "average", task] = scores.mean(axis=(1, 2))
            found[rule, kind, "worst", task] = scores.min(axis=2).mean(axis=1)
        return found

    def interval(
        self,
        rule: str,
        kind: str,
        measure: Measure,
        less: str | None = None,
        *,
        task: str | None = None,
        together: int = 1,
    ) -> Interval:
        """A measure of a rule, or its difference from another rule, on all tasks that judge or on one."""
        drawn = self._drawn_of(rule, kind, measure, task)
        if less is not None:
            drawn = drawn - self._drawn_of(less, kind, measure, task)
        return Interval.of(drawn, together=together)

    def over_tasks(self, rule: str, kind: str, measure: Measure, less: str | None = None) -> Interval:
        values = [self.interval(rule, kind, measure, less, task=task).value for task in self.dts]
        found = mean_and_interval(values, confidence=CONFIDENCE)
        return Interval(
            found.value, -inf if found.low is None else found.low, inf if found.high is None else found.high
        )

    def ranked(self, kind: str, measure: Measure) -> list[str]:
        return sorted(self.rules, key=lambda rule: -float(self._drawn_of(rule, kind, measure)[0]))

    # What `verdicts` says of a comparison on tasks that the candidates were not chosen on.

    @property
    def judged(self) -> tuple[str, ...]:
        """The names of the candidates, the best average from tuned values first."""
        return tuple(name for name in self.ranked("tuned", "average") if name in self.candidates)

    @property
    def winner(self) -> str:
        return self.judged[0]

    def advantage(
        self, name: str, than: str, kind: str = "tuned", measure: Measure = "average", task: str | None = None
    ) -> Interval:
        """A candidate minus a reference rule; the intervals hold for all candidates together."""
        return self.interval(name, kind, measure, less=than, task=task, together=len(self.candidates))

    def verdict(self, name: str) -> Literal["better", "no worse", "worse"]:
        signs = {self.advantage(name, reference).sign for reference in self.spec.references}
        return "worse" if "less" in signs else "better" if signs == {"more"} else "no worse"

    @property
    def changes_default(self) -> bool:
        return self.advantage(self.winner, self.spec.default).sign == "more" and not self.objections()

    @property
    def conditions(self) -> Mapping[str, tuple[str, Measure, str | None]]:
        """By name, the arguments of `advantage` at which the winner is compared with the default."""
        words: dict[Measure, str] = {"average": "the average", "worst": "the worst cycle time"}
        pairs = product(MEASURES, START_KINDS)
        return {
            **{f"{words[measure]} from {kind} values": (kind, measure, None) for measure, kind in pairs},
            **{f"the average from tuned values on {task}": ("tuned", "average", task) for task in self.dts},
        }

    def objections(self) -> dict[str, Interval]:
        """The conditions in which the winner is less than the default for sure, and by how much."""
        found = {
            where: self.advantage(self.winner, self.spec.default, *what) for where, what in self.conditions.items()
        }
        return {where: each for where, each in found.items() if each.sign == "less"}

    def _drawn_of(self, rule: str, kind: str, measure: Measure, task: str | None = None) -> Array:
        tasks = self.dts if task is None else (task,)
        drawn: Array = np.mean([self.measured[rule, kind, measure, each] for each in tasks], axis=0)
        return drawn

    def _learned(self, task: str, scale: ScoreScale) -> tuple[Duration, ...]:
        gained = self._means(task, list(scale.retuned.values())) - scale.nothing
        lows = [Interval.of(each).low for each in gained.T]
        return tuple(
            dt for dt, low in zip(scale.retuned, lows, strict=True) if low > LEARNED_SHARE * gained[0].max() > 0
        )

    def _means(self, task: str, points: Sequence[Mapping[str, Any]]) -> Array:
        columns, means = self._drawn[task]
        point_key = self.spec.point_key
        for point in points:
            if point_key(point) not in columns:
                raise InputError(f"{self.outcomes[task].name} has no runs of {dict(point)}: it is of other candidates.")
        return means[:, [columns[point_key(point)] for point in points]]

    @cached_property
    def _drawn(self) -> dict[str, tuple[dict[PointKey, int], Array]]:
        return {task: _resampled_means(outcome, self.spec) for task, outcome in self.outcomes.items()}


def _resampled_means(outcome: Outcome, spec: AlgorithmSpec) -> tuple[dict[PointKey, int], Array]:
    columns = {spec.point_key({**cell.values, "dt": cell.dt}): index for index, cell in enumerate(outcome.cells)}
    every = np.concatenate([cell.scores for cell in outcome.cells])
    worst = float(np.min(every[np.isfinite(every)]))  # which runs that went astray count as, as in a sweep
    cells = [
        {seed: score if isfinite(score) else worst for seed, score in cell.seed_scores.items()}
        for cell in outcome.cells
    ]
    return columns, resample_means(cells, RESAMPLES)
