"""Performance against the cycle time, a line for each rule; also the three-part figure."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cycletime.paper.figures.lines import draw_line
from cycletime.paper.figures.panels import Legend, Panel, say_not_run
from cycletime.paper.figures.style import COLOURS, NEUTRAL, PERFORMANCE, SMALL, dts_of, log2_axis, thousands
from cycletime.paper.outcome import Cell
from cycletime.reports.style import DASHES, MARKERS


def draw_against_dt(figure: Figure, panels: Sequence[Panel]) -> Legend:
    """A pair of axes for each panel, each with its own scale, since they show different tasks."""
    figure.set_size_inches((6.4, 4.8) if len(panels) == 1 else (3.3 * len(panels), 4.2))
    every = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, panel in zip(every, panels, strict=True):
        _draw_panel(axes, panel)
    every[0].set_ylabel(PERFORMANCE)
    return [_handles(panels)]


def _draw_panel(axes: Axes, panel: Panel) -> None:
    axes.set_title(panel.title, fontsize=SMALL, fontweight="bold")
    if not panel.runs:
        say_not_run(axes)
        return
    for runs, dash, marker in zip(panel.runs, DASHES, MARKERS, strict=False):
        points = draw_line(axes, _milliseconds, runs.cells, dash, color=_line_colour(runs.start))
        colours = [COLOURS[runs.start or dt] for dt in runs.dts]
        for (x, y), colour in zip(points, colours, strict=True):
            face = colour if dash == DASHES[0] else "white"
            axes.plot(x, y, marker=marker, markersize=6, color=colour, markerfacecolor=face, linestyle="none")
    log2_axis(axes, [float(dt) * 1e3 for dt in dts_of(panel.runs)], r"cycle time $\delta t$ (ms)")
    thousands(axes)


def _handles(panels: Sequence[Panel]) -> list[Artist]:
    looks = {
        runs.rule: (dash, marker, runs.start)
        for panel in panels
        for runs, dash, marker in zip(panel.runs, DASHES, MARKERS, strict=False)
    }
    return [
        Line2D(
            [],
            [],
            color=_line_colour(start),
            linestyle=dash,
            marker=marker,
            label=rule,
            markerfacecolor=(_line_colour(start) if dash == DASHES[0] else "white"),
        )
        for rule, (dash, marker, start) in looks.items()
    ]


def _line_colour(start: object) -> str:
    return NEUTRAL if start is None else COLOURS[start]  # type: ignore[index]


def _milliseconds(cell: Cell) -> float:
    return float(cell.dt) * 1e3
