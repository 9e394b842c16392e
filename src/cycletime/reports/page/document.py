"""A page as one HTML file: its text, its data in compressed form, and the scripts and styles that show them."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from cycletime import __version__
from cycletime.libraries.calculator_data import calculator_data
from cycletime.reports.figure import CYCLE_TIME, FigureSpec
from cycletime.reports.page.figures import FigureData, plain_text
from cycletime.reports.page.html import code_block, details, paragraphs
from cycletime.training.atomic_files import write_whole


def calculator_html(
    algorithm: str = "ppo", dt: str = "16ms", values: Mapping[str, Any] | None = None, to: str = "4ms"
) -> str:
    """The place of the calculator, with what it begins with; values that are left out are the algorithm's defaults."""
    texts = {name: str(value) for name, value in (values or {}).items() if value is not None}
    start = json.dumps({"algorithm": algorithm, "from": dt, "to": to, "values": texts})
    return (
        f'<div class="calculator" data-start="{escape(start)}"><p class="notice">The calculator needs JavaScript; '
        "<code>cycletime transfer</code> does the same.</p></div>"
    )


_BLANK_IMAGE = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
"""A film takes its room before it is shown."""
PAGE_FILE = "report.html"
SCRIPTS = ("uplot.min.js", "numbers.js", "rules.js", "libraries.js", "calculator.js", "plot.js", "chart.js", "page.js")
"""In the order in which they need each other."""
STYLES = ("uplot.min.css", "theme.css", "page.css", "chart.css", "calculator.css")
_CONTENT_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
"""What the browser may load: nothing from anywhere."""


@dataclass(frozen=True)
class Section:
    anchor: str
    """Also its name in the bar at the top."""
    title: str
    content: str


@dataclass(frozen=True)
class Film:
    title: str
    caption: str
    content: bytes
    """A GIF."""


@dataclass(frozen=True)
class Page:
    title: str
    about: str
    answer: tuple[str, ...]
    """In plain words: the first is the one to remember."""
    sections: tuple[Section, ...]
    data: FigureData = field(default_factory=FigureData)
    """Its first figure stands beside the answer, on the first screen."""
    films: tuple[Film, ...] = ()
    """In the order of their places in the sections."""


def render(page: Page) -> str:
    """The page as HTML. The same page gives the same bytes."""
    first, *others = page.answer or ("There is nothing to tell yet.",)
    links = "".join(f'<a href="#{each.anchor}">{escape(each.anchor.capitalize())}</a>' for each in page.sections)
    sections = "".join(
        f'<section id="{each.anchor}" aria-labelledby="{each.anchor}-title"><h2 id="{each.anchor}-title">'
        f"{escape(each.title)}</h2>{each.content}</section>"
        for each in page.sections
    )
    data = page.data.as_json()
    lead_figure = figure_html(page.data.figures[0]) if page.data.figures else ""
    blocks = {
        # JSON must not end the script that it stands in.
        **({"lead": _json(page.data.lead(data)).replace("</", "<\\/")} if lead_figure else {}),
        "main": _compressed({**data, "rules": calculator_data()}),
        **{f"seeds-{pack}": _compressed(page.data.seeds(pack)) for pack in page.data.packs},
        **{f"film-{index}": b64encode(film.content).decode() for index, film in enumerate(page.films)},
    }
    # The browser keeps them as text until a script asks for them.
    kept = (f'<script type="text/plain" id="data-{name}">{each}</script>\n' for name, each in blocks.items())
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_CONTENT_POLICY}">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="cycletime {__version__}">
<title>{escape(page.title)}</title>
<style>{"".join(map(asset, STYLES))}</style>
</head>
<body>
<a class="skip" href="#answer">To the answer</a>
<nav class="bar" aria-label="Parts of this page"><a href="#answer">Answer</a>{links}
<button type="button" id="theme">Dark</button></nav>
<main>
<header id="answer"><p class="about">{escape(page.about)}</p><h1>{escape(page.title)}</h1>
<p class="lead">{escape(first)}</p>{lead_figure}{paragraphs(others)}
<noscript><p class="notice">Figures and the calculator need JavaScript,
which is switched off here; words and tables are complete without it.</p></noscript></header>
{sections}
</main>
<footer><p>Made by cycletime {__version__}. This page is one file: it loads nothing, and sends nothing.</p></footer>
{"".join(kept)}
<script>{"".join(map(asset, SCRIPTS))}</script>
</body>
</html>
"""


def write_text(path: Path, text: str) -> None:
    made = text.encode(errors="backslashreplace")  # the command may name a folder that is not UTF-8
    write_whole(path, lambda file: file.write_bytes(made))


def asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")


def figure_html(figure: FigureSpec) -> str:
    marks = " data-marks" if figure.x_label == CYCLE_TIME else ""  # shows the calculator's cycle time too
    name, title = escape(figure.name), escape(plain_text(figure.title))
    return (
        f'<figure class="chart" id="{name}" data-figure="{name}"{marks}><h3>{title}</h3>'
        f"<div class='canvas' aria-busy='true'></div><figcaption>{escape(figure.caption)}</figcaption>"
        f"{details('The command that makes it again', code_block(figure.command))}</figure>"
    )


def films_html(films: Sequence[Film]) -> str:
    figures = "".join(
        f'<figure class="film"><img alt="{escape(film.title)}" src="{_BLANK_IMAGE}" data-film="{index}" width="250" '
        'height="250">'
        f"<figcaption><strong>{escape(film.title)}</strong><br>{escape(film.caption)}</figcaption></figure>"
        for index, film in enumerate(films)
    )
    return f'<div class="films">{figures}</div>'


def _json(data: object) -> str:
    return json.dumps(data, separators=(",", ":"), allow_nan=False)


def _compressed(data: object) -> str:
    return b64encode(gzip.compress(_json(data).encode(), mtime=0)).decode()
