"""Panels beside each other, in figures of performance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cycletime.paper.figures.panels import FigurePanel
from cycletime.paper.figures.style import PERFORMANCE, SMALL, thousands

ALONE = (6.4, 4.8)
"""The size of a figure with one panel, in inches."""


def row_of_axes(
    figure: Figure, panels: Sequence[FigurePanel], *, width: float = 3.3, same_scale: bool = False
) -> Iterator[tuple[Axes, FigurePanel]]:
    """Axes for each panel that was run; the others say that they were not.

    Args:
        figure: To be filled.
        panels: From left to right.
        width: Of a panel among others, in inches.
        same_scale: Whether their scores can be compared, and not those of different tasks.
    """
    figure.set_size_inches(ALONE if len(panels) == 1 else (width * len(panels), 4.2))
    every = figure.subplots(1, len(panels), sharey=same_scale, squeeze=False)[0]
    every[0].set_ylabel(PERFORMANCE)
    for axes, panel in zip(every, panels, strict=True):
        axes.set_title(panel.title, fontsize=SMALL, fontweight="bold")
        if panel.runs:
            thousands(axes)
            yield axes, panel
        else:
            _say_not_run(axes, keep_ticks=same_scale)


def _say_not_run(axes: Axes, *, keep_ticks: bool) -> None:
    axes.text(0.5, 0.5, "not run", ha="center", va="center", transform=axes.transAxes, fontsize=12, color="0.5")
    axes.set_xticks([])
    axes.grid(visible=False)
    if not keep_ticks:
        axes.set_yticks([])
