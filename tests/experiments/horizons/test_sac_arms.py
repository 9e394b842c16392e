"""SAC's gamma and updates, each kept or carried: effects as written out by hand, and what the committed runs say."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from cycletime.experiments.horizons import sac_arms
from cycletime.experiments.outcome import Outcome
from cycletime.statistics import Estimate

RESULTS = Path(__file__).parents[3] / "results" / "horizons"


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return Outcome.load(RESULTS / "sac-arms.npz")


def _scores(outcome: Outcome, rule: str) -> NDArray[np.float64]:
    """[seeds] the mean over both cycle times."""
    means: NDArray[np.float64] = np.mean([outcome.cell(rule=rule, dt=dt).scores for dt in ("80ms", "160ms")], axis=0)
    return means


def test_effects_are_those_of_seeds_in_pairs(outcome: Outcome) -> None:
    kept, carried, kept_updates, carried_updates = (
        _scores(outcome, rule) for rule in ("kept", "carried", "kept-updates", "carried-updates")
    )
    by_hand = {
        "updates": ((kept_updates - kept) + (carried_updates - carried)) / 2,
        "gamma": ((carried - kept) + (carried_updates - kept_updates)) / 2,
        "interaction": (carried_updates - carried) - (kept_updates - kept),
    }
    for name, found in sac_arms.effects(outcome).items():
        wanted = stats.ttest_1samp(by_hand[name], 0.0).confidence_interval(1 - 0.05 / 3)
        assert (found.value, found.low, found.high) == pytest.approx((by_hand[name].mean(), wanted.low, wanted.high))
        assert found.n == 16


def test_the_page_tells_what_carrying_gamma_is_worth_with_and_without_updates(outcome: Outcome) -> None:
    page = " ".join((RESULTS.parents[1] / "docs" / "horizons.md").read_text().split())
    told = []
    for updates in ("", "-updates"):
        more = _scores(outcome, f"carried{updates}") - _scores(outcome, f"kept{updates}")
        interval = stats.ttest_1samp(more, 0.0).confidence_interval()
        told.append(f"{more.mean():+.1f} [{interval.low:+.1f}, {interval.high:+.1f}]")
    assert f"worth {told[0]} with one update per step and {told[1]} with more" in page


def test_the_runs_are_those_that_were_preregistered(outcome: Outcome) -> None:
    study = sac_arms.preregistered_study(RESULTS)
    assert {cell.labels["rule"] for cell in outcome.cells} == set(study.rules["sac"])
    assert {cell.seeds for cell in outcome.cells} == {study.seeds}
    assert {cell.dt for cell in outcome.cells} == set(study.dts)
    assert outcome.env_steps == study.env_steps


def test_updates_help_and_gamma_makes_no_difference(outcome: Outcome) -> None:
    found = sac_arms.effects(outcome)
    assert {name: sac_arms.verdict(effect) for name, effect in found.items()} == {
        "updates": "more",
        "gamma": "not decided",
        "interaction": "more",
    }
    assert sac_arms.conclusions(found) == [
        "'Keep gamma, with more updates' is not recommended at longer cycles.",
        "A kept gamma is called as good as a carried one, within 20.",
    ]


@pytest.mark.parametrize(
    ("n", "scale", "are"), [(1, 1.0, "8"), (3, 0.01, "24 (scaled down to 1 % of the"), (16, 0.5, "128 (sc")]
)
def test_there_is_no_verdict_before_all_runs_are_there(outcome: Outcome, n: int, scale: float, are: str) -> None:
    fewer = replace(
        outcome,
        cells=tuple(replace(cell, seeds=cell.seeds[:n], scores=cell.scores[:n]) for cell in outcome.cells),
        about={**outcome.about, "scale": scale, "runs": n * len(outcome.cells)},
    )
    said = sac_arms.verdicts_text(fewer)
    assert f"No verdict before all 128 runs are there: these are {are}" in said
    assert "| carried-updates |" in said
    assert not any(words in said for words in ("recommended", "as good as", "interaction"))


def test_conclusions_follow_the_criteria() -> None:
    def effect(low: float, high: float) -> Estimate:
        return Estimate((low + high) / 2, low, high, "98.3333 % paired t", (16,))

    found = {"updates": effect(1, 2), "gamma": effect(-30, -1), "interaction": effect(-1, 1)}
    assert sac_arms.conclusions(found) == [
        "'Keep gamma, with more updates' is recommended at longer cycles.",
        "A kept gamma is not called as good as a carried one, within 20.",
    ]
