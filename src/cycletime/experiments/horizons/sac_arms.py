"""SAC's missing arm: gamma kept or carried, updates kept or carried, by the criteria of results/horizons/sac-arms.toml.

Those were fixed before the runs: three contrasts over both cycle times, of pairs with equal seeds, with intervals of
95 % together (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cycletime.experiments.investigation import Experiment, scale_label
from cycletime.experiments.outcome import Outcome
from cycletime.reports.formatting import TextTable, dt_text, estimate_text, sign_text
from cycletime.statistics import Contrast, Estimate, mean_and_error
from cycletime.studies.spec import StudySpec
from cycletime.studies.spec_file import read_study

NAME, ENV_STEPS, SEEDS = "sac-arms", 50_000, tuple(range(2000, 2016))
EXPERIMENT = Experiment(NAME, "SAC's gamma and updates, each kept or carried")
PREDICTED = {"updates": "more", "gamma": "not decided", "interaction": "not decided"}
EFFECTS: Mapping[str, Mapping[str, float]] = {
    "updates": {"kept-updates": 0.5, "kept": -0.5, "carried-updates": 0.5, "carried": -0.5},
    "gamma": {"carried": 0.5, "kept": -0.5, "carried-updates": 0.5, "kept-updates": -0.5},
    "interaction": {"carried-updates": 1.0, "carried": -1.0, "kept-updates": -1.0, "kept": 1.0},
}
"""By effect, the weights of the arms at each cycle time."""
MARGIN = 20.0
"""0.05 of a scripted controller's return: a gamma whose effect is within it is as good kept as carried."""


def preregistered_study(results: Path | None) -> StudySpec:
    return read_study((results or Path()) / f"{NAME}.toml")


def effects(outcome: Outcome) -> dict[str, Estimate]:
    confidence = 1 - 0.05 / len(EFFECTS)
    dts = sorted({cell.dt for cell in outcome.cells})
    found = {}
    for name, weights in EFFECTS.items():
        cells = [(weight, outcome.cell(rule=rule, dt=dt)) for dt in dts for rule, weight in weights.items()]
        contrast = Contrast.of([(weight / len(dts), cell.seed_scores) for weight, cell in cells])
        found[name] = contrast.estimate(confidence)
    return found


def verdict(effect: Estimate) -> str:
    return sign_text(effect.low, effect.high, ("more", "less", "not decided"))


def conclusions(found: Mapping[str, Estimate]) -> list[str]:
    gamma = found["gamma"]
    assert gamma.low is not None
    assert gamma.high is not None
    recommends = verdict(found["updates"]) == "more" and verdict(gamma) == "less"
    as_good = gamma.low > -MARGIN and gamma.high < MARGIN
    return [
        f"'Keep gamma, with more updates' is {'' if recommends else 'not '}recommended at longer cycles.",
        f"A kept gamma is {'' if as_good else 'not '}called as good as a carried one, within {MARGIN:g}.",
    ]


def verdicts_text(outcome: Outcome) -> str:
    dts = sorted({cell.dt for cell in outcome.cells})
    arms = [
        (rule, *(estimate_text(mean_and_error(outcome.cell(rule=rule, dt=dt).scores)) for dt in dts))
        for rule in EFFECTS["updates"]
    ]
    means = "\n".join(TextTable(("arm", *map(dt_text, dts)), arms).markdown())
    if outcome.scale < 1 or any(cell.seeds != SEEDS for cell in outcome.cells):
        runs = f"{outcome.about['runs']}{scale_label(outcome.scale)}"
        return f"{means}\n\nNo verdict before all {len(SEEDS) * len(outcome.cells)} runs are there: these are {runs}."
    found = effects(outcome)
    told = [
        (name, f"{each.value:+.1f} [{each.low:+.1f}, {each.high:+.1f}]", verdict(each), PREDICTED[name])
        for name, each in found.items()
    ]
    differences = TextTable(("effect on the return", "difference", "verdict", "predicted"), told).markdown()
    return "\n\n".join([means, "\n".join(differences), *conclusions(found)])
