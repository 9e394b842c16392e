"""Performance against the batch time, the seconds in which a batch is collected; a line for each cycle time."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cycletime.paper.claims.sources import BASELINE_BATCH
from cycletime.paper.figures.lines import draw_by_dt, draw_circles
from cycletime.paper.figures.panels import FigurePanel, Legend
from cycletime.paper.figures.rows import row_of_axes
from cycletime.paper.figures.style import (
    NEUTRAL,
    dt_handles,
    dts_of,
    log2_axis,
    rule_handles,
)
from cycletime.paper.outcome import OutcomeCell

_BASELINE_S = BASELINE_BATCH * 0.016
"""The batch time of the baseline at 16 ms, which dt-aware values from there keep."""


def batch_time_s(cell: OutcomeCell) -> float:
    """How long it takes to collect a batch."""
    return round(float(cell.dt) * float(cell.values["batch"]), 9)


def draw_against_batch_time(figure: Figure, panels: Sequence[FigurePanel]) -> Legend:
    """A pair of axes for each panel, with the same scales."""
    circles: list[Artist] = []
    for axes, panel in row_of_axes(figure, panels, same_scale=True):
        circles += _draw_panel(axes, panel)
    runs = [each for panel in panels for each in panel.runs]
    return [dt_handles(dts_of(runs)), rule_handles(panels), circles]


def _draw_panel(axes: Axes, panel: FigurePanel) -> list[Artist]:
    """Draw lines, and mark the baseline's points and the dt-aware ones that follow from it; these for the legend."""
    lines = [runs for runs in panel.runs if not runs.is_marked]
    axes.axvline(_BASELINE_S, color=NEUTRAL, linewidth=0.8, zorder=0)
    draw_by_dt(axes, batch_time_s, lines)
    log2_axis(axes, sorted({batch_time_s(cell) for runs in lines for cell in runs.cells}), "batch time (s)")
    handles = []
    for runs in panel.runs:
        if runs.is_marked:
            followed = [cell for cell in lines[0].cells if batch_time_s(cell) == _BASELINE_S]
            from_baseline = f"dt-aware from the baseline ({_BASELINE_S:g} s)"
            handles += [
                draw_circles(axes, batch_time_s, runs.cells, runs.rule, is_dashed=True),
                draw_circles(axes, batch_time_s, followed, from_baseline, is_dashed=False),
            ]
    return handles
