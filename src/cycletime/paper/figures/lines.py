"""A line through mean scores, with a band of standard errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from numpy.typing import NDArray

from cycletime.paper.figures.panels import Runs
from cycletime.paper.figures.style import BAND, COLOURS, MARKERS
from cycletime.paper.outcome import OutcomeCell
from cycletime.paper.scores import score
from cycletime.reports.style import DASHES

Place = Callable[[OutcomeCell], float]
"""Where a cell stands on the horizontal axis."""


def draw_line(axes: Axes, place: Place, cells: Iterable[OutcomeCell], dash: str, **looks: Any) -> NDArray[np.float64]:  # noqa: ANN401
    """Draw the scores of cells; [cells, 2] where the points are, from left to right.

    A cell of which every run diverged leaves a gap.
    """
    ordered = sorted(cells, key=place)
    estimates = [score(cell) for cell in ordered]
    ends = np.array([(each.low, each.value, each.high) if each else (None,) * 3 for each in estimates], np.float64)
    along = np.array([place(cell) for cell in ordered])
    axes.plot(along, ends[:, 1], linestyle=dash, linewidth=1.4, markersize=5, **looks)
    axes.fill_between(along, ends[:, 0], ends[:, 2], color=looks["color"], alpha=BAND, linewidth=0)
    return np.stack([along, ends[:, 1]], axis=1)


def draw_by_dt(axes: Axes, place: Place, runs: Iterable[Runs]) -> None:
    """A line for each cycle time of each rule, in the cycle time's colour and with the rule's dashes."""
    for each, dash in zip(runs, DASHES, strict=False):
        for dt in each.dts:
            face = COLOURS[dt] if dash == DASHES[0] else "white"
            looks = {"color": COLOURS[dt], "marker": MARKERS[dt], "markerfacecolor": face}
            draw_line(axes, place, each.at(dt), dash, **looks)


def draw_circles(axes: Axes, place: Place, cells: Iterable[OutcomeCell], label: str, *, is_dashed: bool) -> Artist:
    """Mark cells by circles with a black border; dashed ones are larger, so that both can stand at one place.

    Returns:
        What the legend shows.
    """
    scored = {cell: estimate.value for cell in cells if (estimate := score(cell)) is not None}
    looks: dict[str, Any] = {"s": 110 if is_dashed else 50, "linestyle": "--" if is_dashed else "-"}
    looks |= {"edgecolor": "black", "linewidth": 1.1, "zorder": 3 if is_dashed else 4}
    axes.scatter([*map(place, scored)], [*scored.values()], facecolor=[COLOURS[cell.dt] for cell in scored], **looks)
    return axes.scatter([], [], facecolor="none", label=label, **looks)
