"""Figures of the page: which horizons do best at each cycle time, and how rules score from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import product
from math import ceil, inf
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cycletime.duration import Duration
from cycletime.experiments.horizons.candidates import AlgorithmSpec
from cycletime.experiments.horizons.preregistration import chosen_candidates
from cycletime.experiments.horizons.ranking import START_KINDS, Array, Interval, RuleComparison
from cycletime.experiments.horizons.results import Evidence, HorizonsResults, all_evidence
from cycletime.experiments.outcome import NotRunError, Outcome
from cycletime.reports.drawing import BAND_ALPHA, TITLE_SIZE, log2_axis
from cycletime.reports.figure import COLOURS, DASHES, MARKERS
from cycletime.reports.figure_style import STYLE, add_footer, save_figure
from cycletime.rules.quantities import decay_in_seconds
from cycletime.training.atomic_files import make_folder

FORMATS = ("png", "svg")
_LOWEST, _HIGHEST = -0.5, 1.25
"""What is drawn of a normalised score: those of 'baseline' go far below, and others up to where they get."""
_COLUMNS = 3


def save_figures(results: HorizonsResults, folder: Path, only: Sequence[str] = ()) -> list[Path]:
    """Draw and write the figures of what was run, or some; the same results give the same bytes."""
    wanted = only or list(_drawings(results))
    make_folder(folder)
    paths: list[Path] = []
    with mpl.rc_context(STYLE):
        for name, draw in _drawings(results).items():
            if name in wanted:
                with suppress(NotRunError):
                    paths += save_figure(draw(), folder, name, FORMATS)
    return paths


def _drawings(results: HorizonsResults) -> dict[str, Callable[[], Figure]]:
    return {
        evidence.spec.prefix + name: partial(draw, evidence)
        for evidence in all_evidence(results)
        for name, draw in FIGURES.items()
    }


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
        f"time; circles: the best. {seeds} seeds of each cell. {_algorithm_note(evidence.spec)}",
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
    axes.set_xticks(range(len(dts)), [f"{float(dt) * 1e3:g}" for dt in dts])
    axes.set_yticks(range(len(horizons)), [f"{horizon:g}" for horizon in horizons])
    axes.grid(visible=False)
    axes.set_title(task, fontsize=TITLE_SIZE, fontweight="bold")
    axes.set_xlabel("cycle time (ms)")
    axes.set_ylabel("discount horizon (s)")


def draw_scores(comparison: RuleComparison, candidates: Sequence[str]) -> Figure:
    """Normalised scores of candidates and references by cycle time, a panel for each task and kind of start."""
    tasks, rules = list(comparison.dts), [*candidates, *reversed(comparison.spec.references)]
    figure = Figure(figsize=(2.6 * len(tasks) + 0.4, 5.2))
    every = figure.subplots(len(START_KINDS), len(tasks), squeeze=False, sharey="col")
    for (row, kind), (place, task) in product(enumerate(START_KINDS), enumerate(tasks)):
        axes = every[row, place]
        for index, rule in enumerate(rules):
            _draw_rule(axes, comparison, rule, kind, task, index)
        axes.axhline(1, color="0.6", linewidth=0.8)
        axes.set_title(f"{task}, {kind}", fontsize=TITLE_SIZE, fontweight="bold")
        log2_axis(axes, [float(dt) * 1e3 for dt in comparison.dts[task]], "cycle time (ms)" if row else "")
        if not place:
            axes.set_ylabel("normalised score")
    for column in every.T:
        column[0].set_ylim(_LOWEST, max(_HIGHEST, *(axes.dataLim.y1 for axes in column)))
    seeds = " or ".join(map(str, sorted({n for outcome in comparison.outcomes.values() for n in outcome.n})))
    handles = [Line2D([], [], label=rule, **_rule_look(index)) for index, rule in enumerate(rules)]
    add_footer(
        figure,
        [handles],
        "0 is doing nothing, 1 tuning at that cycle time; means over starting points at the shortest, the middle and "
        f"the longest cycle time, with 95 % bootstrap intervals; {seeds} seeds of each cell. "
        f"{_algorithm_note(comparison.spec)}",
    )
    return figure


def _draw_rule(axes: Axes, comparison: RuleComparison, rule: str, kind: str, task: str, index: int) -> None:
    scores = np.mean([comparison.scores(rule, start) for start in comparison.begun(kind, task)], axis=0)
    found = [Interval.of(each) for each in scores.T]
    along = [float(dt) * 1e3 for dt in comparison.dts[task]]
    axes.plot(along, [each.value for each in found], linewidth=1.4, markersize=4, **_rule_look(index))
    lows, highs = [each.low for each in found], [each.high for each in found]
    axes.fill_between(along, lows, highs, color=COLOURS[index], alpha=BAND_ALPHA, linewidth=0)


def _algorithm_note(spec: AlgorithmSpec) -> str:
    return f"{spec.algorithm.upper()}, closed form."


def _rule_look(index: int) -> dict[str, Any]:
    return {"color": COLOURS[index], "linestyle": DASHES[index % len(DASHES)], "marker": MARKERS[index]}


FIGURES: Mapping[str, Callable[[Evidence], Figure]] = {
    "tuned-horizons": draw_tuned_horizons,
    "search": lambda evidence: draw_scores(evidence.search, list(chosen_candidates(evidence.search))),
    "trial": lambda evidence: draw_scores(evidence.trial.comparison, evidence.trial.candidates),
}
