"""What a figure shows, described once: `drawing` draws it for print with Matplotlib, and `page` in the browser.

A cell is the runs that differ in their seeds alone. Text between dollar signs is TeX, which the page shows as plain
text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cycletime.statistics import Curve, Estimate, mean_and_error, mean_curve

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, which people with any colour vision can tell apart."""
MARKERS = "osD^vPX"
Dash: TypeAlias = Literal["-", "--", "-.", ":"]
DASHES: tuple[Dash, ...] = ("-", "--", "-.", ":")
CYCLE_TIME = "cycle time (ms)"
RETURN = "episodic return"


@dataclass(frozen=True, eq=False)
class FigureCell:
    scores: Sequence[float]
    """Those that are finite."""
    curves: NDArray[np.float64] | None = None
    """[runs, bins] of the same runs; None where no figure shows them."""
    env_steps: int = 0
    estimate: Estimate | None = None
    """What print shows of the scores, if not their mean and standard error."""

    @property
    def printed(self) -> Estimate:
        return self.estimate or mean_and_error(self.scores)

    def mean_curve(self) -> Curve | None:
        return None if self.curves is None or not len(self.curves) else mean_curve(self.curves, self.env_steps)


@dataclass(frozen=True)
class LineSpec:
    name: str
    """What the legend calls it; lines of the same name are hidden together."""
    cells: tuple[str | None, ...]
    """Names of cells: one for each place on the horizontal axis, or of learning curves a single one.

    None where there is no cell; of a name that the figure has no cell of, every run diverged.
    """
    colour: str = COLOURS[0]
    dash: Dash = DASHES[0]
    marker: str = MARKERS[0]
    values: tuple[float | None, ...] | None = None
    """Numbers that the page draws instead of cells, such as the score of doing nothing."""
    ring: Literal["dashed", "solid"] | None = None
    """The border of circles that print draws at its cells instead of a line, under its dash's name in the legend."""
    colour_name: str = ""
    """What its colour stands for, where print names colours and dashes apart from each other."""
    dash_name: str = ""
    note: str = ""
    """What the legend of print says beside its name, such as its number of seeds."""
    is_on_page: bool = True
    """Whether the page shows it, and not print alone."""


@dataclass(frozen=True)
class PanelSpec:
    """A pair of axes; without lines it was not run."""

    title: str
    lines: tuple[LineSpec, ...]
    places: tuple[float, ...] = ()
    """Where points stand on the horizontal axis; none of learning curves."""
    names: tuple[str, ...] = ()
    """What stands at these places, if not their numbers."""
    x_mark: float | None = None
    """Where print draws a vertical line."""


@dataclass(frozen=True, eq=False)
class FigureSpec:
    name: str
    """Its anchor, and its file."""
    title: str
    kind: Literal["points", "curves"]
    panels: tuple[PanelSpec, ...]
    cells: Mapping[str, FigureCell]
    caption: str
    """How many seeds, which intervals, where data come from."""
    command: str
    y_label: str
    x_label: str = "environment steps"
    step_s: float | None = None
    """The environment's time step, so that learning curves can be drawn against seconds."""
    x_axis: Literal["log", "linear", "categories"] = "log"
    """Whether doubling is always as far on the horizontal axis of points; categories are not connected."""
    same_scale: bool = True
    """Whether its panels have the same vertical axis, since they show the same kind of number."""
    bars: bool = False
    """Whether print shows intervals as bars side by side, and not as bands."""
    pack: str = ""
    """The part of the page's data that its single curves are in."""
    print_caption: str = ""
    """The caption of print, where the page can show more than that."""
