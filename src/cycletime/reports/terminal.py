"""A report in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from cycletime.reports.markdown import sections
from cycletime.reports.report import Report
from cycletime.reports.tables import Words, table_of

_COLOURS = {"better": "green", "worse": "red", "undecided": "yellow", "same runs": "dim"}


def print_report(report: Report, console: Console) -> None:
    """Print tables and text."""
    console.print(Text(report.name, "bold"))
    _print_sentences(console, report.completeness)
    for summary, answer in zip(report.summaries, report.answers, strict=True):
        words = table_of(summary, report.scores.measure)
        console.print()
        console.print(_table(words))
        _print_sentences(console, words.notes, "dim")
        for heading, sentences in sections(answer):
            console.print(Text(heading, "bold"))
            _print_sentences(console, sentences)
    for choices in report.choices:
        words = choices.table(report.scores.measure)
        console.print()
        console.print(_table(words))
        _print_sentences(console, words.notes, "dim")
        _print_sentences(console, choices.sentences())
    if report.saving_sentences:
        console.print()
        console.print(Text("What a rule saves", "bold"))
        _print_sentences(console, report.saving_sentences)


def _table(words: Words) -> Table:
    table = Table(title=escape(words.title), title_justify="left", title_style="bold")
    for index, name in enumerate(words.header):
        table.add_column(escape(name), justify="left" if index == 0 else "right")
    for row in words.rows:
        table.add_row(*(_coloured(cell) for cell in row))
    if words.last is not None:
        table.add_section()
        table.add_row(*(Text(cell) for cell in words.last))
    return table


def _coloured(cell: str) -> Text:
    """A cell with its verdict in a colour."""
    text = Text(cell)
    for verdict, colour in _COLOURS.items():
        text.highlight_regex(f" {verdict}$", colour)
    return text


def _print_sentences(console: Console, sentences: Sequence[str], style: str = "") -> None:
    for sentence in sentences:
        wrapped = fill(sentence, console.width, initial_indent="  ", subsequent_indent="  ")
        console.print(Text(wrapped, style), soft_wrap=True)
