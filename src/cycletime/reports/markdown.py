"""A report as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from cycletime.reports.answer import Answer
from cycletime.reports.report import MOST_DRAWN, Report
from cycletime.reports.tables import Words, table_of


def as_markdown(report: Report, figures: Sequence[Sequence[str]] = ()) -> str:
    """The whole report, with figures by their names, for each panel in turn."""
    lines = [f"# {report.name}", "", *_list(report.completeness)]
    for index, (summary, answer) in enumerate(zip(report.summaries, report.answers, strict=True)):
        lines += ["", *_table(table_of(summary, report.scores.measure)), *_answer(answer)]
        for name in figures[index] if figures else ():
            lines += ["", f"![{summary.panel.title}: {_kind(name)}]({name})"]
    if any(figures) and not all(figures):
        lines += ["", f"Figures are of the {MOST_DRAWN} best choices of values for each task and algorithm."]
    for choices in report.choices:
        lines += ["", *_table(choices.table(report.scores.measure)), "", *_list(choices.sentences())]
    if report.saving_sentences:
        lines += ["", "## What a rule saves", "", *_list(report.saving_sentences)]
    lines += ["", "## Where this comes from", ""]
    if report.command:
        lines.append(f"- The report: `{report.command}`")
    lines += [f"- {count:,} runs: {told}" for told, count in report.machines()]
    return "\n".join(lines) + "\n"


def sections(answer: Answer) -> list[tuple[str, tuple[str, ...]]]:
    """The parts of an answer that have sentences, with their headings."""
    parts = [("Best cycle time", answer.best), ("Rules", answer.against), ("Not decided by the data", answer.undecided)]
    return [(heading, sentences) for heading, sentences in parts if sentences]


def _answer(answer: Answer) -> list[str]:
    lines = []
    for heading, sentences in sections(answer):
        lines += ["", f"**{heading}**", "", *_list(sentences)]
    return lines


def _table(words: Words) -> list[str]:
    last = () if words.last is None else (words.last,)
    rows = [words.header, tuple("---" for _ in words.header), *words.rows, *last]
    table = [f"| {' | '.join(row)} |" for row in rows]
    return [f"## {words.title}", "", *table, "", *_list(words.notes)]


def _list(sentences: Sequence[str]) -> list[str]:
    return [f"- {sentence}" for sentence in sentences]


def _kind(name: str) -> str:
    return "learning curves" if name.endswith("curves.png") else "performance against cycle time"
