"""The page of a study: what its report says, with interactive figures."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from cycletime.duration import Duration
from cycletime.reports.answer import Answer
from cycletime.reports.figure_style import COLOURS, DASHES
from cycletime.reports.formatting import dt_text
from cycletime.reports.output import answer_sections as answer_parts
from cycletime.reports.page.document import Page, Section, calculator_html, figure_html
from cycletime.reports.page.figures import CYCLE_TIME, FigureCell, FigureData, FigureLine, PageFigure, PagePanel
from cycletime.reports.page.html import bullet_list, code_block, details, html_table, table_with_notes
from cycletime.reports.page.values import UsedValues, reference_lines, reference_table, settings_table, values_table
from cycletime.reports.report import MAX_DRAWN, Report
from cycletime.reports.summary import CellKey, Summary, panel_env_dt_s
from cycletime.reports.tables import summary_table
from cycletime.studies.scores import MEASURES, Panel, RunScore
from cycletime.studies.spec_file import study_table


def study_page(report: Report) -> Page:
    """The page of a study, finished or not."""
    data = FigureData()
    stems, drawn = report.stems(), report.drawn()
    for index in sorted(drawn):
        _add_figures(data, report, report.summaries[index], stems[index])
    parts = [
        Section("figures", "Figures", _figures(report, data)),
        Section("values", "Which values were compared", _values(report)),
        Section("tables", "Tables and verdicts", _tables(report)),
        Section("calculator", "Carry your own values", _calculator(report)),
        Section("settings", "All settings", _settings(report)),
        Section("origin", "Where this comes from", _origin(report)),
    ]
    return Page(
        title=report.name,
        about=f"A study with cycletime: {report.completeness[0]}",
        answer=tuple(_answer(report)) or report.completeness[1:],
        sections=tuple(part for part in parts if part.content),
        data=data,
    )


def _answer(report: Report) -> Iterable[str]:
    """What rules change, then the best cycle times: the first sentence is the one to remember."""
    several = len(report.summaries) > 1
    drawn = report.drawn()
    for index, (summary, answer) in enumerate(zip(report.summaries, report.answers, strict=True)):
        if index in drawn:
            where = f"{summary.panel.title}: " if several else ""
            yield from (f"{where}{sentence}" for sentence in (*answer.against, *answer.best))
    for choices in report.choices:
        yield from choices.sentences()
    yield from report.completeness[1:]


def _add_figures(data: FigureData, report: Report, summary: Summary, stem: str) -> None:
    panel, cells = summary.panel, _cells(summary.panel, stem)
    where = f"Data: {panel.where}."
    seeds = sorted({len(cell.scores) for cell in cells.values()})
    n = f"n = {seeds[0]}" if len(seeds) == 1 else f"n = {seeds[0]} to {seeds[-1]}"
    milliseconds = tuple(float(dt) * 1e3 for dt in panel.dts)
    lines = [
        FigureLine(rule, tuple(_cell_name_if_shown(cells, stem, (rule, dt)) for dt in panel.dts), *_line_look(index))
        for index, rule in enumerate(panel.rules)
    ]
    lines += reference_lines(panel.task, panel.dts) if report.scores.measure in ("average", "last-tenth") else []
    performance = PageFigure(
        name=f"{stem}-performance",
        title=f"{panel.title}: {MEASURES[report.scores.measure][1]} against the cycle time",
        kind="points",
        panels=(PagePanel("", tuple(lines), milliseconds),),
        caption=f"Means ± one standard error over seeds, {n}; interquartile means with 95 % bootstrap. {where}",
        command=report.command,
        y_label=MEASURES[report.scores.measure][1],
        x_label=CYCLE_TIME,
    )
    data.add(performance, cells)
    if any(cell.curves is not None for cell in cells.values()):
        data.add(_curves(report, panel, stem, cells, f"{n} seeds. {where}"), cells)


def _curves(report: Report, panel: Panel, stem: str, cells: dict[str, FigureCell], where: str) -> PageFigure:
    panels = []
    for dt in panel.dts:
        lines = [
            FigureLine(rule, (name,), *_line_look(index))
            for index, rule in enumerate(panel.rules)
            if (name := _cell_name_if_shown(cells, stem, (rule, dt))) is not None
        ]
        if lines:
            panels.append(PagePanel(dt_text(dt), tuple(lines)))
    return PageFigure(
        name=f"{stem}-curves",
        title=f"{panel.title}: learning curves",
        kind="curves",
        panels=tuple(panels),
        caption=f"Episodic return in equal bins of environment steps: means ± one standard error or interquartile "
        f"means with 95 % bootstrap, {where}",
        command=report.command,
        y_label="episodic return",
        step_s=panel_env_dt_s(panel),
        pack=stem,
    )


def _cells(panel: Panel, stem: str) -> dict[str, FigureCell]:
    """By name, the cells that have scores; rules that share runs share them."""
    found = {}
    for place, runs in panel.cells.items():
        scored = [run for run in runs if run.score is not None]
        if scored:
            found[_cell_name(stem, place)] = FigureCell(
                panel.scores(*place), _stacked(scored), scored[0].spec.env_steps
            )
    return found


def _stacked(runs: list[RunScore]) -> np.ndarray | None:
    curves = [run.means for run in runs if run.means is not None and np.isfinite(run.means).all()]
    return np.stack(curves) if curves else None


def _cell_name(stem: str, place: CellKey) -> str:
    return f"{stem}/{place[0]}/{place[1]}"


def _cell_name_if_shown(cells: dict[str, FigureCell], stem: str, place: CellKey) -> str | None:
    return name if (name := _cell_name(stem, place)) in cells else None


def _line_look(index: int) -> tuple[str, str]:
    return COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)]


def _figures(report: Report, data: FigureData) -> str:
    told = "".join(map(figure_html, data.figures))
    if data.figures and len(report.drawn()) < len(report.summaries):
        told += f"<p>Figures are of the {MAX_DRAWN} best choices of values for each task and algorithm.</p>"
    return told


def _values(report: Report) -> str:
    parts = []
    for summary in report.summaries:
        panel = summary.panel
        used = [
            UsedValues(rule, dt, panel.cells[rule, dt][0].spec.as_json()["agent"])
            for rule in panel.rules
            for dt in panel.dts
        ]
        parts.append(
            values_table(panel.algorithm, used, f"{panel.title}: values, in brackets what they mean in seconds")
        )
        parts.append(reference_table(panel.task, panel.dts))
    return "".join(dict.fromkeys(parts))


def _tables(report: Report) -> str:
    parts = []
    for summary, answer in zip(report.summaries, report.answers, strict=True):
        parts += [table_with_notes(summary_table(summary, report.scores.measure)), _answer_details(answer)]
    for choices in report.choices:
        parts += [table_with_notes(choices.table(report.scores.measure)), bullet_list(choices.sentences())]
    if report.saving_sentences:
        parts += ["<h3>What a rule saves</h3>", bullet_list(report.saving_sentences)]
    return "".join(parts)


def _answer_details(answer: Answer) -> str:
    return "".join(details(heading, bullet_list(sentences)) for heading, sentences in answer_parts(answer))


def _calculator(report: Report) -> str:
    for run in report.scores.runs():
        if run.spec.origin and run.spec.algorithm in ("ppo", "sac"):
            tuned_at = Duration(run.spec.origin["tuned_at"])
            # Where nothing is carried, there is nothing to be seen.
            to = min((dt for dt in report.scores.folder.study.dts if dt != tuned_at), default=tuned_at * 2)
            return calculator_html(run.spec.algorithm, str(tuned_at), run.spec.origin["tuned"], str(to))
    return calculator_html()


def _settings(report: Report) -> str:
    agents: dict[str, list[dict[str, Any]]] = {}
    for run in report.scores.runs():
        agents.setdefault(run.spec.algorithm, []).append(run.spec.as_json()["agent"])
    told = "".join(settings_table(every, f"{name}: all settings of the agent") for name, every in agents.items())
    study = json.dumps(study_table(report.scores.folder.study), indent=1, default=str)
    return told + details("The study as it was planned", code_block(study))


def _origin(report: Report) -> str:
    rows = [(f"{count:,}", told) for told, count in report.machines()]
    machines = html_table(("runs", "code and machine"), rows, "What computed the runs") if rows else ""
    return code_block(report.command) + bullet_list(report.completeness) + machines
