"""A report in the terminal, and as files.

report.html   the page to look at: the answer, interactive figures, tables, a calculator
report.md     tables, text and figures
report.json   the same for programs
scores.csv    a row for each run
*.png, *.svg  the figures
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from itertools import product
from pathlib import Path
from textwrap import fill
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from cycletime.errors import printable
from cycletime.reports.formatting import TextTable, estimate_as_json
from cycletime.reports.page.document import PAGE_FILE, render, write_text
from cycletime.reports.page.study_page import study_page
from cycletime.reports.report import FEW_DRAWN, Report
from cycletime.reports.summary import BestCycleTime, CellKey, Summary
from cycletime.reports.tables import RankedChoices
from cycletime.statistics import Comparison, iqm
from cycletime.studies.study import StudyResults
from cycletime.training.atomic_files import make_folder, write_whole

FORMAT = 1


def write_report(report: Report, out: Path) -> None:
    """Write all files of a report into a folder, which is made if it is not there."""
    from pyarrow.csv import write_csv

    from cycletime.reports.drawing import draw_figure, save_figures

    make_folder(out)
    names = list[list[str]]()
    for figures in report.figures():
        save_figures({figure.name: draw_figure(figure) for figure in figures}, out, ("svg", "png"))
        names.append([f"{figure.name}.png" for figure in figures])
    scores = BytesIO()
    write_csv(StudyResults(report.scores.folder).scores(), scores)
    write_whole(out / "scores.csv", lambda file: file.write_bytes(scores.getvalue()))
    write_text(out / "report.json", json.dumps(report_as_json(report), indent=1) + "\n")
    write_text(out / "report.md", report_as_markdown(report, names))
    write_text(out / PAGE_FILE, render(study_page(report)))


def report_as_json(report: Report) -> dict[str, Any]:
    counts = report.scores.counts()
    return {
        "format": FORMAT,
        "study": report.name,
        "measure": report.scores.measure,
        "statistic": "iqm" if report.statistics.iqm else "mean",
        "interval": report.statistics.interval,
        "runs": {"planned": counts.total(), **dict(sorted(counts.items()))},
        "panels": [
            {
                **_panel_as_json(summary),
                "text": {"best": answer.best, "against": answer.against, "undecided": answer.undecided},
            }
            for summary, answer in zip(report.summaries, report.answers, strict=True)
        ],
        "choices": [_choices_as_json(choices) for choices in report.choices],
        "text": report.completeness,
        "command": report.command,
        "made_by": [{"runs": count, "machine": machine} for machine, count in report.machines()],
    }


def _panel_as_json(summary: Summary) -> dict[str, Any]:
    panel = summary.panel
    return {
        "task": panel.task,
        "algorithm": panel.algorithm,
        "hyperparameters": dict(panel.hyperparameters),
        "where": panel.provenance,
        "rules": panel.rules,
        "dts_s": [float(dt) for dt in panel.dts],
        "cells": [_cell_as_json(summary, (rule, dt)) for dt in panel.dts for rule in panel.rules],
        "frequency_averaged": {rule: estimate_as_json(each) for rule, each in summary.averages.items()},
        "advantage": {rule: estimate_as_json(each) for rule, each in summary.advantages.items()},
        "best": {rule: _best_as_json(each) for rule, each in summary.best.items()},
    }


def _choices_as_json(choices: RankedChoices) -> dict[str, Any]:
    first, (rule, dt) = choices.panels[0], choices.place
    return {
        "task": first.task,
        "algorithm": first.algorithm,
        "where": first.provenance,
        "rule": rule,
        "dt_s": float(dt),
        "ranking": [
            {
                "hyperparameters": dict(panel.hyperparameters),
                "scores": panel.scores(rule, dt),
                "estimate": estimate_as_json(estimate),
                "verdict": choices.verdict(index) or None,
                "comparison": _comparison_as_json(choices.against.get(index)),
            }
            for index, (panel, estimate) in enumerate(zip(choices.panels, choices.estimates, strict=True))
        ],
        "text": choices.sentences(),
    }


def _cell_as_json(summary: Summary, place: CellKey) -> dict[str, Any]:
    rule, dt = place
    scores = summary.panel.scores(rule, dt)
    counts = summary.panel.counts(place)
    return {
        "rule": rule,
        "dt_s": float(dt),
        "runs": {"planned": counts.total(), **dict(sorted(counts.items()))},
        "scores": scores,
        "estimate": estimate_as_json(summary.estimates[place]),
        "iqm": estimate_as_json(iqm(scores) if scores else None),
        "verdict": summary.verdict(place) or None,
        "comparison": _comparison_as_json(summary.comparisons.get(place)),
    }


def _comparison_as_json(comparison: Comparison | None) -> dict[str, Any] | None:
    if comparison is None:
        return None
    return {
        "difference": estimate_as_json(comparison.difference),
        "p_value": comparison.p_value,
        "comparisons": comparison.comparisons,
        "verdict": comparison.verdict,
    }


def _best_as_json(best: BestCycleTime | None) -> dict[str, Any] | None:
    if best is None:
        return None
    return {
        "dt_s": float(best.dt),
        "mean": estimate_as_json(best.mean),
        "runner_up_dt_s": None if best.runner_up is None else float(best.runner_up),
        "undecided_dts_s": [float(dt) for dt in best.undecided],
        "against": {dt.shortest: _comparison_as_json(each) for dt, each in best.against.items()},
    }


def report_as_markdown(report: Report, figures: Sequence[Sequence[str]] = ()) -> str:
    lines = [f"# {markdown_text(report.name)}", "", *_list_lines(report.completeness)]
    for index, (words, sections) in enumerate(report.tables()):
        table = _escaped(words)
        lines += ["", f"## {table.title}", "", *table.markdown(), "", *_list_lines(table.notes)]
        for heading, sentences in sections:
            lines += ["", *([f"**{heading}**", ""] if heading else []), *_list_lines(sentences)]
        for name in figures[index] if index < len(figures) else ():
            kind = "learning curves" if name.endswith("curves.png") else "performance against cycle time"
            lines += ["", f"![{table.title}: {kind}]({name})"]
    if any(figures) and not all(figures):
        lines += ["", FEW_DRAWN]
    lines += ["", "## Where this comes from", ""]
    if report.command:
        fence = "`" * (1 + max(map(len, re.findall("`+", report.command)), default=0))
        lines.append(f"- The report: {fence}{_one_line(report.command)}{fence}")
    lines += _list_lines([f"{count:,} runs: {machine}" for machine, count in report.machines()])
    return "\n".join(lines) + "\n"


_MARKDOWN = re.compile(r"[*`~$|\\]|\](?=[(:\[])|<(?=[\w/!?])|&(?=[\w#])|(?<!\w)_|_(?!\w)")
"""What means more to Markdown than itself: emphasis, code, cells, links, tags."""


def markdown_text(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return _MARKDOWN.sub(lambda found: f"\\{found[0]}", _one_line(text))


def _one_line(text: str) -> str:
    return printable(text.replace("\n", " "))


def _escaped(table: TextTable) -> TextTable:
    header, *rows = [list(map(markdown_text, row)) for row in (table.header, *table.rows)]
    last = None if table.last is None else list(map(markdown_text, table.last))
    return replace(table, header=header, rows=rows, title=markdown_text(table.title), last=last)


def _list_lines(sentences: Sequence[str]) -> list[str]:
    return ["- " + re.sub(r"^\s*(?=[-+>#])", r"\\", markdown_text(sentence)) for sentence in sentences]


_COLOURS = {"better": "green", "worse": "red", "undecided": "yellow", "same runs": "dim"}


def print_report(report: Report, console: Console) -> None:
    def tell(sentences: Sequence[str], style: str = "") -> None:
        for sentence in sentences:
            wrapped = fill(sentence, console.width, initial_indent="  ", subsequent_indent="  ")
            console.print(Text(wrapped, style), soft_wrap=True)

    console.print(Text(report.name, "bold"))
    tell(report.completeness)
    for table, sections in report.tables():
        console.print()
        console.print(_rich_table(table))
        tell(table.notes, "dim")
        for heading, sentences in sections:
            if heading:
                console.print(Text(heading, "bold"))
            tell(sentences)


def _rich_table(words: TextTable) -> Table:
    table = Table(title=escape(words.title), title_justify="left", title_style="bold")
    for index, name in enumerate(words.header):
        table.add_column(escape(name), justify="left" if index == 0 else "right", no_wrap=index == 0)
    for row in words.rows:
        cells = [Text(cell) for cell in row]
        for cell, (verdict, colour) in product(cells, _COLOURS.items()):
            cell.highlight_regex(f" {verdict}$", colour)
        table.add_row(*cells)
    if words.last is not None:
        table.add_section()
        table.add_row(*(Text(cell) for cell in words.last))
    return table
