"""Tables of text: a panel with a row per cycle time, and many choices of hyper-parameters at one cycle time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb, inf

from cycletime.reports.formatting import TextTable, difference_text, dt_text, estimate_text
from cycletime.reports.summary import CellKey, Statistics, Summary
from cycletime.statistics import Comparison, Estimate, compare, holm, mean_and_error
from cycletime.studies.scores import AS_GIVEN, MEASURES, Panel, RunOutcome, settings_text, value_text


def summary_table(summary: Summary, measure: str) -> TextTable:
    panel = summary.panel
    places = [[(rule, dt) for rule in panel.rules] for dt in panel.dts]
    rows = [
        (dt_text(row[0][1]), *(_score_text(panel, at, summary.estimates[at], summary.verdict(at)) for at in row))
        for row in places
    ]
    last = ("frequency-averaged", *(estimate_text(summary.averages[rule]) for rule in panel.rules))
    notes = [_scores_note(panel, measure, summary.statistics)]
    if len(panel.dts) > 1:
        notes.append(
            "The frequency-averaged score is the mean over the cycle times, with a 95 % bootstrap interval"
            f"{_rests_on(summary)}."
        )
    if len(panel.rules) > 1:
        count = max((each.comparisons for each in summary.comparisons.values()), default=0)
        corrected = f", corrected for {count} comparisons (Holm)" if count > 1 else ""
        notes.append(
            f"Verdicts are against {panel.rules[0]} at the same cycle time: means by the t of pairs with equal seeds, "
            f"p < 0.05{corrected}. 'Same runs': the rules give the same values there."
        )
    if min(panel.counts(place)["scored"] for place in panel.cells) < 10:
        notes.append("Fewer than 10 runs in a cell: bootstrap intervals are too narrow then, and means uncertain.")
    return TextTable(("cycle time", *panel.rules), rows, panel.title, notes, last if len(panel.dts) > 1 else None)


def _score_text(panel: Panel, place: CellKey, estimate: Estimate | None, verdict: str) -> str:
    """A cell's number, the runs of it that count and what became of the others, and its verdict."""
    counts = panel.counts(place)
    scored = f"{counts['scored']} of {counts.total()}" if counts["unfinished"] else str(counts["scored"])
    endings: dict[RunOutcome, str] = {"astray": "not finite", "failed": "failed"}
    lost = [f"{counts[ending]} {said}" for ending, said in endings.items() if counts[ending]]
    return f"{estimate_text(estimate)} ({', '.join([scored, *lost])}) {verdict}".rstrip()


def _scores_note(panel: Panel, measure: str, statistics: Statistics) -> str:
    return (
        f"Scores are the {MEASURES[measure][1]}; numbers are {statistics.words} (number of runs). Data: "
        f"{panel.provenance}."
    )


def _rests_on(summary: Summary) -> str:
    runs = {rule: each.runs for rule, each in summary.averages.items() if each}
    if len(set(runs.values())) == 1:
        return f" (n = {next(iter(runs.values()))})"
    return f" ({', '.join(f'{rule}: n = {each}' for rule, each in runs.items())})" if runs else ""


MAX_ROWS = 50
"""A table has no more; the others are in scores.csv."""


@dataclass(frozen=True)
class RankedChoices:
    """The panels of a task and an algorithm, each of which has a single cell."""

    panels: tuple[Panel, ...]
    """The one of the highest mean first, those without any score last."""
    place: CellKey
    statistics: Statistics
    against: Mapping[int, Comparison]
    """By index, the first against the others that have scores, corrected for all pairs, since the data chose it."""

    @classmethod
    def of(cls, panels: Sequence[Panel], statistics: Statistics) -> RankedChoices:
        (place,) = panels[0].cells
        means = {id(each): mean_and_error(scores).value for each in panels if (scores := each.scores(*place))}
        ranked = tuple(sorted(panels, key=lambda panel: -means.get(id(panel), -inf)))
        first, *others = (panel.seed_scores(*place) for panel in ranked)
        alone = {index: compare(first, scores) for index, scores in enumerate(others, 1) if scores}
        return cls(ranked, place, statistics, holm(alone, comparisons=comb(len(means), 2)))

    @property
    def estimates(self) -> tuple[Estimate | None, ...]:
        every = (panel.scores(*self.place) for panel in self.panels)
        return tuple(self.statistics.of(scores) if scores else None for scores in every)

    def verdict(self, index: int) -> str:
        """'worse' than the first, 'undecided', or empty."""
        if index not in self.against:
            return ""
        return "worse" if self.against[index].verdict == "better" else "undecided"

    def table(self, measure: str) -> TextTable:
        first, (rule, dt) = self.panels[0], self.place
        at = f"at {dt_text(dt)}" if rule == AS_GIVEN else f"{rule} at {dt_text(dt)}"
        title = f"{first.task}, {first.algorithm}, {at}: {len(self.panels):,} choices"
        names = tuple(first.hyperparameters)
        shown = list(zip(self.panels, self.estimates, strict=True))[:MAX_ROWS]
        rows = [
            (
                *(value_text(panel.hyperparameters[name]) for name in names),
                _score_text(panel, self.place, estimate, self.verdict(index)),
            )
            for index, (panel, estimate) in enumerate(shown)
        ]
        notes = [
            _scores_note(first, measure, self.statistics),
            "Sorted by the mean. Verdicts are against the first: means by the t of pairs with equal seeds, p < 0.05, "
            f"corrected for all {comb(len(self.against) + 1, 2):,} pairs (Holm).",
        ]
        if left := len(self.panels) - len(shown):
            notes.append(f"{left:,} more are in scores.csv.")
        return TextTable((*names, "score"), rows, title, notes)

    def sentences(self) -> tuple[str, ...]:
        best = self.panels[0].scores(*self.place)
        if not best:
            return ()
        mean = mean_and_error(best)
        best_text = f"The best choice is {settings_text(self.panels[0].hyperparameters)} with a mean of "
        best_text += f"{estimate_text(mean)} (n = {mean.n})"
        if not self.against:
            return (f"{best_text}; no other has a score.",)
        others, decided = len(self.against), sum(each.verdict == "better" for each in self.against.values())
        return (
            f"{best_text}; the runner-up is {difference_text(self.against[1].difference)} behind. It is better than "
            f"{decided:,} of {others:,} others; for {others - decided:,} that is not decided by the data.",
            "The best of many looks better than it is: what it is worth, runs with other seeds tell.",
        )


def split_choices(panels: Sequence[Panel]) -> tuple[list[Panel], list[list[Panel]]]:
    """Panels that have a table of their own, and groups of panels that make one table of choices."""
    found: dict[tuple[object, ...], list[Panel]] = {}
    for panel in panels:
        if len(panel.cells) == 1:
            found.setdefault((panel.task, panel.algorithm, *panel.cells), []).append(panel)
    groups = [group for group in found.values() if len(group) > 1]
    grouped = {id(panel) for group in groups for panel in group}
    return [panel for panel in panels if id(panel) not in grouped], groups
