"""Every figure of the paper and its appendix, and a few of ours, from what came of the studies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from cycletime.paper.claims.sources import Data
from cycletime.paper.experiments import none_of_this_name
from cycletime.paper.figures.caption import caption
from cycletime.paper.figures.footer import add_footer
from cycletime.paper.figures.registry import FIGURES
from cycletime.reports.style import STYLE, save_figure
from cycletime.runs.files import disk_errors

__all__ = ["FIGURES", "FORMATS", "draw_figures", "missing_figures", "save_figures"]

FORMATS = ("pdf", "svg", "png")


def save_figures(data: Data, folder: Path, only: Sequence[str] = ()) -> list[Path]:
    """Draw the figures that there is data for, each as PDF, SVG and PNG; the same data give the same bytes.

    Args:
        data: What came of the studies.
        folder: Where the files go; it is made.
        only: The figures that are wanted, by default all.

    Raises:
        InputError: if there is no such figure.
    """
    paths = []
    with mpl.rc_context(STYLE):
        drawn = draw_figures(data, only)
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        for stem, figure in drawn.items():
            paths += save_figure(figure, folder, stem, FORMATS)
    return paths


def missing_figures(data: Data) -> dict[str, str]:
    """By name, the figures that cannot be drawn, and what they need."""
    lacking = {stem: drawing.missing(data) for stem, drawing in FIGURES.items()}
    return {stem: ", ".join(studies) for stem, studies in lacking.items() if studies}


def draw_figures(data: Data, only: Sequence[str] = ()) -> dict[str, Figure]:
    """Figures by name. Those of a family have the same vertical axis, whichever of them are wanted.

    Raises:
        InputError: if there is no such figure.
    """
    for stem in only:
        if stem not in FIGURES:
            raise none_of_this_name("figure", stem, FIGURES)
    lacking = missing_figures(data)
    wanted = [stem for stem in only or FIGURES if stem not in lacking]
    families = {FIGURES[stem].family for stem in wanted} - {""}
    drawn = {
        stem: _draw(stem, data)
        for stem, drawing in FIGURES.items()
        if stem not in lacking and (stem in wanted or drawing.family in families)
    }
    for family in families:
        _share_vertical_axis([figure for stem, figure in drawn.items() if FIGURES[stem].family == family])
    return {stem: drawn[stem] for stem in wanted}


def _draw(stem: str, data: Data) -> Figure:
    drawing = FIGURES[stem]
    panels = [part.panel(data) for part in drawing.parts]
    figure = Figure()
    legend = drawing.draw(figure, panels)
    figure.suptitle(drawing.title, fontsize=10)
    add_footer(figure, legend, caption(panels))
    return figure


def _share_vertical_axis(figures: Sequence[Figure]) -> None:
    every = [axes for figure in figures for axes in figure.axes]
    ends = [end for axes in every for end in axes.get_ylim()]
    for axes in every:
        axes.set_ylim(min(ends), max(ends))
