"""The report of the paper's results: verdicts, tables, figures, and the pages that show them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from html import escape
from pathlib import Path
from statistics import fmean
from textwrap import fill
from typing import get_args

from cycletime.duration import Duration
from cycletime.experiments.investigation import scale_label
from cycletime.experiments.judging import BySeed, Claim, JudgedClaim, Verdict, judge
from cycletime.experiments.outcome import NotRunError, Outcome
from cycletime.experiments.paper.claims import CHANGES, CLAIMS, claims_as_json
from cycletime.experiments.paper.data import (
    BASELINE_BATCH,
    DTS,
    TUNED_AT,
    PaperResults,
    PPORuns,
    paper_pendulum_runs,
    reacher_runs,
)
from cycletime.experiments.paper.experiments import STUDY_NAMES
from cycletime.experiments.paper.figures import FIGURES, describe_figures, missing_figures, save_figures
from cycletime.experiments.paper.sac_claims import SAC_STUDIES, RobotRuns
from cycletime.experiments.paper.tables import PUBLISHED_TABLES, TunedTable, tuned_table
from cycletime.reports.formatting import TextTable, dt_text, join_words, rough_number
from cycletime.reports.page import document
from cycletime.reports.page.figures import FigureData
from cycletime.reports.page.html import bullet_list, code_block, details, html_table, paragraphs, verdict_badge
from cycletime.reports.page.values import reference_table, settings_table, values_table
from cycletime.statistics import compare
from cycletime.tasks.references import references
from cycletime.training.atomic_files import make_folder
from cycletime.training.make_specs import TUNABLE
from cycletime.training.worlds import task_class

_TASK_NAMES = {"reacher": "Reacher", "double-pendulum": "the Double Pendulum"}
_COLUMNS, _INDENT = 80, "    "


def claim_text(claim: Claim, data: PaperResults) -> str:
    """A claim with its verdict and the condition that decides it, in lines of 80 characters."""
    found = judge(data, claim)
    title = f"{claim.number:>2}  {found.verdict}{verdict_label(found)}"
    below = [
        fill(text, _COLUMNS, initial_indent=_INDENT, subsequent_indent=_INDENT)
        for text in claim_sentences(claim, found)
    ]
    return "\n".join([title, *below]) + "\n"


def claim_sentences(claim: Claim, found: JudgedClaim) -> list[str]:
    sentences = [claim.statement]
    if found.missing:
        not_run = "Refuted without what is not run" if found.verdict == "refuted" else "Not run"
        sentences.append(f"{not_run}: {', '.join(found.missing)}.")
    if found.decisive is not None:
        sentences.append(f"{found.decisive}.")
    if found.with_plain_mean not in (None, found.verdict):
        sentences.append(
            "Scores are means over 100 bins of learning, which is our reading of 'over the entire learning period'; by "
            f"the plain mean over episodes: {found.with_plain_mean}."
        )
    return sentences


def verdict_label(found: JudgedClaim) -> str:
    """What must stand beside a verdict: that its runs are scaled down, or on a simulated robot."""
    robot = " (simulated robot)" if "simulated robot" in found.sources else ""
    return robot if found.scale is None else f"{robot}{scale_label(found.scale)}"


def write_report(data: PaperResults, folder: Path) -> list[Path]:
    """Write figures, tables, verdicts, and pages that show them all, into a folder, which is made; the files."""
    make_folder(folder / "tables")
    written = save_figures(data, folder / "figures")
    tables, judged = tuned_tables(data), judge_all(data)
    texts = {
        **{f"tables/{name}.md": table.as_text() for name, table in tables.items()},
        **{f"tables/{name}.json": _json_text(table.as_json()) for name, table in tables.items()},
        "claims.json": _json_text(claims_as_json(data)),
        "index.md": index_markdown(data, judged, list(dict.fromkeys(path.stem for path in written))),
        document.PAGE_FILE: document.render(paper_page(data, judged)),
    }
    for name, text in texts.items():
        document.write_text(folder / name, text)
    return [*written, *(folder / name for name in texts)]


def judge_all(data: PaperResults) -> dict[str, JudgedClaim]:
    return {claim.number: judge(data, claim) for claim in CLAIMS}


def tuned_tables(data: PaperResults) -> dict[str, TunedTable]:
    there = (name for name, published in PUBLISHED_TABLES.items() if published.sweep in data.outcomes)
    return {name: tuned_table(data, name) for name in there}


def index_markdown(data: PaperResults, judged: Mapping[str, JudgedClaim], figures: Sequence[str]) -> str:
    claims = []
    for claim in CLAIMS:
        found = judged[claim.number]
        statement, *rest = claim_sentences(claim, found)
        claims.append((claim.number, f"**{found.verdict}**{verdict_label(found)}", statement, " ".join(rest)))
    lines = ["# What came of the paper's experiments", "", "Made by `cycletime experiment report paper`."]
    lines += ["", "## Claims", ""]
    lines += TextTable(("", "verdict", "claim", "what it hangs on"), claims).markdown()
    changes = changes_table(judged)
    lines += ["", f"## {changes.title}", "", *changes.markdown()]
    for name, table in tuned_tables(data).items():
        lines += ["", f"## Table {name}", "", table.as_text().strip()]
    lines += ["", "## Figures"]
    for stem in figures:
        files = ", ".join(f"[{kind}](figures/{stem}.{kind.lower()})" for kind in ("PDF", "SVG"))
        lines += ["", f"![{stem}](figures/{stem}.png)", "", f"{stem}: {files}"]
    lines += ["", *(f"- {stem}: not run ({needs})" for stem, needs in missing_figures(data).items())]
    lines += ["", "## Where the runs come from", ""]
    return "\n".join([*lines, *provenance_table(data, "`{}`").markdown()]) + "\n"


def changes_table(judged: Mapping[str, JudgedClaim]) -> TextTable:
    rows = [(number, before, judged[number].verdict, why) for number, before, why in CHANGES]
    return TextTable(("claim", "before", "now", "why"), rows, "Criteria that were changed after their data were seen")


def provenance_table(data: PaperResults, command: str = "{}") -> TextTable:
    """Where the runs of each study come from; braces stand for the command that runs it again."""
    rows = []
    for outcome in _outcomes(data):
        runs, size = f"{outcome.about['runs']:,} x {outcome.env_steps:,} environment steps", f"{outcome.scale:.3g}"
        again = command.format(outcome.about["command"])
        rows.append((outcome.name, runs, ", ".join(outcome.sources), size, again, *outcome.made_by))
    header = ("study", "runs", "data", "scale", "command", "code", "computed on", "wall time")
    return TextTable(header, rows, "Each study, and the command that ran it")


def _outcomes(data: PaperResults, names: Sequence[str] = STUDY_NAMES) -> list[Outcome]:
    return [data.outcomes[name] for name in names if name in data.outcomes]


def _json_text(data: object) -> str:
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def summary_sentences(data: PaperResults, judged: Mapping[str, JudgedClaim]) -> Iterator[str]:
    for runs in (reacher_runs(data), paper_pendulum_runs(data)):
        if {runs.names["baseline"], runs.names["dt-aware"]} <= set(data.outcomes):
            yield _rule_worth(runs, _TASK_NAMES[runs.task])
    here = [each for each in SAC_STUDIES if {*each[1:]} <= set(data.outcomes)]
    if gained := [gain for task, kept, carried in here if (gain := _gamma_gain(data, kept, carried, task))]:
        yield f"SAC's gamma, tuned at 16 ms and scaled from there, does better than .99 at {', and at '.join(gained)}."
    ends = []
    for robot in (RobotRuns(fresh=False), RobotRuns(fresh=True)):
        with suppress(NotRunError):
            aware, kept, start = robot.finals(data, "ppo-robot")
            returns = join_words([f"{fmean(each.values()):,.3g}" for each in (start, kept, aware)])
            ends.append(f"{returns} (n = {len(aware)})")
    if ends:
        where = "there, when they are kept at 10 ms, and when the rule carries them"
        yield f"On a simulated robot PPO's values for 40 ms end at returns of {', or '.join(ends)}: {where}."
    yield counts_sentence(judged)


def counts_sentence(judged: Mapping[str, JudgedClaim]) -> str:
    counts = Counter(found.verdict for found in judged.values())
    known = [(counts[name], name) for name in get_args(Verdict) if counts[name]]
    verdict_counts = join_words([f"{count} {'is' if count == 1 else 'are'} {name}" for count, name in known])
    return f"Of the paper's {len(CLAIMS)} claims, each judged by a written criterion, {verdict_counts}."


def _rule_worth(runs: PPORuns, task: str) -> str:
    """Where values that the rule carries from 16 ms are better than the same values kept, and what a return means."""
    pairs = {dt: pair for (dt, _), pair in runs.gains().items()}
    known = [f"{each.name} gets {rough_number(each.mean)}" for each in references(runs.task, TUNED_AT)]
    scale = f" (For scale, at 16 ms: {join_words(known)}.)" if known else ""
    where, by = _gains(pairs, "each of the four other")
    if not where:
        return (
            f"On {task} PPO's values for 16 ms do better carried than kept at none of {len(pairs)} cycle times.{scale}"
        )
    return (
        f"On {task}, PPO's values for 16 ms do better at {where} cycle times when the dt-aware rule carries them than "
        f"when they are kept: by {by} in mean return over learning.{scale}"
    )


def _gamma_gain(data: PaperResults, kept: str, carried: str, task: str) -> str:
    """Where a tuned gamma that is scaled beats .99; '' where it does at no cycle time."""
    tuned, usual = data.outcome(carried), data.outcome(kept)
    pairs = {dt: (tuned.cell(rule="tuned-scaled", dt=dt).seed_scores, usual.cell(dt=dt).seed_scores) for dt in DTS}
    where, by = _gains(pairs, "all five cycle times")
    return f"{where} on {_TASK_NAMES[task]}, by {by}" if where else ""


def _gains(pairs: Mapping[str, tuple[BySeed, BySeed]], everywhere: str) -> tuple[str, str]:
    """The cycle times at which the first of two sets of runs is better, and by how much; '' where it is nowhere."""
    found = {dt: compare(*pair, failed="exclude") for dt, pair in pairs.items()}
    better = {dt: each.difference.value for dt, each in found.items() if each.verdict == "better"}
    if not better:
        return "", ""
    where = everywhere if len(better) == len(pairs) else join_words([dt_text(Duration(dt)) for dt in better])
    return where, f"{rough_number(min(better.values()))} to {rough_number(max(better.values()))}"


_COMPARED = (
    *("ppo-baseline", "ppo-dt-aware", "ppo-scaled", "ppo-constant", "ppo-pendulum"),
    *("sac-baseline", "sac-dt-aware", "sac-pendulum-baseline", "sac-pendulum-dt-aware"),
    *("ppo-robot", "ppo-robot-2000"),
)
"""Studies that compare rules from one set of values."""
_MAX_FILM_BYTES = 2**20
_MAX_CAPTION_BYTES = 2**16


def paper_page(data: PaperResults, judged: Mapping[str, JudgedClaim]) -> document.Page:
    """The page, with films where the results' folder has clips/."""
    films = tuple(_films(data.folder / "clips")) if data.folder else ()
    figures = FigureData(describe_figures(data, ["rule", *(stem for stem in FIGURES if stem != "rule")]))
    changes = replace(changes_table(judged), title="")
    parts = [
        document.Section("claims", "What the paper claims", _claims_html(judged)),
        document.Section("changes", changes_table(judged).title, html_table(changes)),
        document.Section("films", "What was learned", document.films_html(films) if films else ""),
        document.Section("figures", "Figures", _figures_html(data, figures)),
        document.Section("values", "Which values were compared", _values_html(data)),
        document.Section("calculator", "Carry your own values", document.calculator_html()),
        document.Section("tables", "Tuned values", _tables_html(data)),
        document.Section("settings", "All settings", "".join(_settings_html(data))),
        document.Section("origin", "Where this comes from", _provenance_html(data)),
    ]
    runs = sum(int(outcome.about["runs"]) for outcome in data.outcomes.values())
    return document.Page(
        title="Does one set of values work at every cycle time?",
        about=f"Farrahi and Mahmood's paper on cycle times, asked again with {runs:,} runs",
        answer=tuple(summary_sentences(data, judged)),
        sections=tuple(part for part in parts if part.content),
        data=figures,
        films=films,
    )


