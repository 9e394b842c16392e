"""The figures of a study, for print and for the page: performance against the cycle time, and learning curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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
from cycletime.studies.scores import MEASURES, RunScore
from cycletime.tasks.references import NOTHING, SCRIPTED, Reference, references

_BELOW_NOTHING = (
    f" Scores under '{NOTHING}' are of learning: early episodes explore, which can earn less than standing still."
)
_REFERENCE_COLOURS = {NOTHING: "#8c959f", SCRIPTED: "#8250df"}


def study_figures(summary: Summary, stem: str, measure: str, command: str) -> list[FigureSpec]:
    """The figures of a panel that has scores; their names begin with `stem`, and `command` makes them again."""
    cells = _cells(summary, stem)
    figures = [_performance(summary, stem, cells, measure, command)]
    if any(cell.curves is not None for cell in cells.values()):
        figures.append(_curves(summary, stem, cells, command))
    return figures


def reference_lines(task: str, dts: Sequence[Duration]) -> list[LineSpec]:
    """Reference scores without learning, as lines against the cycle time; none of a task without references."""
    return [
        LineSpec(
            name,
            (),
            _REFERENCE_COLOURS[name],
            DASHES[3],
            values=tuple(None if each is None else each.mean for each in found),
        )
        for name, found in references_by_name(task, dts).items()
    ]


def references_by_name(task: str, dts: Sequence[Duration]) -> dict[str, list[Reference | None]]:
    known = [{each.name: each for each in references(task, dt)} for dt in dts]
    names = [name for name in (NOTHING, SCRIPTED) if any(name in each for each in known)]
    return {name: [each.get(name) for each in known] for name in names}


def _is_below_nothing(summary: Summary) -> bool:
    nothing = dict(
        zip(summary.panel.dts, references_by_name(summary.panel.task, summary.panel.dts).get(NOTHING, ()), strict=False)
    )
    return any(
        found is not None and (reference := nothing.get(dt)) is not None and found.value < reference.mean
        for (_, dt), found in summary.estimates.items()
    )


def _performance(
    summary: Summary, stem: str, cells: Mapping[str, FigureCell], measure: str, command: str
) -> FigureSpec:
    panel, measured = summary.panel, MEASURES[measure][1]
    lines = [_line(summary, stem, cells, rule, panel.dts) for rule in panel.rules]
    lines += reference_lines(panel.task, panel.dts) if measure in ("average", "last-tenth") else []
    below = _BELOW_NOTHING if measure == "average" and _is_below_nothing(summary) else ""
    with_intervals = any(each and each.low is not None for each in summary.estimates.values())
    return FigureSpec(
        name=f"{stem}-performance",
        title=f"{panel.title}: {measured} against the cycle time",
        kind="points",
        panels=(PanelSpec("", tuple(lines), tuple(float(dt) * 1e3 for dt in panel.dts)),),
        cells=cells,
        caption=f"Means ± one standard error over seeds, n = {_seeds_range(cells.values())}; interquartile means with "
        f"95 % bootstrap.{below} Data: {panel.provenance}.",
        print_caption=f"{summary.statistics.words if with_intervals else 'no intervals from 1 run'}; data: "
        f"{panel.provenance}",
        command=command,
        y_label=measured,
        x_label=CYCLE_TIME,
        bars=True,
    )


def _curves(summary: Summary, stem: str, cells: Mapping[str, FigureCell], command: str) -> FigureSpec:
    panel = summary.panel
    every = [
        PanelSpec(
            dt_text(dt),
            tuple(
                _line(summary, stem, cells, rule, [dt]) for rule in panel.rules if _cell_name(stem, (rule, dt)) in cells
            ),
        )
        for dt in panel.dts
    ]
    bands = any(len(cell.scores) > 1 for cell in cells.values())
    return FigureSpec(
        name=f"{stem}-curves",
        title=f"{panel.title}: learning curves",
        kind="curves",
        panels=tuple(each for each in every if each.lines),
        cells=cells,
        caption="Episodic return in equal bins of environment steps: means ± one standard error or interquartile "
        f"means with 95 % bootstrap, n = {_seeds_range(cells.values())} seeds. Data: {panel.provenance}.",
        print_caption=f"{'means, bands ± one standard error' if bands else 'no bands from 1 run'}; "
        f"data: {panel.provenance}",
        command=command,
        y_label=RETURN,
        step_s=panel_env_dt_s(panel),
        pack=stem,
    )


def _line(summary: Summary, stem: str, cells: Mapping[str, FigureCell], rule: str, dts: Sequence[Duration]) -> LineSpec:
    index, panel = summary.panel.rules.index(rule), summary.panel
    names = [_cell_name(stem, (rule, dt)) for dt in panel.dts]
    drawn = [cells[name] for name in names if name in cells]
    return LineSpec(
        rule,
        tuple(name if (name := _cell_name(stem, (rule, dt))) in cells else None for dt in dts),
        COLOURS[index % len(COLOURS)],
        DASHES[index % len(DASHES)],
        MARKERS[index % len(MARKERS)],
        note=f"n = {_seeds_range(drawn)} seed{'' if {len(cell.scores) for cell in drawn} == {1} else 's'}"
        if drawn
        else "",
    )


def _cells(summary: Summary, stem: str) -> dict[str, FigureCell]:
    """By name, the cells that have scores; rules that share runs share them."""
    found = {}
    for key, runs in summary.panel.cells.items():
        scored = [run for run in runs if run.score is not None]
        if scored:
            scores = summary.panel.scores(*key)
            found[_cell_name(stem, key)] = FigureCell(
                scores, _stacked(scored), scored[0].spec.env_steps, summary.estimates[key]
            )
    return found


def _stacked(runs: list[RunScore]) -> np.ndarray | None:
    curves = [run.means for run in runs if run.means is not None and np.isfinite(run.means).all()]
    return np.stack(curves) if curves else None


def _cell_name(stem: str, key: CellKey) -> str:
    return f"{stem}/{key[0]}/{key[1]}"


def _seeds_range(cells: Iterable[FigureCell]) -> str:
    return range_text([len(cell.scores) for cell in cells])
