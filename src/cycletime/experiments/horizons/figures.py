"""Figures of the page: which horizons do best at each cycle time, and how rules score from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import product
from math import ceil, inf
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from cycletime.duration import Duration
from cycletime.experiments.horizons.ranking import START_KINDS, Array, RuleComparison
from cycletime.experiments.horizons.results import Evidence, all_evidence
from cycletime.experiments.outcome import NotRunError, Outcome, Results
from cycletime.reports import drawing
from cycletime.reports.drawing import TITLE_SIZE
from cycletime.reports.figure_style import STYLE, add_footer
from cycletime.rules.quantities import decay_in_seconds

FORMATS = ("png", "svg")
_COLUMNS = 3


def save_figures(results: Results, folder: Path, only: Sequence[str] = ()) -> list[Path]:
    """Draw and write the figures of what was run, or some; the same results give the same bytes."""
    drawn: dict[str, Figure] = {}
    for evidence, (name, draw) in product(all_evidence(results), FIGURES.items()):
        stem = f"{evidence.spec.prefix}{name}"
        if stem in (only or (stem,)):
            with suppress(NotRunError), mpl.rc_context(STYLE):
                drawn[stem] = draw(evidence)
    return drawing.save_figures(drawn, folder, FORMATS)


def draw_tuned_horizons(evidence: Evidence) -> Figure:
    """How well each discount horizon does at each cycle time, with the best trace horizon; a map for each task."""
    tunings, trace = evidence.tunings, " with the best trace horizon" if len(evidence.spec.horizons) > 1 else ""
    rows = ceil(len(tunings) / _COLUMNS)
    figure = Figure(figsize=(3 * _COLUMNS, 2.8 * rows))
    every = figure.subplots(rows, _COLUMNS, squeeze=False).flat
    for axes, (task, tuning) in zip(every, tunings.items(), strict=False):
        _draw_map(axes, task, tuning)
    figure.suptitle("Discount horizons that do best, by cycle time", fontsize=10)
    seeds = " or ".join(map(str, sorted({n for tuning in tunings.values() for n in tuning.n})))
    add_footer(
        figure,
        [],
        f"Colour: the mean return over learning{trace}, from the lowest (dark) to the highest (bright) at that cycle "
        f"time; circles: the best. {seeds} seeds of each cell. {_algorithm_note(evidence)}",
    )
    return figure


def _draw_map(axes: Axes, task: str, tuning: Outcome) -> None:
    dts = sorted({cell.dt for cell in tuning.cells})
    best: dict[tuple[float, Duration], float] = {}
    for cell in tuning.cells:
        place = float(f"{decay_in_seconds(cell.values['discount'], float(cell.dt)):.2g}"), cell.dt
        best[place] = max(best.get(place, -inf), float(np.nanmean(cell.scores)))
    horizons = sorted({horizon for horizon, _ in best})
    grid: Array = np.array([[best[horizon, dt] for dt in dts] for horizon in horizons])
    shown = (grid - grid.min(axis=0)) / np.ptp(grid, axis=0)
    axes.imshow(shown, origin="lower", aspect="auto", cmap="viridis", norm=Normalize(0, 1))
    axes.plot(range(len(dts)), grid.argmax(axis=0), "o", color="white", markeredgecolor="black")
    _label(axes, task, dts, [f"{horizon:g}" for horizon in horizons])
    axes.set_xlabel("cycle time (ms)")
    axes.set_ylabel("discount horizon (s)")


def _label(axes: Axes, title: str, dts: Sequence[Duration], rows: Sequence[str]) -> None:
    axes.set_xticks(range(len(dts)), [f"{float(dt) * 1e3:g}" for dt in dts])
    axes.set_yticks(range(len(rows)), list(rows))
    axes.grid(visible=False)
    axes.set_title(title, fontsize=TITLE_SIZE, fontweight="bold")


def draw_scores(evidence: Evidence, comparison: RuleComparison, candidates: Sequence[str]) -> Figure:
    """Normalised scores from each starting point to each other cycle time, a map for each task and rule."""
    tasks, rules = list(comparison.dts), [*candidates, *reversed(comparison.spec.references)]
    figure = Figure(figsize=(1.9 * len(rules) + 0.6, 2.1 * len(tasks) + 0.4), dpi=100)
    every = figure.subplots(len(tasks), len(rules), squeeze=False)
    for (row, task), (column, rule) in product(enumerate(tasks), enumerate(rules)):
        axes = every[row, column]
        _draw_starts(axes, comparison, rule, task)
        axes.tick_params(labelleft=not column)
    for axes in every[-1]:
        axes.set_xlabel("cycle time (ms)")
    add_footer(
        figure,
        [],
        "From the cycle time on the left, tuned there or with untuned horizons, to that below: 0 is doing nothing, 1 "
        f"tuning at that cycle time; -1 and 2 may be more. Means of {comparison.seeds} seeds. "
        f"{_algorithm_note(evidence)}",
    )
    return figure


def _draw_starts(axes: Axes, comparison: RuleComparison, rule: str, task: str) -> None:
    starts, dts = [each for kind in START_KINDS for each in comparison.starts_of(kind, task)], comparison.dts[task]
    grid: Array = np.full((len(starts), len(dts)), np.nan)
    for row, start in enumerate(starts):
        for score, dt in zip(comparison.scores(rule, start)[0], comparison.targets(start), strict=True):
            column = dts.index(dt)
            grid[row, column] = score
            color = "black" if 0.1 < score < 1.1 else "white"
            axes.text(column, row, f"{score:.2f}", ha="center", va="center", fontsize=6, color=color)
    axes.imshow(grid, aspect="auto", cmap="RdYlBu", norm=Normalize(0.0, 1.2))
    _label(axes, f"{task}\n{rule}", dts, [f"{each.kind} {float(each.values.dt) * 1e3:g}" for each in starts])


def _algorithm_note(evidence: Evidence) -> str:
    return f"{evidence.spec.algorithm.upper()}, closed form{evidence.scale_label}."


FIGURES: Mapping[str, Callable[[Evidence], Figure]] = {
    "tuned-horizons": draw_tuned_horizons,
    "search": lambda evidence: draw_scores(evidence, evidence.search, list(evidence.predictions)),
    "trial": lambda evidence: draw_scores(evidence, evidence.trial, evidence.trial.judged),
}
