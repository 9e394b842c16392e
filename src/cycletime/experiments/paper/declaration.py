"""The paper as an investigation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cycletime.experiments.investigation import Investigation
from cycletime.experiments.paper.claims import CLAIMS, claims_as_json
from cycletime.experiments.paper.data import BEHAVIOUR_FILE, read_paper_results, save_behaviours
from cycletime.experiments.paper.experiments import EXPERIMENTS, load_study
from cycletime.experiments.paper.figures import FIGURES, missing_figures, save_figures
from cycletime.experiments.paper.report import claim_text, counts_sentence, judge_all, write_report
from cycletime.experiments.paper.tables import PUBLISHED_TABLES, TunedTable, tuned_table
from cycletime.studies.study_folder import StudyFolder


def keep_behaviour(folders: Mapping[str, StudyFolder], results: Path) -> list[Path]:
    from cycletime.experiments.paper import behaviour

    if not (measured := behaviour.measure_behaviour(folders)):
        return []
    save_behaviours(measured, file := results / BEHAVIOUR_FILE)
    return [file]


def _table(make: Callable[[TunedTable], Any], name: str, data: Any) -> Any:  # noqa: ANN401 - text or JSON
    return make(tuned_table(data, name))


PAPER = Investigation(
    name="paper",
    title="The paper",
    experiments=EXPERIMENTS,
    study=lambda name, workspace: load_study(name),
    collect_more=keep_behaviour,
    read=read_paper_results,
    verdicts={claim.number: partial(claim_text, claim) for claim in CLAIMS}
    | {"counts": lambda data: counts_sentence(judge_all(data)) + "\n"},
    tables={name: partial(_table, TunedTable.as_text, name) for name in PUBLISHED_TABLES},
    as_json={
        "verdicts": claims_as_json,
        **{name: partial(_table, TunedTable.as_json, name) for name in PUBLISHED_TABLES},
    },
    figures=FIGURES,
    save_figures=save_figures,
    missing_figures=missing_figures,
    write_report=write_report,
    report_path=Path("paper-report"),
)
