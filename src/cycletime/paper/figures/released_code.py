"""Performance with the released code's ways beside those of the paper's text, on both tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cycletime.paper.figures.panels import FigurePanel, Legend
from cycletime.paper.figures.rows import row_of_axes
from cycletime.paper.figures.style import COLOURS, MARKERS, NEUTRAL, dt_handles, dts_of
from cycletime.paper.outcome import OutcomeCell
from cycletime.paper.scores import score

WAYS = {
    ("batch", "released"): "the paper's\ntext",
    ("episode_end", "released"): "learning at\nepisodes' ends",
    ("batch", "pytorch"): "PyTorch's\nweights",
    ("episode_end", "pytorch"): "both",
}
"""By when it learns and its initial weights."""
_APART = 0.14
"""How far points of a way stand from each other, as a share of the way to the next."""


def draw_released_code(figure: Figure, panels: Sequence[FigurePanel]) -> Legend:
    """A pair of axes for each task, the ways side by side."""
    for axes, panel in row_of_axes(figure, panels, width=4.4):
        _draw_panel(axes, panel)
    runs = [each for panel in panels for each in panel.runs]
    looks: dict[str, Any] = {"color": NEUTRAL, "marker": "o", "linestyle": "none"}
    return [
        [
            *dt_handles(dts_of(runs)),
            Line2D([], [], **looks, label="dt-aware (filled)"),
            Line2D([], [], **looks, markerfacecolor="white", label="baseline (open)"),
        ]
    ]


def _draw_panel(axes: Axes, panel: FigurePanel) -> None:
    dts = dts_of(panel.runs)
    kinds = [(rule, dt) for dt in dts for rule in ("baseline", "dt-aware")]
    for runs in panel.runs:
        for cell in runs.cells:
            shift = _APART * (kinds.index((runs.rule, cell.dt)) - (len(kinds) - 1) / 2)
            _draw_point(axes, cell, list(WAYS).index(way_of(cell)) + shift, is_filled=runs.rule == "dt-aware")
    axes.set_xticks(range(len(WAYS)), list(WAYS.values()))
    axes.grid(visible=False, axis="x")


def _draw_point(axes: Axes, cell: OutcomeCell, x: float, *, is_filled: bool) -> None:
    estimate = score(cell)
    if estimate is None:
        return
    error = 0.0 if estimate.high is None else estimate.high - estimate.value
    colour = COLOURS[cell.dt]
    axes.errorbar(
        x,
        estimate.value,
        yerr=error,
        color=colour,
        marker=MARKERS[cell.dt],
        markerfacecolor=colour if is_filled else "white",
        markersize=6,
        capsize=3,
    )


def way_of(cell: OutcomeCell) -> tuple[str, str]:
    """When it learns, and its initial weights."""
    return cell.values["learn_when"], cell.values["initial_weights"]
