"""The search for a rule that keeps horizons in seconds, and its trial, as an investigation."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from cycletime.experiments.horizons import results as stages
from cycletime.experiments.horizons import sac_arms
from cycletime.experiments.horizons.candidates import ALGORITHM_SPECS, AlgorithmSpec
from cycletime.experiments.horizons.page import IMAGES, missing_figures, save_figures, write_page
from cycletime.experiments.horizons.results import Evidence
from cycletime.experiments.horizons.verdicts import ranking_text, verdicts_text
from cycletime.experiments.investigation import Investigation
from cycletime.experiments.outcome import Results


def _ranking(spec: AlgorithmSpec, stage: str, results: Results) -> str:
    evidence = Evidence(results, spec)
    return ranking_text(getattr(evidence, stage), evidence.scale_label)


def _verdicts(spec: AlgorithmSpec, results: Results) -> str:
    evidence = Evidence(results, spec)
    verdicts = verdicts_text(evidence.trial, evidence.predictions)
    return f"{ranking_text(evidence.trial, evidence.scale_label)}\n{verdicts}\n"


_SPECS = tuple(ALGORITHM_SPECS.values())
HORIZONS = Investigation(
    name="horizons",
    title="The search for horizons",
    experiments=stages.EXPERIMENTS,
    study=stages.stage_study,
    env_steps=stages.env_steps,
    needs=stages.needed_studies,
    follows_results=True,
    provenance=stages.provenance,
    curve_bins=stages.CURVE_BINS,
    verdicts={
        **{spec.algorithm: partial(_verdicts, spec) for spec in _SPECS},
        sac_arms.NAME: lambda results: sac_arms.verdicts_text(results.outcome(sac_arms.NAME)) + "\n",
    },
    tables={
        f"{spec.prefix}{stage}": partial(_ranking, spec, stage) for stage in ("search", "trial") for spec in _SPECS
    },
    figures=[f"{spec.prefix}{name}" for spec in _SPECS for name in IMAGES],
    save_figures=save_figures,
    missing_figures=missing_figures,
    write_report=write_page,
    report_path=Path("docs/horizons.md"),
)
