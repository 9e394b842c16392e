"""Plain figures: performance against cycle time, and learning curves. The same study gives the same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FixedLocator, MaxNLocator, NullLocator

from cycletime.duration import Duration
from cycletime.reports.figure_style import (
    COLOURS,
    DASHES,
    MARKERS,
    STYLE,
    TITLE_PAD,
    add_seconds_axis,
    label_steps,
    save_figure,
)
from cycletime.reports.formatting import dt_text
from cycletime.reports.summary import CellKey, Summary
from cycletime.statistics import Curve
from cycletime.studies.scores import MEASURES, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = 3
_DODGE = 0.02
"""How far rules stand apart, as a share of the axis, so that their bars do not cover each other."""
_CROWDED = 0.05
"""Cycle times that are nearer to each other, as a share of the axis, would write over each other."""


def save_figures(
    folder: Path,
    stem: str,
    summary: Summary,
    curves: Mapping[CellKey, Curve | None],
    measure: str,
    env_dt_s: float | None,
) -> list[str]:
    """Draw a panel that has scores, each figure as PNG and SVG; the PNGs' names."""
    names = []
    with mpl.rc_context(STYLE):
        figures = {"performance": performance_figure(summary, measure)}
        if any(curves.values()):
            figures["curves"] = curves_figure(summary.panel, curves, env_dt_s)
        for kind, figure in figures.items():
            *_, picture = save_figure(figure, folder, f"{stem}-{kind}", ("svg", "png"))
            names.append(picture.name)
    return names


def performance_figure(summary: Summary, measure: str) -> Figure:
    """The score of each rule against the cycle time."""
    panel = summary.panel
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    times = {dt: float(dt) * 1e3 for dt in panel.dts}
    width = max(times.values()) / min(times.values()) if len(times) > 1 else 10.0
    middle, apart = (len(panel.rules) - 1) / 2, _dodge_factor(list(times.values()), width, len(panel.rules))
    for index, rule in enumerate(panel.rules):
        _draw_rule(axes, summary, rule, index, times, apart ** (index - middle))
    axes.set_xscale("log")
    axes.set_xlim(min(times.values()) / width**0.08, max(times.values()) * width**0.08)
    axes.xaxis.set_major_locator(FixedLocator(list(times.values())))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.set_xlabel("cycle time (ms, logarithmic)")
    axes.set_ylabel(MEASURES[measure][1])
    if _nearest_factor(list(times.values()), width) < width**_CROWDED:
        axes.tick_params(axis="x", labelrotation=60)
    words = (
        summary.statistics.words if any(each and each.low is not None for each in summary.estimates.values()) else ""
    )
    axes.set_title(f"{panel.title}\n{words or 'no intervals from 1 run'}; data: {panel.where}", fontsize=9)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure


def _dodge_factor(times: list[float], width: float, rules: int) -> float:
    """The factor between neighbouring rules' places, such that all of a cycle time stay nearer to it than to others."""
    return float(min(width**_DODGE, _nearest_factor(times, width) ** (0.5 / rules)))


def _nearest_factor(times: list[float], width: float) -> float:
    """The factor between the two cycle times that are nearest to each other."""
    return min((after / before for before, after in pairwise(times)), default=width)


def _draw_rule(axes: Axes, summary: Summary, rule: str, index: int, times: dict[Duration, float], shift: float) -> None:
    drawn = {dt: each for dt in times if (each := summary.estimates[rule, dt]) is not None}
    if not drawn:
        return
    seeds = sorted({each.n for each in drawn.values()})
    below = [each.value - (each.value if each.low is None else each.low) for each in drawn.values()]
    above = [(each.value if each.high is None else each.high) - each.value for each in drawn.values()]
    axes.errorbar(
        [times[dt] * shift for dt in drawn],
        [each.value for each in drawn.values()],
        yerr=[[max(0.0, each) for each in below], [max(0.0, each) for each in above]],
        color=COLOURS[index % len(COLOURS)],
        marker=MARKERS[index % len(MARKERS)],
        linestyle=DASHES[index % len(DASHES)],
        capsize=3,
        label=f"{rule} ({_seeds_text(seeds)})",
    )


def curves_figure(panel: Panel, curves: Mapping[CellKey, Curve | None], env_dt_s: float | None) -> Figure:
    """Learning curves: a part for each cycle time, a line for each rule, against steps and seconds."""
    columns = min(_COLUMNS, len(panel.dts))
    rows = ceil(len(panel.dts) / columns)
    figure = Figure(figsize=(max(4.8, 3.1 * columns), 2.9 * rows + 0.7), layout="constrained")
    every = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flatten().tolist()
    for axes, dt in zip(every, panel.dts, strict=False):
        for index, rule in enumerate(panel.rules):
            _draw_curve(axes, curves[rule, dt], index)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.tick_params(labelbottom=True)
        label_steps(axes)
        if env_dt_s is not None:
            add_seconds_axis(axes, env_dt_s)
        axes.set_title(dt_text(dt), fontsize=9, fontweight="bold", pad=None if env_dt_s is None else TITLE_PAD)
    for axes in every[len(panel.dts) :]:
        axes.remove()
    for axes in every[::columns]:
        axes.set_ylabel("episodic return")
    bands = {curve.interval for curve in curves.values() if curve is not None and curve.low is not None}
    band = f"means, bands ± one {bands.pop()}" if bands else "no bands from 1 run"
    figure.suptitle(f"{panel.title}\n{band}; data: {panel.where}", fontsize=9)
    _add_legend(figure, panel, curves)
    return figure


def _draw_curve(axes: Axes, curve: Curve | None, index: int) -> None:
    if curve is None:
        return
    colour = COLOURS[index % len(COLOURS)]
    axes.plot(curve.env_steps, curve.mean, color=colour, linestyle=DASHES[index % len(DASHES)], linewidth=1.3)
    if curve.low is not None and curve.high is not None:
        axes.fill_between(curve.env_steps, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0)


def _add_legend(figure: Figure, panel: Panel, curves: Mapping[CellKey, Curve | None]) -> None:
    from matplotlib.lines import Line2D

    handles = []
    for index, rule in enumerate(panel.rules):
        seeds = sorted({curve.n for dt in panel.dts if (curve := curves[rule, dt]) is not None})
        colour, dash = COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)]
        if seeds:
            handles.append(Line2D([], [], color=colour, linestyle=dash, label=f"{rule} ({_seeds_text(seeds)})"))
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)


def _seeds_text(numbers: list[int]) -> str:
    """The number of seeds in a legend."""
    if len(numbers) > 1:
        return f"n = {numbers[0]} to {numbers[-1]} seeds"
    return f"n = {numbers[0]} seed{'' if numbers[0] == 1 else 's'}"
