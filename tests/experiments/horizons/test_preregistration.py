"""The frozen list: who is chosen follows from the criteria, and the file can be read by what takes rules."""

import tomllib
from pathlib import Path

import pytest

from cycletime.agents import PPOAgent
from cycletime.experiments.horizons.candidates import PPO_CANDIDATES, SEARCH
from cycletime.experiments.horizons.ranking import Interval, RuleComparison
from cycletime.experiments.horizons.results import load_comparison
from cycletime.experiments.outcome import read_results
from cycletime.rules.rule import parse_own_rules
from cycletime.studies.spec import Cell
from tests.experiments.horizons.freezing import (
    chosen_candidates,
    prediction_sentences,
    predictions,
    write_preregistration,
)
from tests.experiments.horizons.made import NOTHING, by_horizons, save_results


def likes_six_steps_and_small_rates(cell: Cell) -> float:
    """As horizons have it, but fewer than six steps are as bad as a horizon a third as long, and so are rates."""
    assert isinstance(cell.agent, PPOAgent)
    nothing = NOTHING[cell.world.name]
    short = cell.agent.discount < 0.846 or cell.agent.trace_decay < 0.846
    slow = cell.agent.learning_rate > 3e-4 or (float(cell.dt) > 0.032 and cell.agent.learning_rate == 3e-4)
    return nothing + (by_horizons(cell) - nothing) * (0.5 if short else 1) * (0.8 if slow else 1)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> RuleComparison:
    folder = save_results(tmp_path_factory.mktemp("results"), likes_six_steps_and_small_rates, 1.0)
    return load_comparison(SEARCH, read_results(folder))


def test_the_best_are_chosen_each_once_with_all_reasons(comparison: RuleComparison) -> None:
    chosen = chosen_candidates(comparison)
    best = next(name for name in comparison.ranked("tuned", "average") if name in PPO_CANDIDATES)
    assert chosen[best].startswith("the best average from tuned values")
    assert "floor-6" in best
    assert "min-rate" in best
    assert 1 <= len(chosen) <= 4
    assert sum(why.count("the best") for why in chosen.values()) == 4


def test_predictions_are_what_the_search_has_found(comparison: RuleComparison) -> None:
    name = next(iter(chosen_candidates(comparison)))
    told = dict(predictions(comparison, name))
    assert len(told) == 2 * 2 * 3
    more = told["average_from_tuned_than_baseline"]
    found = comparison.interval(name, "tuned", "average", less="baseline")
    assert more["predicted"] == "more"
    assert more["search"] == pytest.approx([found.value, found.low, found.high], abs=5e-4)


def test_predictions_are_told_in_words(comparison: RuleComparison) -> None:
    told = list(prediction_sentences(comparison, next(iter(chosen_candidates(comparison)))))
    assert len(told) == 4
    assert told[0].startswith("From tuned values on average: more than baseline, dt-aware")


@pytest.mark.parametrize(
    ("interval", "sign"), [((0.2, 0.1, 0.3), "more"), ((-0.2, -0.3, -0.1), "less"), ((0.1, -0.1, 0.3), "undecided")]
)
def test_signs(interval: tuple[float, float, float], sign: str) -> None:
    assert Interval(*interval).sign == sign


def test_the_file_has_rules_that_others_read(comparison: RuleComparison, tmp_path: Path) -> None:
    told = tomllib.loads(write_preregistration(comparison, tmp_path).read_text())
    assert parse_own_rules(told["own_rules"]) == {name: PPO_CANDIDATES[name] for name in chosen_candidates(comparison)}
    assert list(told["predictions"]) == list(told["own_rules"])
