"""Learning curves: the return against environment steps and seconds, a colour for each cycle time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from cycletime.paper.figures.panels import FigurePanel, Legend
from cycletime.paper.figures.rows import ALONE
from cycletime.paper.figures.style import (
    BAND,
    COLOURS,
    LOOKS,
    MARKERS,
    PLACES,
    SMALL,
    dt_handles,
    dts_of,
    rule_handles,
    thousands,
)
from cycletime.paper.outcome import OutcomeCell
from cycletime.reports.style import DASHES, TO_TITLE, add_seconds, name_steps
from cycletime.statistics import Curve, mean_curve

_COLUMNS = 3
_MARKED_EVERY = 20
"""Bins from one marker to the next."""


def draw_curves(figure: Figure, panels: Sequence[FigurePanel]) -> Legend:
    """A pair of axes for each panel, with the same scales."""
    columns = min(_COLUMNS, len(panels))
    rows = ceil(len(panels) / columns)
    figure.set_size_inches(ALONE if len(panels) == 1 else (2.9 * columns, 2.2 * rows + 1.3))
    every = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for place, axes in enumerate(every.flatten()):
        if place < len(panels):
            _draw_panel(axes, panels[place], is_top=place < columns, is_bottom=place + columns >= len(panels))
        else:
            axes.remove()
    for axes in every[:, 0]:
        axes.set_ylabel("episodic return")
    return [dt_handles(dts_of(each for panel in panels for each in panel.runs)), rule_handles(panels)]


def draw_curves_by(
    kind: Callable[[OutcomeCell], float], name: Callable[[float], str], figure: Figure, panels: Sequence[FigurePanel]
) -> Legend:
    """As `draw_curves`, with a pair of axes for each kind of cell.

    Args:
        kind: What tells cells apart, such as their batch time.
        name: What the panel of a kind is called.
        figure: To be filled.
        panels: A single one.
    """
    (panel,) = panels
    return draw_curves(figure, split_by(kind, name, panel))


def split_by(
    kind: Callable[[OutcomeCell], float], name: Callable[[float], str], panel: FigurePanel
) -> list[FigurePanel]:
    """A panel for each kind of cell."""
    kinds = sorted({kind(cell) for each in panel.runs for cell in each.cells})

    def part(wanted: float) -> FigurePanel:
        chosen = [
            replace(each, cells=tuple(cell for cell in each.cells if kind(cell) == wanted)) for each in panel.runs
        ]
        return FigurePanel(name(wanted), tuple(each for each in chosen if each.cells))

    return [part(each) for each in kinds]


def curve_of(cell: OutcomeCell, env_steps: int) -> Curve | None:
    """The mean curve of the runs that have a score; None if every run diverged."""
    runs = cell.curves[np.isfinite(cell.scores)]
    return mean_curve(runs, env_steps) if len(runs) else None


def _draw_panel(axes: Axes, panel: FigurePanel, *, is_top: bool, is_bottom: bool) -> None:
    for runs, dash in zip(panel.runs, DASHES, strict=False):
        for cell in runs.cells:
            if (curve := curve_of(cell, runs.outcome.env_steps)) is not None:
                _draw_curve(axes, curve, cell, dash)
    axes.set_title(panel.title, fontsize=SMALL, fontweight="bold", pad=TO_TITLE if is_top else None)
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=(1, 2, 2.5, 5, 10)))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.tick_params(labelbottom=is_bottom)
    thousands(axes)
    if is_bottom:
        name_steps(axes)
    if is_top:
        add_seconds(axes, float(panel.runs[0].env_dt))


def _draw_curve(axes: Axes, curve: Curve, cell: OutcomeCell, dash: str) -> None:
    colour = COLOURS[cell.dt]
    begin = (PLACES[cell.dt] + 1) * _MARKED_EVERY // LOOKS - 1  # so that markers of different curves stand apart
    axes.plot(
        curve.env_steps,
        curve.mean,
        color=colour,
        linestyle=dash,
        linewidth=1.3,
        marker=MARKERS[cell.dt],
        markersize=4,
        markerfacecolor=colour if dash == "-" else "white",
        markevery=(begin, _MARKED_EVERY),
    )
    if curve.low is not None and curve.high is not None:
        axes.fill_between(curve.env_steps, curve.low, curve.high, color=colour, alpha=BAND, linewidth=0)
