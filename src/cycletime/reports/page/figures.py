"""Figures as data that the page draws: panels with lines, and the cells that these show.

A cell is the runs that differ in their seeds alone. Its numbers are computed here, by `cycletime.statistics`; the page
draws them and computes none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cycletime.reports.figure_style import COLOURS, DASHES
from cycletime.statistics import Curve, Estimate, iqm, iqm_curve, mean_and_error, mean_curve

CYCLE_TIME = "cycle time (ms)"
"""What stands below a horizontal axis of cycle times."""
_RESAMPLES = 2_000
"""Of the interquartile means' intervals: enough for a figure."""
_CURVE_RESAMPLES = 250
"""Of the bands around their curves, whose edges then vary by about 4 % of the band's width."""
_DIGITS = 5
"""Of numbers that figures show."""
_CURVE_LEVELS = 400
"""Steps that single curves are told in, from the least return of a cell to the greatest: finer than a pixel."""
_MAX_BINS = 50
"""Of single curves, where there are so many that it matters."""
_MANY_RUNS = 200


@dataclass(frozen=True, eq=False)
class FigureCell:
    """Runs that differ in their seeds alone."""

    scores: Sequence[float]
    """Those that are finite."""
    curves: NDArray[np.float64] | None = None
    """[runs, bins] of the same runs; None where no figure shows them."""
    env_steps: int = 0
    """Of each run."""

    def summary(self) -> dict[str, Any]:
        """Its score: mean and interquartile mean, each with its interval."""
        return {
            "n": len(self.scores),
            "mean": _estimate_as_json(mean_and_error(self.scores)),
            "iqm": _estimate_as_json(iqm(self.scores, resamples=_RESAMPLES)),
            "scores": _rounded(self.scores),
        }

    def curve(self) -> dict[str, Any] | None:
        """Its learning curves of means and of interquartile means, each with its band's lower and upper edge."""
        if self.curves is None or not len(self.curves):
            return None
        return {
            "env_steps": self.env_steps,
            "mean": _curve_as_json(mean_curve(self.curves, self.env_steps)),
            "iqm": _curve_as_json(iqm_curve(self.curves, self.env_steps, resamples=_CURVE_RESAMPLES)),
        }

    def seeds(self) -> dict[str, Any] | None:
        """The curve of every run in whole steps, as differences from bin to bin, which take little room."""
        if self.curves is None or not len(self.curves):
            return None
        runs, bins = self.curves.shape
        every = 2 if runs * bins > _MANY_RUNS * _MAX_BINS and bins % 2 == 0 else 1
        kept = self.curves[:, every - 1 :: every]
        step = float(kept.max() - kept.min()) / _CURVE_LEVELS or 1.0
        whole = np.rint(kept / step).astype(np.int64)
        return {"step": step, "every": every, "deltas": np.diff(whole, axis=1, prepend=0).tolist()}


@dataclass(frozen=True)
class FigureLine:
    """A line of a panel."""

    name: str
    """What the legend calls it; lines of the same name are hidden together."""
    cells: tuple[str | None, ...]
    """Names of cells: one for each place on the horizontal axis, or of learning curves a single one."""
    colour: str = COLOURS[0]
    dash: str = DASHES[0]
    values: tuple[float | None, ...] | None = None
    """Numbers to draw instead of cells, such as what doing nothing gets."""

    def as_json(self) -> dict[str, Any]:
        """For the page."""
        told = {"name": self.name, "colour": self.colour, "dash": DASHES.index(self.dash)}
        return {**told, **({"cells": self.cells} if self.values is None else {"values": self.values})}


@dataclass(frozen=True)
class PagePanel:
    """A pair of axes."""

    title: str
    lines: tuple[FigureLine, ...]
    places: tuple[float, ...] = ()
    """Where points stand on the horizontal axis; none of learning curves."""
    names: tuple[str, ...] = ()
    """What stands at these places, if not their numbers."""


@dataclass(frozen=True)
class PageFigure:
    """A figure."""

    name: str
    """Its anchor."""
    title: str
    kind: Literal["points", "curves"]
    panels: tuple[PagePanel, ...]
    caption: str
    """How many seeds, which intervals, where data come from."""
    command: str
    """What makes it again."""
    y_label: str
    x_label: str = "environment steps"
    step_s: float | None = None
    """The environment's time step, so that learning curves can be drawn against seconds."""
    is_logarithmic: bool = True
    """Whether doubling is always as far on the horizontal axis, of points."""
    same_scale: bool = True
    """Whether its panels have the same vertical axis, since they show the same kind of number."""
    pack: str = ""
    """The part of the data that its single curves are in."""

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "title": self.title,
            "xLabel": self.x_label,
            "yLabel": self.y_label,
            "stepS": self.step_s,
            "log": self.is_logarithmic,
            "sameScale": self.same_scale,
            "pack": self.pack,
            "panels": [
                {
                    "title": panel.title,
                    "places": panel.places,
                    "names": panel.names,
                    "lines": [line.as_json() for line in panel.lines],
                }
                for panel in self.panels
            ],
        }


@dataclass
class FigureData:
    """The figures of a page, and the cells that they show, each once."""

    figures: list[PageFigure] = field(default_factory=list)
    cells: dict[str, FigureCell] = field(default_factory=dict)
    packs: dict[str, set[str]] = field(default_factory=dict)
    """By pack of single curves, its cells."""

    def add(self, figure: PageFigure, cells: Mapping[str, FigureCell]) -> None:
        """A further figure, with the cells that it shows."""
        self.figures.append(figure)
        self.cells |= cells
        if figure.pack:
            self.packs.setdefault(figure.pack, set()).update(
                name for panel in figure.panels for line in panel.lines for name in line.cells if name is not None
            )

    def as_json(self) -> dict[str, Any]:
        """All but the single curves."""
        drawn = {name for names in self.packs.values() for name in names}
        return {
            "figures": {figure.name: figure.as_json() for figure in self.figures},
            "cells": {name: cell.summary() for name, cell in self.cells.items()},
            "curves": {name: self.cells[name].curve() for name in sorted(drawn)},
        }

    def seeds(self, pack: str) -> dict[str, Any]:
        """The single curves of a pack."""
        return {name: self.cells[name].seeds() for name in sorted(self.packs[pack])}


def _estimate_as_json(estimate: Estimate) -> list[float | None]:
    return [None if each is None else _round(each) for each in (estimate.value, estimate.low, estimate.high)]


def _curve_as_json(curve: Curve) -> list[list[float] | None]:
    return [None if each is None else _rounded(each) for each in (curve.mean, curve.low, curve.high)]


def _rounded(values: Sequence[float] | NDArray[np.float64]) -> list[float]:
    return [_round(float(each)) for each in values]


def _round(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
