"""The statistics of one panel: means with intervals, mean curves, comparisons, and seeds that would decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean
from typing import TypeAlias

import numpy as np
from scipy import special

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.statistics import (
    Comparison,
    Contrast,
    Estimate,
    bootstrap,
    compare,
    frequency_averaged_score,
    holm,
    iqm,
    mean_and_error,
    mean_and_interval,
)
from cycletime.studies.scores import Panel

POWER = 0.8
"""How probable a verdict is to be, if the true difference is the one that was seen."""
MOST_SEEDS = 1000
"""Beyond that no number is given: the difference, if there is any, is small."""


def seeds_needed(
    x: Mapping[int, float], y: Mapping[int, float], comparisons: int = 1, confidence: float = 0.95
) -> int | None:
    """The seeds that each of two cells needs for a verdict, if difference and deviation of pairs stay what they are.

    Of several comparisons the first of Holm's steps is taken for all. None where two seeds that both have are missing,
    so that nothing is known of the spread, or where more than `MOST_SEEDS` are needed, as for a difference of zero.
    """
    differences = [x[seed] - y[seed] for seed in x if seed in y]
    n = len(differences)
    if n < 2 or not (difference := abs(np.mean(differences))):
        return None
    alpha = (1 - confidence) / comparisons
    seeds = np.arange(n + 1, MOST_SEEDS + 1)
    errors = special.stdtrit(seeds - 1, 1 - alpha / 2) + special.stdtrit(seeds - 1, POWER)
    enough = errors * np.std(differences, ddof=1) / np.sqrt(seeds) <= difference
    return int(seeds[np.argmax(enough)]) if enough.any() else None


INTERVALS = {"se": "± one standard error", "t": "[95 % t interval]", "bootstrap": "[95 % bootstrap interval]"}
CellKey: TypeAlias = tuple[str, Duration]


@dataclass(frozen=True)
class Statistics:
    interval: str = "se"
    """One standard error, Student's t with 95 %, or a bootstrap with 95 %."""
    iqm: bool = False

    def __post_init__(self) -> None:
        if self.interval not in INTERVALS:
            raise InputError(f"{self.interval!r} is not an interval: give one of {', '.join(INTERVALS)}.")
        if self.iqm and self.interval != "bootstrap":
            raise InputError(f"The interval is {self.interval!r}: an interquartile mean has only 'bootstrap'.")

    def of(self, scores: Sequence[float]) -> Estimate:
        if self.iqm:
            return iqm(scores)
        if self.interval == "bootstrap":
            return bootstrap(scores, np.mean)
        return mean_and_error(scores) if self.interval == "se" else mean_and_interval(scores)

    @property
    def words(self) -> str:
        return f"{'interquartile means' if self.iqm else 'means'} {INTERVALS[self.interval]}"


@dataclass(frozen=True)
class BestCycleTime:
    """The cycle time of the highest mean of a rule, against the others."""

    dt: Duration
    mean: Estimate
    runner_up: Duration | None
    """The next; None where only one cycle time has scores."""
    against: Mapping[Duration, Comparison]
    """The best against each other cycle time, corrected for all pairs of them."""

    @property
    def undecided(self) -> tuple[Duration, ...]:
        return tuple(sorted(dt for dt, each in self.against.items() if each.verdict != "better"))


@dataclass(frozen=True)
class Summary:
    panel: Panel
    statistics: Statistics
    estimates: Mapping[CellKey, Estimate | None]
    """None for a cell without any score."""
    comparisons: Mapping[CellKey, Comparison]
    """Other rules against the first at the same cycle time, corrected for their number; none where runs are shared or
    missing."""
    averages: Mapping[str, Estimate | None]
    """By rule, the frequency-averaged score; None where a cycle time has no score."""
    advantages: Mapping[str, Estimate | None]
    """By rule but the first, its frequency-averaged score minus that of the first."""
    best: Mapping[str, BestCycleTime | None]
    """By rule, its best cycle time; None without any score."""

    @classmethod
    def of(cls, panel: Panel, statistics: Statistics) -> Summary:
        scores = {place: panel.scores(*place) for place in panel.cells}
        return cls(
            panel=panel,
            statistics=statistics,
            estimates={place: statistics.of(each) if each else None for place, each in scores.items()},
            comparisons=_against_first(panel),
            averages={
                rule: frequency_averaged_score(cells) if all(cells.values()) else None
                for rule in panel.rules
                for cells in [{dt: scores[rule, dt] for dt in panel.dts}]
            },
            advantages={rule: _advantage(panel, rule) for rule in panel.rules[1:]},
            best={rule: _best_cycle_time(panel, rule) for rule in panel.rules},
        )

    def verdict(self, place: CellKey) -> str:
        """'better', 'worse', 'undecided', 'same runs', or empty for the first rule."""
        rule, dt = place
        if rule == self.panel.rules[0]:
            return ""
        if self.panel.shares_runs(rule, self.panel.rules[0], dt):
            return "same runs"
        verdict = self.comparisons[place].verdict if place in self.comparisons else ""
        return "undecided" if verdict == "not decided by the data" else verdict


def _against_first(panel: Panel) -> dict[CellKey, Comparison]:
    """Rules that share their runs at a cycle time share a comparison too, which counts once."""
    first, found, of = panel.rules[0], dict[CellKey, Comparison](), dict[CellKey, CellKey]()
    for dt in panel.dts:
        for rule in panel.rules[1:]:
            ours, theirs = panel.seed_scores(rule, dt), panel.seed_scores(first, dt)
            if ours and theirs and not panel.shares_runs(rule, first, dt):
                alike = next(other for other in panel.rules[1:] if panel.shares_runs(rule, other, dt))
                of[rule, dt] = (alike, dt)
                found[alike, dt] = compare(ours, theirs)
    corrected = holm(found)
    return {place: corrected[own] for place, own in of.items()}


def _advantage(panel: Panel, rule: str) -> Estimate | None:
    """Over all cycle times; where both rules have the same runs it is exactly zero, without uncertainty."""
    first, count = panel.rules[0], len(panel.dts)
    pairs = {dt: (panel.seed_scores(rule, dt), panel.seed_scores(first, dt)) for dt in panel.dts}
    unlike = [dt for dt in panel.dts if not panel.shares_runs(rule, first, dt)]
    if not unlike or not all(ours and theirs for ours, theirs in pairs.values()):
        return None
    weights = 1 / count, -1 / count
    return Contrast.of([each for dt in unlike for each in zip(weights, pairs[dt], strict=True)]).estimate()


def _best_cycle_time(panel: Panel, rule: str) -> BestCycleTime | None:
    scores = {dt: each for dt in panel.dts if (each := panel.seed_scores(rule, dt))}
    if not scores:
        return None
    first, *others = sorted(scores, key=lambda dt: -fmean(scores[dt].values()))
    # The data chose the best, so that all pairs count as compared.
    pairs = comb(len(scores), 2)
    against = holm({dt: compare(scores[first], scores[dt]) for dt in others}, comparisons=pairs)
    return BestCycleTime(first, mean_and_error(panel.scores(rule, first)), others[0] if others else None, against)


def panel_env_dt_s(panel: Panel) -> float | None:
    """The environment's time step in seconds, as the world knows it, or else as a finished run tells it."""
    for run in panel.runs():
        if (env_dt := run.spec.world.env_dt) is not None:
            return float(env_dt)
        if run.result:
            return float(run.result["env_dt_s"])
    return None
