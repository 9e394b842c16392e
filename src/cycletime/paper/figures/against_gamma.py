"""Performance against the discount, a line for each cycle time."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, log2

from matplotlib.figure import Figure

from cycletime.paper.figures.lines import draw_by_dt, draw_circles
from cycletime.paper.figures.panels import FigurePanel, Legend
from cycletime.paper.figures.rows import row_of_axes
from cycletime.paper.figures.style import dt_handles, dts_of
from cycletime.paper.outcome import OutcomeCell

_NO_DISCOUNT = 4.0
"""Where a discount of 1 stands: one place after the largest other, .99^(1/8), though it is infinitely far away."""


def place_of(cell: OutcomeCell) -> float:
    """Where a cell stands: of a discount .99^e it is -log2 e, so that those of the sweep are one apart."""
    discount = cell.values["discount"]
    return _NO_DISCOUNT if discount == 1 else -log2(log(discount) / log(0.99))


def draw_against_gamma(figure: Figure, panels: Sequence[FigurePanel]) -> Legend:
    """One pair of axes: sweeps as lines, and two choices as dash-bordered and as solid-bordered circles."""
    ((axes, panel),) = row_of_axes(figure, panels)
    sweeps = [runs for runs in panel.runs if not runs.is_marked]
    for runs in sweeps:
        draw_by_dt(axes, place_of, [runs])
    dashed, solid = (runs for runs in panel.runs if runs.is_marked)
    circles = [
        draw_circles(axes, place_of, runs.cells, runs.rule, is_dashed=is_dashed)
        for runs, is_dashed in ((dashed, True), (solid, False))
    ]
    ticks = {place_of(cell): cell.values["discount"] for runs in sweeps for cell in runs.cells}
    axes.set_xticks(list(ticks), [discount_words(discount) for discount in ticks.values()])
    apart = ", and 1" if _NO_DISCOUNT in ticks else ""
    axes.set_xlabel(rf"discount $\gamma$ = .99$^e$, on a logarithmic axis of $e${apart}")
    return [dt_handles(dts_of(panel.runs)), circles]


def discount_words(discount: float) -> str:
    """A discount as the paper writes it: '.851', '.9987', '1'."""
    digits = 4 if discount > 0.998 else 3
    return f"{discount:.{digits}f}".lstrip("0") if discount < 1 else "1"
