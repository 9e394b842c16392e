"""The page of a study: what its report says, with interactive figures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from cycletime.duration import Duration
from cycletime.reports.formatting import TextTable
from cycletime.reports.page.document import Page, Section, calculator_html, figure_html
from cycletime.reports.page.figures import FigureData
from cycletime.reports.page.html import bullet_list, code_block, details, html_table
from cycletime.reports.page.values import reference_table, settings_table, values_table
from cycletime.reports.report import FEW_DRAWN, Report
from cycletime.studies.spec_file import study_table
from cycletime.training.external import ExternalAgent
from cycletime.training.make_specs import agent_values
from cycletime.training.spec import RunSpec


def study_page(report: Report) -> Page:
    data = FigureData([figure for figures in report.figures() for figure in figures])
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


def _figures(report: Report, data: FigureData) -> str:
    html = "".join(map(figure_html, data.figures[1:]))
    if data.figures and len(report.drawn()) < len(report.summaries):
        html += f"<p>{FEW_DRAWN}</p>"
    return html


def _values(report: Report) -> str:
    parts = []
    for summary in report.summaries:
        panel = summary.panel
        places = product(panel.rules, panel.dts)
        used = [(*place, _stated(panel.cells[place][0].spec)) for place in places]
        caption = f"{panel.title}: values, in brackets what they mean in seconds"
        parts.append(values_table(panel.algorithm, used, caption))
        parts.append(reference_table(panel.task, panel.dts))
    return "".join(dict.fromkeys(parts))


def _stated(spec: RunSpec) -> Mapping[str, Any]:
    if isinstance(spec.agent, ExternalAgent):
        return agent_values(spec.agent, spec.agent.values)
    stated: dict[str, Any] = spec.as_json()["agent"]
    return stated


def _tables(report: Report) -> str:
    parts = []
    for table, sections in report.tables():
        parts.append(html_table(table))
        for heading, sentences in sections:
            parts.append(details(heading, bullet_list(sentences)) if heading else bullet_list(sentences))
    return "".join(parts)


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
        agent, settings = run.spec.agent, run.spec.as_json()["agent"]
        if isinstance(agent, ExternalAgent):
            settings = {name: each for name, each in agent.settings.items() if agent.trainer.takes(name)}
            settings |= {"trainer": agent.trainer.label, "environments": agent.trainer.num_envs}
        agents.setdefault(run.spec.algorithm, []).append(settings)
    html = "".join(settings_table(every, f"{name}: all settings of the agent") for name, every in agents.items())
    study = json.dumps(study_table(report.scores.folder.study), indent=1, default=str)
    return html + details("The study as it was planned", code_block(study))


def _origin(report: Report) -> str:
    rows = [(f"{count:,}", machine) for machine, count in report.machines()]
    machines = html_table(TextTable(("runs", "code and machine"), rows, "What computed the runs")) if rows else ""
    return code_block(report.command) + bullet_list(report.completeness) + machines
