"""Many choices of hyper-parameters at one cycle time, as a tuning tries them: one table, the best first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb

from cycletime.reports.scores import AS_GIVEN, MEASURES, Panel
from cycletime.reports.summary import Place, Statistics
from cycletime.reports.tables import NO_SCORE, Words, runs_of
from cycletime.reports.words import difference, hyperparameters, span, value, value_and_interval
from cycletime.statistics import Comparison, Estimate, compare, holm, mean_and_error

MOST_ROWS = 50
"""A table has no more; the others are in scores.csv."""


@dataclass(frozen=True)
class Choices:
    """The panels of a task and an algorithm, each of which has a single cell."""

    panels: tuple[Panel, ...]
    """The one of the highest mean first, those without any score last."""
    statistics: Statistics
    against: Mapping[int, Comparison]
    """By index, the first against the others that have scores, corrected for all pairs, since the data chose it."""

    @classmethod
    def of(cls, panels: Sequence[Panel], statistics: Statistics) -> Choices:
        """Rank them by their means."""
        means = [mean_and_error(scores).value if (scores := _scores(panel)) else None for panel in panels]
        order = sorted(range(len(panels)), key=lambda index: (means[index] is None, -(means[index] or 0.0)))
        ranked = tuple(panels[index] for index in order)
        scored = [index for index, panel in enumerate(ranked) if _scores(panel)]
        alone = {index: compare(_scores(ranked[0]), _scores(ranked[index])) for index in scored[1:]}
        return cls(ranked, statistics, holm(alone, comparisons=comb(len(scored), 2)))

    @property
    def title(self) -> str:
        """What they have in common."""
        first = self.panels[0]
        ((rule, dt),) = first.cells
        at = f"at {span(dt)}" if rule == AS_GIVEN else f"{rule} at {span(dt)}"
        return f"{first.task}, {first.algorithm}, {at}: {len(self.panels):,} choices"

    @property
    def estimates(self) -> tuple[Estimate | None, ...]:
        """The number of each."""
        return tuple(self.statistics.of(scores) if (scores := _scores(panel)) else None for panel in self.panels)

    def verdict(self, index: int) -> str:
        """What stands beside a choice: worse than the first, undecided, or nothing."""
        if index not in self.against:
            return ""
        return "worse" if self.against[index].verdict == "better" else "undecided"

    def table(self, measure: str) -> Words:
        """The table."""
        names = tuple(self.panels[0].hyperparameters)
        shown = list(zip(self.panels, self.estimates, strict=True))[:MOST_ROWS]
        rows = [
            (*(value(panel.hyperparameters[name]) for name in names), self._cell(index, panel, estimate))
            for index, (panel, estimate) in enumerate(shown)
        ]
        notes = [
            f"Scores are the {MEASURES[measure][1]}; numbers are {self.statistics.words} (number of runs). Data: "
            f"{self.panels[0].where}.",
            f"Sorted by the mean. Verdicts are against the first: means by Welch's t, p < 0.05, corrected for all "
            f"{comb(len(self.against) + 1, 2):,} pairs (Holm).",
        ]
        if left := len(self.panels) - len(shown):
            notes.append(f"{left:,} more are in scores.csv.")
        return Words(self.title, (*names, "score"), tuple(rows), tuple(notes))

    def sentences(self) -> tuple[str, ...]:
        """What they say."""
        best = _scores(self.panels[0])
        if not best:
            return ()
        mean = mean_and_error(best)
        told = f"The best choice is {hyperparameters(self.panels[0].hyperparameters)} with a mean of "
        told += f"{value_and_interval(mean)} (n = {mean.n})"
        if not self.against:
            return (f"{told}; no other has a score.",)
        decided = sum(each.verdict == "better" for each in self.against.values())
        return (
            f"{told}; the runner-up is {difference(self.against[1].difference)} behind. It is better than {decided:,} "
            f"of {len(self.against):,} others; for {len(self.against) - decided:,} that is not decided by the data.",
            "The best of many looks better than it is: what it is worth, runs with other seeds tell.",
        )

    def _cell(self, index: int, panel: Panel, estimate: Estimate | None) -> str:
        number = value_and_interval(estimate) if estimate else NO_SCORE
        return f"{number} ({runs_of(panel, _place(panel))}) {self.verdict(index)}".rstrip()


def split(panels: Sequence[Panel]) -> tuple[list[Panel], list[list[Panel]]]:
    """Panels that have a table of their own, and groups of panels that are choices of one."""
    found: dict[tuple[str, str, Place], list[Panel]] = {}
    for panel in panels:
        if len(panel.cells) == 1:
            found.setdefault((panel.task, panel.algorithm, _place(panel)), []).append(panel)
    groups = [group for group in found.values() if len(group) > 1]
    grouped = {id(panel) for group in groups for panel in group}
    return [panel for panel in panels if id(panel) not in grouped], groups


def _place(panel: Panel) -> Place:
    (place,) = panel.cells
    return place


def _scores(panel: Panel) -> list[float]:
    return panel.scores(*_place(panel))
