"""Figures as data that the page draws: what `reports.figure` describes, with all numbers computed."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.reports.figure import DASHES, FigureCell, FigureSpec, LineSpec
from cycletime.statistics import Curve, Estimate, iqm, iqm_curve, mean_and_error

_RESAMPLES = 2_000
"""Of the interquartile means' intervals: enough for a figure."""
_CURVE_RESAMPLES = 250
"""Of the bands around their curves, whose edges then vary by about 4 % of the band's width."""
_DIGITS = 5
_CURVE_LEVELS = 400
"""Steps of single curves, from the least return of a cell to the greatest: finer than a pixel."""
_MAX_BINS = 50
"""Of single curves, where there are so many that it matters."""
_MANY_RUNS = 200
_TEX = re.compile(r"\$([^$]*)\$")
_SUBSCRIPTS = {r"_{\delta t, 1}": "₁", r"_{\delta t, 2}": "₂"}  # gamma_1 and gamma_2, as all else calls them
_TEX_LETTERS = _SUBSCRIPTS | {r"\gamma": "γ", r"\lambda": "λ", r"\delta t": "δt", r"\,": " ", r"\mathrm": ""}  # noqa: RUF001 - it is a gamma


def plain_text(text: str) -> str:
    """A text without TeX, such as 'γ = .99^(δt / 16 ms)'."""  # noqa: RUF002
    return _TEX.sub(lambda found: _without_tex(found[1]), text)


@dataclass(frozen=True)
class FigureData:
    """The figures of a page, and the cells that they show, each once."""

    figures: Sequence[FigureSpec] = ()

    @cached_property
    def cells(self) -> dict[str, FigureCell]:
        return {name: cell for figure in self.figures for name, cell in figure.cells.items()}

    @cached_property
    def packs(self) -> dict[str, set[str]]:
        """By pack, the names of the cells whose single curves it has."""
        found: dict[str, set[str]] = {figure.pack: set() for figure in self.figures if figure.pack}
        for figure in self.figures:
            shown = (name for panel in figure.panels for line in panel.lines for name in line.cells if name)
            found.get(figure.pack, set()).update(name for name in shown if name in figure.cells)
        return found

    def as_json(self) -> dict[str, Any]:
        """All but the single curves."""
        drawn = {name for names in self.packs.values() for name in names}
        return {
            "figures": {figure.name: _figure_as_json(figure) for figure in self.figures},
            "cells": {name: _cell_as_json(cell) for name, cell in self.cells.items()},
            "curves": {name: _curves_as_json(self.cells[name]) for name in sorted(drawn)},
        }

    def lead(self, every: Mapping[str, Any]) -> dict[str, Any]:
        """The part of `as_json` that the first figure needs, so that it is drawn before all is unpacked."""
        first = self.figures[0]
        return {
            "figures": {first.name: every["figures"][first.name]},
            "cells": {name: every["cells"][name] for name in first.cells},
            "curves": {name: every["curves"][name] for name in first.cells if name in every["curves"]}
            if first.kind == "curves"
            else {},
        }

    def seeds(self, pack: str) -> dict[str, Any]:
        return {name: _seeds_as_json(self.cells[name]) for name in sorted(self.packs[pack])}


def _figure_as_json(figure: FigureSpec) -> dict[str, Any]:
    return {
        "kind": figure.kind,
        "title": plain_text(figure.title),
        "xLabel": plain_text(figure.x_label),
        "yLabel": figure.y_label,
        "stepS": figure.step_s,
        "log": figure.x_axis == "log",
        "sameScale": figure.same_scale,
        "pack": figure.pack,
        "panels": [
            {
                "title": plain_text(panel.title),
                "places": panel.places,
                "names": panel.names,
                "lines": [_line_as_json(line, figure.cells) for line in panel.lines if line.is_on_page],
            }
            for panel in figure.panels
            if panel.lines
        ],
    }


def _line_as_json(line: LineSpec, cells: Container[str]) -> dict[str, Any]:
    scored = tuple(name if name in cells else None for name in line.cells)
    shown = {"cells": scored} if line.values is None else {"values": line.values}
    return {"name": plain_text(line.name), "colour": line.colour, "dash": DASHES.index(line.dash), **shown}


def _cell_as_json(cell: FigureCell) -> dict[str, Any]:
    return {
        "n": len(cell.scores),
        "mean": _estimate_as_json(mean_and_error(cell.scores)),
        "iqm": _estimate_as_json(iqm(cell.scores, resamples=_RESAMPLES)),
        "scores": _rounded(cell.scores),
    }


def _curves_as_json(cell: FigureCell) -> dict[str, Any] | None:
    """Learning curves of means and of interquartile means, each with its band's lower and upper edge."""
    mean = cell.mean_curve()
    if mean is None or cell.curves is None:
        return None
    return {
        "env_steps": cell.env_steps,
        "mean": _curve_as_json(mean),
        "iqm": _curve_as_json(iqm_curve(cell.curves, cell.env_steps, resamples=_CURVE_RESAMPLES)),
    }


def _seeds_as_json(cell: FigureCell) -> dict[str, Any] | None:
    """The curve of every run in whole steps, as differences from bin to bin, which take little room."""
    if cell.curves is None or not len(cell.curves):
        return None
    runs, bins = cell.curves.shape
    every = 2 if runs * bins > _MANY_RUNS * _MAX_BINS and bins % 2 == 0 else 1
    kept = cell.curves[:, every - 1 :: every]
    step = float(kept.max() - kept.min()) / _CURVE_LEVELS or 1.0
    whole = np.rint(kept / step).astype(np.int64)
    return {"step": step, "every": every, "deltas": np.diff(whole, axis=1, prepend=0).tolist()}


def _estimate_as_json(estimate: Estimate) -> list[float | None]:
    return [None if each is None else _round(each) for each in (estimate.value, estimate.low, estimate.high)]


def _curve_as_json(curve: Curve) -> list[list[float] | None]:
    return [None if each is None else _rounded(each) for each in (curve.mean, curve.low, curve.high)]


def _rounded(values: Sequence[float] | NDArray[np.float64]) -> list[float]:
    return [_round(float(each)) for each in values]


def _round(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _without_tex(text: str) -> str:
    for mark, letter in _TEX_LETTERS.items():
        text = text.replace(mark, letter)
    text = re.sub(r"\^\{([^{}]*(?:\{[^{}]*\})?[^{}]*)\}", r"^(\1)", text)
    return re.sub(r"[{}\\_]", "", text)
