"""The figures of a study, for print and for the page: performance against the cycle time, and learning curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from cycletime.duration import Duration
from cycletime.reports.figure import (
    COLOURS,
    CYCLE_TIME,
    DASHES,
    MARKERS,
    RETURN,
    FigureCell,
    FigureSpec,
    LineSpec,
    PanelSpec,
)
from cycletime.reports.formatting import dt_text, range_text
from cycletime.reports.summary import CellKey, Summary, panel_env_dt_s
from cycletime.studies.scores import MEASURES, Panel
from cycletime.tasks.references import NOTHING, SCRIPTED, Reference, references

_BELOW_NOTHING = (
    f" Scores under '{NOTHING}' are of learning: early episodes explore, which can earn less than standing still."
)
_REFERENCE_COLOURS = {NOTHING: "#8c959f", SCRIPTED: "#8250df"}


def study_figures(summary: Summary, stem: str, measure: str, command: str) -> list[FigureSpec]:
    """The figures of a panel that has scores; their names begin with `stem`, and `command` makes them again."""
    panel, measured = summary.panel, MEASURES[measure][1]
    names, cells = dict[CellKey, str](), dict[str, FigureCell]()
    for key, runs in panel.cells.items():
        if scored := [run for run in runs if run.score is not None]:
            curves = [run.means for run in scored if run.means is not None and np.isfinite(run.means).all()]
            stacked = np.stack(curves) if curves else None
            names[key] = f"{stem}/{key[0]}/{key[1]}"
            cells[names[key]] = FigureCell(
                panel.scores(*key), stacked, scored[0].spec.env_steps, summary.estimates[key]
            )
    n = _seeds_range(cells.values())
    lines = [_line(rule, [names.get((rule, dt)) for dt in panel.dts], panel, cells) for rule in panel.rules]
    references = reference_lines(panel.task, panel.dts) if measure in ("average", "last-tenth") else []
    below = _BELOW_NOTHING if measure == "average" and _is_below_nothing(summary) else ""
    with_intervals = any(each and each.low is not None for each in summary.estimates.values())
    performance = FigureSpec(
        name=f"{stem}-performance",
        title=f"{panel.title}: {measured} against the cycle time",
        kind="points",
        panels=(PanelSpec("", (*lines, *references), tuple(float(dt) * 1e3 for dt in panel.dts)),),
        cells=cells,
        caption=f"Means ± one standard error over seeds, n = {n}; interquartile means with 95 % bootstrap.{below} "
        f"Data: {panel.provenance}.",
        print_caption=f"{summary.statistics.words if with_intervals else 'no intervals from 1 run'}; data: "
        f"{panel.provenance}",
        y_label=measured,
        x_label=CYCLE_TIME,
        bars=True,
        command=command,
    )
    if all(cell.curves is None for cell in cells.values()):
        return [performance]
    by_dt = {
        dt: tuple(replace(line, cells=(names[line.name, dt],)) for line in lines if (line.name, dt) in names)
        for dt in panel.dts
    }
    bands = any(len(cell.scores) > 1 for cell in cells.values())
    return [
        performance,
        FigureSpec(
            name=f"{stem}-curves",
            title=f"{panel.title}: learning curves",
            kind="curves",
            panels=tuple(PanelSpec(dt_text(dt), drawn) for dt, drawn in by_dt.items() if drawn),
            caption="Episodic return in equal bins of environment steps: means ± one standard error or interquartile "
            f"means with 95 % bootstrap, n = {n} seeds. Data: {panel.provenance}.",
            print_caption=f"{'means, bands ± one standard error' if bands else 'no bands from 1 run'}; "
            f"data: {panel.provenance}",
            y_label=RETURN,
            step_s=panel_env_dt_s(panel),
            pack=stem,
            cells=cells,
            command=command,
        ),
    ]


def _line(rule: str, names: Sequence[str | None], panel: Panel, cells: Mapping[str, FigureCell]) -> LineSpec:
    index, drawn = panel.rules.index(rule), [cells[name] for name in names if name is not None]
    plural = "" if {len(cell.scores) for cell in drawn} == {1} else "s"
    note = f"n = {_seeds_range(drawn)} seed{plural}" if drawn else ""
    colour, dash, marker = COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)], MARKERS[index % len(MARKERS)]
    return LineSpec(rule, tuple(names), colour, dash, marker, note=note)


def _seeds_range(cells: Iterable[FigureCell]) -> str:
    return range_text([len(cell.scores) for cell in cells])


def reference_lines(task: str, dts: Sequence[Duration]) -> list[LineSpec]:
    """Reference scores without learning, as lines against the cycle time; none of a task without references."""
    known = references_by_name(task, dts).items()
    means = {name: tuple(None if each is None else each.mean for each in found) for name, found in known}
    return [LineSpec(name, (), _REFERENCE_COLOURS[name], DASHES[3], values=values) for name, values in means.items()]


def references_by_name(task: str, dts: Sequence[Duration]) -> dict[str, list[Reference | None]]:
    known = [{each.name: each for each in references(task, dt)} for dt in dts]
    names = [name for name in (NOTHING, SCRIPTED) if any(name in each for each in known)]
    return {name: [each.get(name) for each in known] for name in names}


def _is_below_nothing(summary: Summary) -> bool:
    known = {(dt, each.name): each.mean for dt in summary.panel.dts for each in references(summary.panel.task, dt)}
    found = {place: each.value for place, each in summary.estimates.items() if each is not None}
    return any(value < known.get((dt, NOTHING), value) for (_, dt), value in found.items())
