"""Words as HTML: paragraphs, lists and tables, with everything escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from cycletime.reports.formatting import TextTable

_VERDICT_CLASSES = {
    "better": "good",
    "confirmed": "good",
    "worse": "bad",
    "refuted": "bad",
    "undecided": "open",
    "not decided": "open",
}
_VERDICT_AT_END = re.compile(rf" ({'|'.join(_VERDICT_CLASSES)}|same runs)$")


def paragraphs(sentences: Iterable[str]) -> str:
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)


def bullet_list(sentences: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(each)}</li>' for each in sentences)}</ul>" if sentences else ""


def html_table(table: TextTable) -> str:
    """A table whose first column names its rows, in a box of its own, which scrolls where the page is narrow."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.header)
    foot = "" if table.last is None else f"<tfoot>{_row(table.last)}</tfoot>"
    caption = f"<caption>{escape(table.title)}</caption>" if table.title else ""
    body = "".join(map(_row, table.rows))
    label = escape(table.title or " ".join(table.header))
    notes = f'<div class="notes">{bullet_list(table.notes)}</div>' if table.notes else ""
    return (
        f'<div class="scrolls" tabindex="0" role="region" aria-label="{label}"><table>{caption}'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>{foot}</table></div>{notes}"
    )


def details(title: str, content: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


def code_block(text: str) -> str:
    return f'<div class="copies"><pre tabindex="0"><code>{escape(text)}</code></pre></div>'


def verdict_badge(text: str) -> str:
    return f'<span class="verdict {_VERDICT_CLASSES.get(text, "none")}">{escape(text)}</span>'


def _row(cells: Sequence[str]) -> str:
    first, *rest = cells
    return f'<tr><th scope="row">{escape(first)}</th>{"".join(f"<td>{_cell(cell)}</td>" for cell in rest)}</tr>'


def _cell(text: str) -> str:
    found = _VERDICT_AT_END.search(text)
    return escape(text) if found is None else f"{escape(text[: found.start()])} {verdict_badge(found[1])}"
