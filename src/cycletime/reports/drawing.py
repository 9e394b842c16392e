"""Figures for print: what `reports.figure` describes, drawn by Matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, FixedLocator, MaxNLocator, NullLocator

from cycletime.reports.figure import Dash, FigureSpec, LineSpec, PanelSpec
from cycletime.reports.figure_style import STYLE, TITLE_PAD, add_footer, add_seconds_axis, label_steps, save_figure
from cycletime.training.atomic_files import make_folder

NEUTRAL_COLOUR = "0.25"
BAND_ALPHA = 0.18
TITLE_SIZE = 8
_SINGLE_SIZE = (6.4, 4.8)
"""Of a figure with one panel, in inches."""
_COLUMNS = 3
_MOST_COLUMNS = 6
"""Panels side by side; more make further rows."""
_MARKED_EVERY = 20
"""Bins from one marker of a learning curve to the next."""
_DODGE = 0.02
"""How far bars of a place stand apart, as a share of the axis, so that they do not cover each other."""
_CATEGORY_DODGE = 0.14
"""The same of categories, as a share of the way to the next."""
_CROWDED = 0.05
"""Places that are nearer to each other, as a share of the axis, would write over each other."""


def draw_figure(spec: FigureSpec) -> Figure:
    with mpl.rc_context(STYLE):
        figure = Figure()
        if spec.kind == "curves":
            _draw_curves(figure, spec)
        else:
            _draw_points(figure, spec)
        figure.suptitle(spec.title, fontsize=10)
        add_footer(figure, _legend(figure, spec), spec.print_caption or spec.caption)
    return figure


def save_figures(figures: Mapping[str, Figure], folder: Path, formats: Sequence[str]) -> list[Path]:
    make_folder(folder)
    with mpl.rc_context(STYLE):
        return [path for name, figure in figures.items() for path in save_figure(figure, folder, name, formats)]


def share_vertical_axis(figures: Sequence[Figure]) -> None:
    every = [axes for figure in figures for axes in figure.axes]
    ends = [end for axes in every for end in axes.get_ylim()]
    for axes in every:
        axes.set_ylim(min(ends), max(ends))


def _draw_points(figure: Figure, spec: FigureSpec) -> None:
    width = 4.4 if spec.x_axis == "categories" else 3.3
    count = len(spec.panels)
    rows = ceil(count / _MOST_COLUMNS)
    columns = ceil(count / rows)
    figure.set_size_inches(_SINGLE_SIZE if count == 1 else (width * columns, 4.2 * rows))
    every = figure.subplots(rows, columns, sharey=spec.same_scale, squeeze=False)
    for axes in every[:, 0]:
        axes.set_ylabel(spec.y_label)
    for axes in every.flat[count:]:
        axes.remove()
    for axes, panel in zip(every.flat, spec.panels, strict=False):
        axes.set_title(panel.title, fontsize=TITLE_SIZE, fontweight="bold")
        if panel.lines:
            _format_thousands(axes)
            _draw_points_panel(axes, spec, panel)
        else:
            words = {"ha": "center", "va": "center", "fontsize": 12, "color": "0.5"}
            axes.text(0.5, 0.5, "not run", transform=axes.transAxes, **words)
            axes.set_xticks([])
            axes.grid(visible=False)
            if not spec.same_scale:
                axes.set_yticks([])


def _draw_points_panel(axes: Axes, spec: FigureSpec, panel: PanelSpec) -> None:
    if panel.x_mark is not None:
        axes.axvline(panel.x_mark, color=NEUTRAL_COLOUR, linewidth=0.8, zorder=0)
    lines = [line for line in panel.lines if line.cells]
    for line, places in zip(lines, _line_places(spec, panel, len(lines)), strict=True):
        there = [(x, spec.cells.get(name)) for x, name in zip(places, line.cells, strict=True) if name is not None]
        ends = [(x, None if cell is None else cell.printed) for x, cell in there]
        # Where every run diverged, there is a gap.
        points = [(x, *((None,) * 3 if each is None else (each.low, each.value, each.high))) for x, each in ends]
        if not points:
            continue
        x, low, value, high = np.array(points, np.float64).T
        if line.ring is not None:
            axes.scatter(x, value, facecolor=line.colour, **_ring_look(line))
        elif spec.bars or spec.x_axis == "categories":
            errors = np.nan_to_num(np.stack([value - low, high - value])).clip(0)
            connected = {"linestyle": "none"} if spec.x_axis == "categories" else {}
            axes.errorbar(x, value, yerr=errors, capsize=3, **_line_look(line, markersize=5, **connected))
        else:
            axes.plot(x, value, **_line_look(line, markersize=5))
            axes.fill_between(x, low, high, color=line.colour, alpha=BAND_ALPHA, linewidth=0)
    if spec.x_axis == "log":
        axes.set_xscale("log", base=2)  # doubling is always as far, and there is a tick at each value alone
        axes.xaxis.set_major_locator(FixedLocator(list(panel.places)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        width = max(panel.places) / min(panel.places)
        if width == 1:
            axes.set_xlim(panel.places[0] / 2, panel.places[0] * 2)
        elif _nearest_factor(panel.places) < width**_CROWDED:
            axes.tick_params(axis="x", labelrotation=60)
    else:
        axes.set_xticks(list(panel.places), list(panel.names) or None)
    axes.set_xlabel(spec.x_label)
    if spec.x_axis == "categories":
        axes.grid(visible=False, axis="x")


def _line_places(spec: FigureSpec, panel: PanelSpec, count: int) -> list[list[float]]:
    """For each of so many lines where its points stand: beside each other where intervals are bars."""
    offsets = [index - (count - 1) / 2 for index in range(count)]
    if spec.x_axis == "categories":
        return [[place + _CATEGORY_DODGE * offset for place in panel.places] for offset in offsets]
    if not spec.bars:
        return [list(panel.places)] * count
    width = max(panel.places) / min(panel.places) if len(panel.places) > 1 else 10.0
    # So that all points of a place stay nearer to it than to others.
    factor = min(width**_DODGE, _nearest_factor(panel.places) ** (0.5 / count))
    return [[place * factor**offset for place in panel.places] for offset in offsets]


def _nearest_factor(places: Sequence[float]) -> float:
    """The factor between the two places that are nearest to each other."""
    return min((after / before for before, after in pairwise(places)), default=10.0)


def _draw_curves(figure: Figure, spec: FigureSpec) -> None:
    columns = min(_COLUMNS, len(spec.panels))
    rows = ceil(len(spec.panels) / columns)
    figure.set_size_inches(_SINGLE_SIZE if len(spec.panels) == 1 else (2.9 * columns, 2.2 * rows + 1.3))
    every = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for place, axes in enumerate(every.flatten()):
        if place < len(spec.panels):
            is_bottom = place + columns >= len(spec.panels)
            _draw_curves_panel(axes, spec, spec.panels[place], is_top=place < columns, is_bottom=is_bottom)
        else:
            axes.remove()
    for axes in every[:, 0]:
        axes.set_ylabel(spec.y_label)


def _draw_curves_panel(axes: Axes, spec: FigureSpec, panel: PanelSpec, *, is_top: bool, is_bottom: bool) -> None:
    for index, line in enumerate(panel.lines):
        (name,) = line.cells
        curve = spec.cells[name].mean_curve() if name is not None and name in spec.cells else None
        if curve is None:
            continue
        begin = (index + 1) * _MARKED_EVERY // (len(panel.lines) + 1)  # so that markers of different curves stand apart
        look = _line_look(line, linewidth=1.3, markersize=4, markevery=(begin, _MARKED_EVERY))
        axes.plot(curve.env_steps, curve.mean, **look)
        if curve.low is not None and curve.high is not None:
            axes.fill_between(curve.env_steps, curve.low, curve.high, color=line.colour, alpha=BAND_ALPHA, linewidth=0)
    with_seconds = is_top and spec.step_s is not None
    axes.set_title(panel.title, fontsize=TITLE_SIZE, fontweight="bold", pad=TITLE_PAD if with_seconds else None)
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=(1, 2, 2.5, 5, 10)))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.tick_params(labelbottom=is_bottom)
    _format_thousands(axes)
    if is_bottom:
        label_steps(axes)
    if with_seconds and spec.step_s is not None:
        add_seconds_axis(axes, spec.step_s)


def _legend(figure: Figure, spec: FigureSpec) -> list[list[Artist]]:
    """Groups of handles: what colours and what dashes stand for, or else each line; then rings."""
    lines = [line for panel in spec.panels for line in panel.lines if line.cells]
    rings = {line.dash_name: line for line in lines if line.ring is not None}
    colours, dashes, others = dict[str, dict[str, Any]](), dict[Dash, dict[str, None]](), dict[str, dict[str, Any]]()
    for line in lines:
        if not line.colour_name:
            others[f"{line.name} ({line.note})" if line.note else line.name] = _line_look(line)
        elif line.ring is None:
            colours[line.colour_name] = _line_look(line, linestyle="-", markersize=5, markerfacecolor=line.colour)
            dashes.setdefault(line.dash, {})[line.dash_name] = None
    named = {" or ".join(names): {"color": NEUTRAL_COLOUR, "linestyle": dash} for dash, names in dashes.items()}
    handles: list[list[Artist]] = [
        [Line2D([], [], label=name, **look) for name, look in group.items()]
        for group in (colours, named if len(named) > 1 else {}, others)
    ]
    draw = partial(figure.axes[0].scatter, [], [], facecolor="none")
    return [*handles, [draw(label=name, **_ring_look(line)) for name, line in rings.items()]]


def _line_look(line: LineSpec, **others: Any) -> dict[str, Any]:  # noqa: ANN401 - what Matplotlib takes
    face = line.colour if line.dash == "-" else "white"
    looks = {"color": line.colour, "linestyle": line.dash, "linewidth": 1.4, "marker": line.marker}
    return {**looks, "markerfacecolor": face, **others}


def _ring_look(line: LineSpec) -> dict[str, Any]:
    is_dashed = line.ring == "dashed"
    looks: dict[str, Any] = {"s": 110 if is_dashed else 50, "linestyle": "--" if is_dashed else "-"}
    return {**looks, "edgecolor": "black", "linewidth": 1.1, "zorder": 3 if is_dashed else 4}


def _format_thousands(axes: Axes) -> None:
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.10g}")
