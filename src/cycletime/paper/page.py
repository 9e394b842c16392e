"""What the results say, for people: the verdicts in words, the tables, and a page with all of it."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from cycletime.errors import InputError
from cycletime.paper.claims import CLAIMS, Claim, claims_as_json, judge
from cycletime.paper.claims.claim import Judged
from cycletime.paper.claims.sources import Data, NotRunError
from cycletime.paper.experiments import PARTS, scaled_down
from cycletime.paper.outcome import Outcome
from cycletime.reports.report import PAGE
from cycletime.runs.files import disk_errors, write_whole

if TYPE_CHECKING:
    from cycletime.paper.tables import Table

_COLUMNS, _INDENT = 80, "    "


def claims_in_words(data: Data) -> str:
    """All claims with their verdicts and what these hang on, in lines of 80 characters."""
    return "\n".join(_claim_in_words(claim, judge(data, claim)) for claim in CLAIMS)


def _claim_in_words(claim: Claim, found: Judged) -> str:
    title = f"{claim.number:>2}  {found.verdict}{label_of(found)}"
    below = [
        fill(text, _COLUMNS, initial_indent=_INDENT, subsequent_indent=_INDENT) for text in claim_told(claim, found)
    ]
    return "\n".join([title, *below]) + "\n"


def claim_told(claim: Claim, found: Judged) -> list[str]:
    """A claim's statement, and then what its verdict hangs on."""
    told = [claim.statement]
    if found.missing:
        told.append(f"Not run: {', '.join(found.missing)}.")
    if found.decisive is not None:
        told.append(f"{found.decisive}.")
    if found.with_plain_mean not in (None, found.verdict):
        told.append(f"By the plain mean over episodes: {found.with_plain_mean}.")
    return told


def label_of(found: Judged) -> str:
    """What a verdict must say of the runs that it rests on: that they are scaled down, or on a simulated robot."""
    robot = " (simulated robot)" if "simulated robot" in found.sources else ""
    return robot if found.scale is None else f"{robot}{scaled_down(found.scale)}"


def table_of(data: Data, name: str) -> Table:
    """A table of tuned values.

    Raises:
        InputError: if there is none of this name, or its study has not been run.
    """
    from cycletime.paper.tables import tuned_table

    try:
        return tuned_table(data, name)
    except NotRunError as error:
        raise InputError(f"The table {name} needs {error}, which has not been run: 'cycletime paper list'.") from None


def write_report(data: Data, folder: Path, results: Path | None = None) -> None:
    """Write figures, tables, verdicts, and pages that show them all.

    Args:
        data: What came of the studies.
        folder: Where they go; it is made.
        results: The folder that the data are from, which may have films.
    """
    from cycletime.paper.figures import missing_figures, save_figures
    from cycletime.paper.tables import PUBLISHED

    with disk_errors(folder):
        (folder / "tables").mkdir(parents=True, exist_ok=True)
    figures = dict.fromkeys(path.stem for path in save_figures(data, folder / "figures"))
    tables = {}
    for name, published in PUBLISHED.items():
        if published.sweep in data.outcomes:
            tables[name] = table_of(data, name)
            _write(folder / "tables" / f"{name}.md", tables[name].as_markdown())
            _write(folder / "tables" / f"{name}.json", _json(tables[name].as_json()))
    _write(folder / "claims.json", _json(claims_as_json(CLAIMS, data)))
    _write(folder / "index.md", page(data, list(figures), tables, missing_figures(data)))
    write_page(data, folder / PAGE, results)


def write_page(data: Data, file: Path, results: Path | None = None) -> None:
    """Write the HTML page alone, into a folder that is there."""
    from cycletime.paper.html_page import paper_page
    from cycletime.reports.page.document import render

    _write(file, render(paper_page(data, results)))


def page(data: Data, figures: list[str], tables: dict[str, Table], missing: dict[str, str]) -> str:
    """The page: verdicts, tables, figures, and where the runs come from."""
    lines = ["# What came of the paper's experiments", "", "Made by `cycletime paper report`.", "", "## Claims", ""]
    lines += ["| | verdict | claim | what it hangs on |", "|---|---|---|---|"]
    for claim in CLAIMS:
        found = judge(data, claim)
        statement, *rest = claim_told(claim, found)
        verdict = f"**{found.verdict}**{label_of(found)}"
        lines.append(f"| {claim.number} | {verdict} | {statement} | {' '.join(rest)} |")
    for name, table in tables.items():
        lines += ["", f"## Table {name}", "", table.as_markdown().strip()]
    lines += ["", "## Figures"]
    for stem in figures:
        files = ", ".join(f"[{kind}](figures/{stem}.{kind.lower()})" for kind in ("PDF", "SVG"))
        lines += ["", f"![{stem}](figures/{stem}.png)", "", f"{stem}: {files}"]
    lines += ["", *(f"- {stem}: not run ({needs})" for stem, needs in missing.items())]
    lines += ["", "## Where the runs come from", ""]
    lines += [f"| {' | '.join(ORIGIN)} |", "|---" * len(ORIGIN) + "|"]
    for part in PARTS:
        if part in data.outcomes:
            study, runs, source, scale, command, *others = origin_of(data.outcomes[part])
            lines.append(f"| {' | '.join((study, runs, source, scale, f'`{command}`', *others))} |")
    return "\n".join(lines) + "\n"


ORIGIN = ("study", "runs", "data", "scale", "command", "code", "computed on", "wall time")


def origin_of(outcome: Outcome) -> tuple[str, ...]:
    """What `ORIGIN` names, of a study."""
    about = outcome.about
    codes = sorted({str(each["cycletime"]) for each in about["machines"]})
    # A CPU is told by its name, as a card is.
    devices = sorted({str(each["processor" if each["device"] == "cpu" else "device"]) for each in about["machines"]})
    wall = "not known" if about.get("wall_s") is None else f"{about['wall_s']:,.0f} s"
    return (
        outcome.name,
        f"{about['runs']:,} x {outcome.env_steps:,} environment steps",
        ", ".join(outcome.sources),
        f"{outcome.scale:.3g}",
        str(about["command"]),
        ", ".join(codes),
        ", ".join(devices),
        wall,
    )


def _json(told: object) -> str:
    return json.dumps(told, indent=1, allow_nan=False) + "\n"


def _write(path: Path, text: str) -> None:
    write_whole(path, lambda unfinished: unfinished.write_text(text, encoding="utf-8"))
