"""The looks that all figures of the paper share: a colour and a marker for each cycle time, a dash for each rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from cycletime.duration import Duration
from cycletime.paper.figures.panels import FigurePanel, Runs
from cycletime.reports.style import DASHES
from cycletime.reports.words import span

_LOOKS = (("#0072B2", "o"), ("#56B4E9", "s"), ("#009E73", "D"), ("#E69F00", "^"), ("#D55E00", "v"))
"""From cold to warm as cycle times grow, with colours of Okabe and Ito."""
LOOKS = len(_LOOKS)
_PLACES = {"4ms": 0, "8ms": 1, "16ms": 2, "32ms": 3, "64ms": 4, "10ms": 0, "40ms": 2, "120ms": 4}
"""By cycle time, which of the looks it has; those of the robot are in no figure with the others."""
PLACES = {Duration(dt): place for dt, place in _PLACES.items()}
COLOURS = {dt: _LOOKS[place][0] for dt, place in PLACES.items()}
MARKERS = {dt: _LOOKS[place][1] for dt, place in PLACES.items()}
NEUTRAL = "0.25"
"""The colour of what belongs to no cycle time."""
PERFORMANCE = "performance: mean return over learning"
BAND = 0.18
"""How much of its colour a band of standard errors has."""
SMALL = 8
"""The size of letters in titles of panels."""


def dt_handles(dts: Iterable[Duration]) -> list[Artist]:
    """What the legend says of cycle times."""
    return [
        Line2D([], [], color=COLOURS[dt], marker=MARKERS[dt], markersize=5, label=rf"$\delta t$ = {span(dt)}")
        for dt in dts
    ]


def rule_handles(panels: Iterable[FigurePanel]) -> list[Artist]:
    """What the legend says of rules, which differ in their dashes; nothing of a single one."""
    lines = [[runs.rule for runs in panel.runs if not runs.is_marked] for panel in panels]
    rules = [dict.fromkeys(filter(None, column)) for column in zip_longest(*lines)]
    if len(rules) < 2:
        return []
    return [
        Line2D([], [], color=NEUTRAL, linestyle=dash, label=" or ".join(names))
        for names, dash in zip(rules, DASHES, strict=False)
    ]


def dts_of(runs: Iterable[Runs]) -> list[Duration]:
    """All cycle times of runs."""
    return sorted({dt for each in runs for dt in each.dts})


def thousands(axes: Axes) -> None:
    """Write large returns with commas."""
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.10g}")


def log2_axis(axes: Axes, ticks: Sequence[float], label: str) -> None:
    """A horizontal axis on which doubling is always as far, with a tick at each value alone."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(list(ticks)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.set_xlabel(label)
