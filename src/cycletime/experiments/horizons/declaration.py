"""The search for a rule that keeps horizons in seconds, and its trial, as an investigation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from cycletime.experiments.horizons import sac_arms
from cycletime.experiments.horizons.candidates import ALGORITHM_SPECS, Algorithm
from cycletime.experiments.horizons.page import missing_figures, write_page
from cycletime.experiments.horizons.results import (
    CURVE_BINS,
    EXPERIMENTS,
    Evidence,
    HorizonsResults,
    needed_studies,
    provenance,
    read_horizons_results,
    stage_study,
)
from cycletime.experiments.horizons.verdicts import ranking_text, verdicts_text
from cycletime.experiments.investigation import Investigation


def _ranking(algorithm: Algorithm, stage: str, results: HorizonsResults) -> str:
    evidence = Evidence(results, algorithm)
    return ranking_text(evidence.search if stage == "search" else evidence.trial.comparison)


def _verdicts(algorithm: Algorithm, results: HorizonsResults) -> str:
    evidence = Evidence(results, algorithm)
    verdicts = verdicts_text(evidence.trial, evidence.predictions)
    return f"{ranking_text(evidence.trial.comparison)}\n{verdicts}\n"


def _save_figures(results: HorizonsResults, folder: Path, only: Sequence[str] = ()) -> list[Path]:
    from cycletime.experiments.horizons.figures import save_figures

    return save_figures(results, folder, only)


_SPECS = tuple(ALGORITHM_SPECS.values())
HORIZONS: Investigation[HorizonsResults] = Investigation(
    name="horizons",
    title="The search for horizons",
    about="The search for a rule that keeps horizons in seconds, and its trial.",
    experiments=EXPERIMENTS,
    study=stage_study,
    needs=needed_studies,
    provenance=provenance,
    curve_bins=CURVE_BINS,
    read=read_horizons_results,
    verdicts={
        **{spec.algorithm: partial(_verdicts, spec.algorithm) for spec in _SPECS},
        sac_arms.NAME: lambda results: sac_arms.verdicts_text(results.outcome(sac_arms.NAME)) + "\n",
    },
    tables={
        f"{spec.prefix}{stage}": partial(_ranking, spec.algorithm, stage)
        for stage in ("search", "trial")
        for spec in _SPECS
    },
    save_figures=_save_figures,
    missing_figures=missing_figures,
    write_report=write_page,
    report_path=Path("docs/horizons.md"),
)
