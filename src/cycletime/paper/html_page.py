"""The page of the paper's results: the answer, claims, films, figures, values, tables, and where all of it is from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from cycletime.duration import Duration
from cycletime.paper.claims import CLAIMS, judge
from cycletime.paper.claims.claim import Judged
from cycletime.paper.claims.sources import BASELINE_BATCH, Data
from cycletime.paper.clips import CAPTIONS
from cycletime.paper.experiments import PARTS, scaled_down
from cycletime.paper.figures import missing_figures
from cycletime.paper.outcome import Outcome
from cycletime.paper.page import ORIGIN, claim_told, label_of, origin_of, table_of
from cycletime.paper.page_answer import answer_of
from cycletime.paper.page_figures import add_paper_figures
from cycletime.paper.tables import PUBLISHED
from cycletime.reports.page.calculator import calculator_html
from cycletime.reports.page.document import Film, Page, Section, figure_html, films_html
from cycletime.reports.page.figures import FigureData
from cycletime.reports.page.html import code, details, listed, paragraphs, table, verdict
from cycletime.reports.page.references import reference_table
from cycletime.reports.page.values import Used, settings_table, values_table
from cycletime.reports.words import span
from cycletime.runs.carried import TUNABLE
from cycletime.runs.worlds import TASKS

_COMPARED = (
    *("ppo-baseline", "ppo-dt-aware", "ppo-scaled", "ppo-constant", "ppo-pendulum"),
    *("sac-baseline", "sac-dt-aware", "sac-pendulum-baseline", "sac-pendulum-dt-aware"),
    *("ppo-robot", "ppo-robot-2000"),
)
"""Studies that compare rules from one set of values."""
_MOST_FILM_BYTES = 2**20
_MOST_CAPTION_BYTES = 2**16


def paper_page(data: Data, folder: Path | None = None) -> Page:
    """The page.

    Args:
        data: What came of the studies.
        folder: The results' folder, whose clips/ has films.
    """
    judged = {claim.number: judge(data, claim) for claim in CLAIMS}
    figures, films = FigureData(), tuple(_films(folder / "clips")) if folder else ()
    add_paper_figures(figures, data)
    parts = [
        Section("claims", "What the paper claims", _claims(judged)),
        Section("films", "What was learned", films_html(films) if films else ""),
        Section("figures", "Figures", _figures(data, figures)),
        Section("values", "Which values were compared", _values(data)),
        Section("calculator", "Carry your own values", calculator_html()),
        Section("tables", "Tuned values", _tables(data)),
        Section("settings", "All settings", "".join(_settings(data))),
        Section("origin", "Where this comes from", _origin(data)),
    ]
    runs = sum(int(outcome.about["runs"]) for outcome in data.outcomes.values())
    return Page(
        title="Does one set of values work at every cycle time?",
        about=f"Farrahi and Mahmood's paper on cycle times, asked again with {runs:,} runs",
        answer=tuple(answer_of(data, judged)),
        sections=tuple(part for part in parts if part.content),
        data=figures,
        films=films,
    )


def _claims(judged: dict[str, Judged]) -> str:
    rows = []
    for claim in CLAIMS:
        found = judged[claim.number]
        statement, *rest = claim_told(claim, found)
        seen = f'<a href="#{escape(claim.figure)}">figure</a>' if claim.figure and not found.missing else ""
        more = details("Criterion", paragraphs([claim.criterion, f"Refuted by: {claim.refuted_by}"]))
        rows.append(
            f'<tr><th scope="row">{escape(claim.number)}</th><td>{verdict(found.verdict)}{escape(label_of(found))}</td>'
            f"<td>{escape(statement)} {seen}{more}</td><td>{escape(' '.join(rest))}</td></tr>"
        )
    head = "".join(
        f'<th scope="col">{name}</th>' for name in ("claim", "verdict", "what the paper says", "what it hangs on")
    )
    return (
        '<div class="scrolls" tabindex="0" role="region" aria-label="Claims"><table class="claims"><thead><tr>'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _films(folder: Path) -> Iterator[Film]:
    """The clips that are there, each with what it shows."""
    captions = folder / CAPTIONS
    if not captions.is_file() or captions.stat().st_size > _MOST_CAPTION_BYTES:
        return
    for told in json.loads(captions.read_bytes()):
        path = folder / str(told["file"])
        if path.parent == folder and path.is_file() and path.stat().st_size <= _MOST_FILM_BYTES:
            yield Film(
                title=_film_title(told),
                caption=f"The median of {told['median_of']} runs, seed {told['seed']}: scored {told['score']:,.4g}.",
                content=path.read_bytes(),
            )


def _film_title(told: Mapping[str, Any]) -> str:
    task, dt = TASKS[told["task"]].title, span(Duration(told["dt"]))
    return f"{told['algorithm'].upper()} on {task} at {dt}, {told['rule']}"


def _figures(data: Data, figures: FigureData) -> str:
    missing = [f"{stem}: not run ({needs})" for stem, needs in missing_figures(data).items()]
    told = "".join(map(figure_html, figures.figures))
    return told + (details(f"{len(missing)} figures that are not run", listed(missing)) if missing else "")


def _values(data: Data) -> str:
    """The values of each study that compares rules from one set, and what returns mean on its task."""
    outcomes = [data.outcomes[part] for part in _COMPARED if part in data.outcomes]
    parts = [_values_of(outcome) for outcome in outcomes]
    dts: dict[str, set[Duration]] = {}
    for cell in (cell for outcome in data.outcomes.values() for cell in outcome.cells):
        dts.setdefault(str(cell.labels["task"]), set()).add(cell.dt)
    return "".join([*parts, *(reference_table(task, sorted(found)) for task, found in dts.items())])


def _values_of(outcome: Outcome) -> str:
    cells = [cell for cell in outcome.cells if cell.labels.get("batch") in (None, BASELINE_BATCH)]
    algorithm = str(cells[0].labels["algorithm"])
    used = [
        Used(str(cell.labels["rule"]), cell.dt, {name: cell.values[name] for name in TUNABLE[algorithm]})
        for cell in cells
    ]
    return values_table(algorithm, used, f"{outcome.name}: values, in brackets what they mean in seconds")


def _tables(data: Data) -> str:
    parts = []
    for name, published in PUBLISHED.items():
        if published.sweep in data.outcomes:
            told = table_of(data, name)
            header, *rows = told.words()
            parts += [
                table(header, rows, f"{published.title}{scaled_down(told.scale)}"),
                f'<div class="notes">{listed(told.notes())}</div>',
                details("The command that prints it", code(f"cycletime paper table {name}")),
            ]
    return "".join(parts)


def _settings(data: Data) -> Iterator[str]:
    for part in PARTS:
        if part in data.outcomes:
            outcome = data.outcomes[part]
            seeds = "/".join(map(str, outcome.n))
            size = f"{len(outcome.cells)} cells, {seeds} seeds, {outcome.env_steps:,} environment steps"
            told = settings_table((cell.values for cell in outcome.cells), f"{part}: all settings")
            yield details(f"{part}: {size}", told)


def _origin(data: Data) -> str:
    parts = [part for part in PARTS if part in data.outcomes]
    rows = [origin_of(data.outcomes[part]) for part in parts]
    versions = [(part, told) for part in parts for told in _versions(data.outcomes[part])]
    made = table(("study", "made by"), versions, "Versions and machines")
    return "".join(
        [
            code("cycletime paper report"),
            table(ORIGIN, rows, "Each study, and the command that ran it"),
            details("Versions and machines", made),
        ]
    )


def _versions(outcome: Outcome) -> list[str]:
    return [", ".join(f"{name} {value}" for name, value in machine.items()) for machine in outcome.about["machines"]]
