"""The paper as an investigation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cycletime.experiments.investigation import Investigation
from cycletime.experiments.judging import claims_as_json
from cycletime.experiments.paper.claims import CLAIMS
from cycletime.experiments.paper.data import (
    BEHAVIOUR_FILE,
    PaperResults,
    read_behaviours,
    read_paper_results,
    save_behaviours,
)
from cycletime.experiments.paper.experiments import EXPERIMENTS, TITLE, needed_studies, paper_study, provenance
from cycletime.experiments.paper.figures import missing_figures, save_figures
from cycletime.experiments.paper.report import claim_text, find_table, write_report
from cycletime.experiments.paper.tables import PUBLISHED_TABLES
from cycletime.studies.study_folder import StudyFolder


def keep_behaviour(folders: Mapping[str, StudyFolder], results: Path) -> list[Path]:
    """Measure what learned policies do; the file."""
    from cycletime.experiments.paper import behaviour

    file = results / BEHAVIOUR_FILE
    measured = behaviour.measure_behaviour(folders)
    if measured:
        save_behaviours({**(read_behaviours(file) if file.exists() else {}), **measured}, file)
    return [file] if measured else []


def _table_text(name: str, data: PaperResults) -> str:
    return find_table(name, data).as_text()


def _table_json(name: str, data: PaperResults) -> dict[str, Any]:
    return find_table(name, data).as_json()


PAPER: Investigation[PaperResults] = Investigation(
    name="paper",
    title=TITLE,
    about="The paper's experiments and claims, and a few beyond them.",
    experiments=EXPERIMENTS,
    study=paper_study,
    needs=needed_studies,
    provenance=provenance,
    collect_more=keep_behaviour,
    read=read_paper_results,
    verdicts={claim.number: partial(claim_text, claim) for claim in CLAIMS},
    verdicts_as_json=partial(claims_as_json, CLAIMS),
    tables={name: partial(_table_text, name) for name in PUBLISHED_TABLES},
    tables_as_json={name: partial(_table_json, name) for name in PUBLISHED_TABLES},
    save_figures=save_figures,
    missing_figures=missing_figures,
    write_report=write_report,
    report_path=Path("paper-report"),
)
