"""A panel as a table of words: rows are cycle times, columns are rules."""

from __future__ import annotations

from dataclasses import dataclass

from cycletime.reports.scores import MEASURES, Ending, Panel
from cycletime.reports.summary import Place, Summary
from cycletime.reports.words import span, value_and_interval

NO_SCORE = "-"


@dataclass(frozen=True)
class Words:
    """A table."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    """What the numbers are."""
    last: tuple[str, ...] | None = None
    """A row that sums up the others."""


def table_of(summary: Summary, measure: str) -> Words:
    """The table of a panel."""
    panel = summary.panel
    rows = [(span(dt), *(_cell(summary, (rule, dt)) for rule in panel.rules)) for dt in panel.dts]
    averages = [summary.averages[rule] for rule in panel.rules]
    last = ("frequency-averaged", *(value_and_interval(each) if each else NO_SCORE for each in averages))
    notes = [
        f"Scores are the {MEASURES[measure][1]}; numbers are {summary.statistics.words} (number of runs). Data: "
        f"{panel.where}."
    ]
    if len(panel.dts) > 1:
        notes.append(
            "The frequency-averaged score is the mean over the cycle times, with a 95 % bootstrap interval"
            f"{_rests_on(summary)}."
        )
    if len(panel.rules) > 1:
        count = max((each.comparisons for each in summary.comparisons.values()), default=0)
        corrected = f", corrected for {count} comparisons (Holm)" if count > 1 else ""
        notes.append(
            f"Verdicts are against {panel.rules[0]} at the same cycle time: means by Welch's t, p < 0.05{corrected}. "
            "'Same runs': the rules give the same values there."
        )
    if _fewest(summary) < 10:
        notes.append("Fewer than 10 runs in a cell: bootstrap intervals are too narrow then, and means uncertain.")
    return Words(
        panel.title, ("cycle time", *panel.rules), tuple(rows), tuple(notes), last if len(panel.dts) > 1 else None
    )


def runs_of(panel: Panel, place: Place) -> str:
    """The runs of a cell that count, and what became of the others."""
    counts = panel.counts(place)
    scored, planned = counts["scored"], counts.total()
    endings: dict[Ending, str] = {"astray": "not finite", "failed": "failed"}
    lost = [f"{counts[ending]} {said}" for ending, said in endings.items() if counts[ending]]
    return ", ".join([f"{scored} of {planned}" if counts["unfinished"] else str(scored), *lost])


def _rests_on(summary: Summary) -> str:
    """The runs of the frequency-averaged scores."""
    runs = {rule: each.runs for rule, each in summary.averages.items() if each}
    if len(set(runs.values())) == 1:
        return f" (n = {next(iter(runs.values()))})"
    return f" ({', '.join(f'{rule}: n = {each}' for rule, each in runs.items())})" if runs else ""


def _cell(summary: Summary, place: Place) -> str:
    estimate, verdict = summary.estimates[place], summary.verdict(place)
    number = value_and_interval(estimate) if estimate else NO_SCORE
    return f"{number} ({runs_of(summary.panel, place)}){f' {verdict}' if verdict else ''}"


def _fewest(summary: Summary) -> int:
    return min(summary.panel.counts(place)["scored"] for place in summary.panel.cells)
