"""The paper's figures as data that a page draws: for each way of drawing on paper, what it shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from cycletime.duration import Duration
from cycletime.paper.claims.sources import Data
from cycletime.paper.figures import FIGURES, missing_figures
from cycletime.paper.figures.against_batch_time import batch_time_s, draw_against_batch_time
from cycletime.paper.figures.against_dt import draw_against_dt
from cycletime.paper.figures.against_gamma import draw_against_gamma
from cycletime.paper.figures.caption import caption
from cycletime.paper.figures.curves import draw_curves, draw_curves_by, split_by
from cycletime.paper.figures.panels import FigurePanel, Runs
from cycletime.paper.figures.released_code import WAYS, draw_released_code, way_of
from cycletime.paper.figures.style import COLOURS as DT_COLOURS
from cycletime.paper.figures.style import PERFORMANCE, dts_of
from cycletime.paper.outcome import OutcomeCell
from cycletime.reports.page.figures import CYCLE_TIME, FigureData, Line, PageFigure, PagePanel, ShownCell
from cycletime.reports.page.references import reference_lines
from cycletime.reports.style import COLOURS, DASHES
from cycletime.reports.words import span

_LETTERS = {r"\gamma": "\N{GREEK SMALL LETTER GAMMA}", r"\lambda": "λ", r"\delta t": "δt", r"\,": " "}
_RULES = {"dt-aware": 0, "baseline": 1, "tuned": 2, "scaled": 3, "constant": 4}
"""The colour of a rule, the same in all figures."""


def add_paper_figures(page: FigureData, data: Data, only: Sequence[str] = ()) -> None:
    """All figures that there is data for, or some: what the rule is worth first, then the others in their order."""
    missing = missing_figures(data)
    for stem in only or ("rule", *(stem for stem in FIGURES if stem != "rule")):
        if stem not in missing:
            drawing = FIGURES[stem]
            panels = [part.panel(data) for part in drawing.parts]
            page.add(*_figure(stem, drawing.title, drawing.draw, [panel for panel in panels if panel.runs]))


def _plain(text: str) -> str:
    """A title without the marks of TeX."""
    for mark, letter in _LETTERS.items():
        text = text.replace(mark, letter)
    return re.sub(r"[${}\\_^]|mathrm", "", text)


def _cell_name(runs: Runs, cell: OutcomeCell) -> str:
    """A name that no other cell has: its study, and its number there."""
    return f"{runs.outcome.name}/{runs.outcome.cells.index(cell)}"


def _shown(cells: Iterable[tuple[Runs, OutcomeCell]]) -> dict[str, ShownCell]:
    """Cells by name, of which at least one run has a score."""
    found = {}
    for runs, cell in cells:
        finite = np.isfinite(cell.scores)
        if finite.any():
            scores, curves = cell.scores[finite].tolist(), cell.curves[finite]
            found[_cell_name(runs, cell)] = ShownCell(scores, curves, runs.outcome.env_steps)
    return found


def _figure(
    stem: str, title: str, draw: Callable[..., Any], panels: Sequence[FigurePanel]
) -> tuple[PageFigure, dict[str, ShownCell]]:
    if isinstance(draw, partial) and draw.func is draw_curves_by:
        kind, name = draw.args
        panels, draw = split_by(kind, name, panels[0]), draw_curves
    is_curves = draw is draw_curves
    cells = _shown(_every(panels))
    told = [_PANELS[draw](panel, cells) for panel in panels]
    x_label = {draw_against_batch_time: "batch time (s)", draw_against_gamma: "discount"}.get(draw, CYCLE_TIME)
    common: dict[str, Any] = {
        "name": stem,
        "title": _plain(title),
        "panels": tuple(told),
        "caption": caption(panels),
        "command": f"cycletime paper figures {stem}",
    }
    if is_curves:
        step_s = float(panels[0].runs[0].env_dt)
        return PageFigure(**common, kind="curves", y_label="episodic return", step_s=step_s, pack=stem), cells
    is_logarithmic = draw not in (draw_released_code, draw_against_gamma)
    return PageFigure(
        **common,
        kind="points",
        y_label=PERFORMANCE,
        x_label="" if draw is draw_released_code else x_label,
        is_logarithmic=is_logarithmic,
        same_scale=draw is draw_against_batch_time,
    ), cells


def _every(panels: Iterable[FigurePanel]) -> list[tuple[Runs, OutcomeCell]]:
    return [(runs, cell) for panel in panels for runs in panel.runs for cell in runs.cells]


def _curves(panel: FigurePanel, cells: dict[str, ShownCell]) -> PagePanel:
    several = len(panel.runs) > 1
    lines = [
        Line(_line_name(runs, cell.dt, several=several), (name,), DT_COLOURS[cell.dt], dash)
        for runs, dash in zip(panel.runs, DASHES, strict=False)
        for cell in sorted(runs.cells, key=lambda cell: cell.dt)
        if (name := _cell_name(runs, cell)) in cells
    ]
    return PagePanel(_plain(panel.title), tuple(lines))


def _line_name(runs: Runs, dt: Duration, *, several: bool) -> str:
    return f"{span(dt)}, {_plain(runs.rule)}" if several else span(dt)


def _against_dt(panel: FigurePanel, cells: dict[str, ShownCell]) -> PagePanel:
    dts = dts_of(panel.runs)
    lines = []
    for index, (runs, dash) in enumerate(zip(panel.runs, DASHES, strict=False)):
        colour = DT_COLOURS[runs.start] if runs.start else _rule_colour(runs.rule, index)
        lines.append(Line(_plain(runs.rule), _places(runs, cells, dts, lambda cell: cell.dt), colour, dash))
    task = panel.runs[0].cells[0].labels["task"]
    return PagePanel(_plain(panel.title), (*lines, *reference_lines(task, dts)), tuple(float(dt) * 1e3 for dt in dts))


def _rule_colour(rule: str, index: int) -> str:
    known = next((place for name, place in _RULES.items() if rule.startswith(name)), index)
    return COLOURS[known % len(COLOURS)]


def _places(
    runs: Runs, cells: dict[str, ShownCell], places: Sequence[Any], place_of: Callable[[OutcomeCell], Any]
) -> tuple[str | None, ...]:
    """For each place the name of its cell; None where there is none with a score."""
    names = {place_of(cell): _cell_name(runs, cell) for cell in runs.cells}
    return tuple(name if (name := names.get(place)) in cells else None for place in places)


def _by_dt(place_of: Callable[[OutcomeCell], float]) -> Callable[[FigurePanel, dict[str, ShownCell]], PagePanel]:
    """Lines against something else, one for each cycle time of each rule."""

    def panel_of(panel: FigurePanel, cells: dict[str, ShownCell]) -> PagePanel:
        places = sorted({place_of(cell) for runs in panel.runs for cell in runs.cells})
        lines = []
        for runs, dash in zip(panel.runs, DASHES, strict=False):
            for dt in runs.dts:
                own = Runs(runs.rule, runs.outcome, runs.at(dt))
                name = _line_name(runs, dt, several=len(panel.runs) > 1)
                lines.append(Line(name, _places(own, cells, places, place_of), DT_COLOURS[dt], dash))
        return PagePanel(_plain(panel.title), tuple(lines), tuple(places))

    return panel_of


def _released_code(panel: FigurePanel, cells: dict[str, ShownCell]) -> PagePanel:
    lines: dict[tuple[Duration, str], dict[tuple[str, str], str]] = {}
    for runs in panel.runs:
        for cell in runs.cells:
            lines.setdefault((cell.dt, runs.rule), {})[way_of(cell)] = _cell_name(runs, cell)
    told = [
        Line(
            f"{span(dt)}, {rule}",
            tuple(name if (name := names.get(way)) in cells else None for way in WAYS),
            DT_COLOURS[dt],
            DASHES[0 if rule == "dt-aware" else 1],
        )
        for (dt, rule), names in sorted(lines.items())
    ]
    return PagePanel(panel.title, tuple(told), tuple(float(place) for place in range(len(WAYS))), tuple(WAYS.values()))


_PANELS: dict[Callable[..., Any], Callable[[FigurePanel, dict[str, ShownCell]], PagePanel]] = {
    draw_curves: _curves,
    draw_against_dt: _against_dt,
    draw_against_batch_time: _by_dt(batch_time_s),
    draw_against_gamma: _by_dt(lambda cell: float(cell.values["discount"])),
    draw_released_code: _released_code,
}
"""By the function that draws a panel on paper, the one that makes it data."""
