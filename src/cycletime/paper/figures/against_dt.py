"""Performance against the cycle time, a line for each rule; also the three-part figure."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cycletime.duration import Duration
from cycletime.paper.figures.lines import draw_line
from cycletime.paper.figures.panels import FigurePanel, Legend
from cycletime.paper.figures.rows import row_of_axes
from cycletime.paper.figures.style import COLOURS, NEUTRAL, dts_of, log2_axis
from cycletime.paper.outcome import OutcomeCell
from cycletime.reports.style import DASHES, MARKERS


def draw_against_dt(figure: Figure, panels: Sequence[FigurePanel]) -> Legend:
    """A pair of axes for each panel, each with its own scale, since they show different tasks."""
    for axes, panel in row_of_axes(figure, panels):
        _draw_panel(axes, panel)
    return [_handles(panels)]


def _draw_panel(axes: Axes, panel: FigurePanel) -> None:
    for runs, dash, marker in zip(panel.runs, DASHES, MARKERS, strict=False):
        points = draw_line(axes, _milliseconds, runs.cells, dash, color=_line_colour(runs.start))
        colours = [COLOURS[runs.start or dt] for dt in runs.dts]
        for (x, y), colour in zip(points, colours, strict=True):
            face = colour if dash == DASHES[0] else "white"
            axes.plot(x, y, marker=marker, markersize=6, color=colour, markerfacecolor=face, linestyle="none")
    log2_axis(axes, [float(dt) * 1e3 for dt in dts_of(panel.runs)], r"cycle time $\delta t$ (ms)")


def _handles(panels: Sequence[FigurePanel]) -> list[Artist]:
    looks = {
        runs.rule: (dash, marker, runs.start)
        for panel in panels
        for runs, dash, marker in zip(panel.runs, DASHES, MARKERS, strict=False)
    }
    handles: list[Artist] = []
    for rule, (dash, marker, start) in looks.items():
        colour = _line_colour(start)
        face = colour if dash == DASHES[0] else "white"
        handles.append(Line2D([], [], color=colour, linestyle=dash, marker=marker, markerfacecolor=face, label=rule))
    return handles


def _line_colour(start: Duration | None) -> str:
    return NEUTRAL if start is None else COLOURS[start]


def _milliseconds(cell: OutcomeCell) -> float:
    return float(cell.dt) * 1e3