def _claims_html(judged: Mapping[str, JudgedClaim]) -> str:
    rows = []
    for claim in CLAIMS:
        found = judged[claim.number]
        statement, *rest = claim_sentences(claim, found)
        seen = f'<a href="#{escape(claim.figure)}">figure</a>' if claim.figure and not found.missing else ""
        more = details("Criterion", paragraphs([claim.criterion, f"Refuted by: {claim.refuted_by}"]))
        rows.append(
            f'<tr><th scope="row">{escape(claim.number)}</th><td>'
            f"{verdict_badge(found.verdict)}{escape(verdict_label(found))}</td>"
            f"<td>{escape(statement)} {seen}{more}</td><td>{escape(' '.join(rest))}</td></tr>"
        )
    head = "".join(
        f'<th scope="col">{name}</th>' for name in ("claim", "verdict", "what the paper says", "what it hangs on")
    )
    return (
        '<div class="scrolls" tabindex="0" role="region" aria-label="Claims"><table class="claims"><thead><tr>'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _films(folder: Path) -> Iterator[document.Film]:
    captions = folder / "clips.json"
    if not captions.is_file() or captions.stat().st_size > _MAX_CAPTION_BYTES:
        return
    for caption in json.loads(captions.read_bytes()):
        path = folder / str(caption["file"])
        if path.parent == folder and path.is_file() and path.stat().st_size <= _MAX_FILM_BYTES:
            task, dt = task_class(caption["task"]).title, dt_text(Duration(caption["dt"]))
            yield document.Film(
                title=f"{caption['algorithm'].upper()} on {task} at {dt}, {caption['rule']}",
                caption=f"The median of {caption['median_of']} runs, seed {caption['seed']}: scored "
                f"{caption['score']:,.4g}.",
                content=path.read_bytes(),
            )


def _figures_html(data: PaperResults, figures: FigureData) -> str:
    missing = [f"{stem}: not run ({needs})" for stem, needs in missing_figures(data).items()]
    html = "".join(map(document.figure_html, figures.figures[1:]))
    return html + (details(f"{len(missing)} figures that are not run", bullet_list(missing)) if missing else "")


def _values_html(data: PaperResults) -> str:
    parts = []
    for outcome in _outcomes(data, _COMPARED):
        cells = [cell for cell in outcome.cells if cell.labels.get("batch") in (None, BASELINE_BATCH)]
        algorithm = str(cells[0].labels["algorithm"])
        used = [
            (str(cell.labels["rule"]), cell.dt, {name: cell.values[name] for name in TUNABLE[algorithm]})
            for cell in cells
        ]
        parts.append(values_table(algorithm, used, f"{outcome.name}: values, in brackets what they mean in seconds"))
    dts: dict[str, set[Duration]] = {}
    for cell in (cell for outcome in data.outcomes.values() for cell in outcome.cells):
        dts.setdefault(str(cell.labels["task"]), set()).add(cell.dt)
    return "".join([*parts, *(reference_table(task, sorted(found)) for task, found in dts.items())])


def _tables_html(data: PaperResults) -> str:
    parts = []
    for name, table in tuned_tables(data).items():
        command = details("The command that prints it", code_block(f"cycletime experiment table paper {name}"))
        parts += [html_table(table.text_table()), command]
    return "".join(parts)


def _settings_html(data: PaperResults) -> Iterator[str]:
    for outcome in _outcomes(data):
        seeds = "/".join(map(str, outcome.n))
        size = f"{len(outcome.cells)} cells, {seeds} seeds, {outcome.env_steps:,} environment steps"
        html = settings_table((cell.values for cell in outcome.cells), f"{outcome.name}: all settings")
        yield details(f"{outcome.name}: {size}", html)


def _provenance_html(data: PaperResults) -> str:
    versions = [
        (outcome.name, ", ".join(f"{name} {value}" for name, value in machine.items()))
        for outcome in _outcomes(data)
        for machine in outcome.about["machines"]
    ]
    made = html_table(TextTable(("study", "made by"), versions, "Versions and machines"))
    command, table = code_block("cycletime experiment report paper"), html_table(provenance_table(data))
    return command + table + details("Versions and machines", made)
