"""What the trial says, on made-up runs in which it is known who is better."""

from collections.abc import Callable
from functools import cache

import pytest

from cycletime.agents import PPOAgent
from cycletime.experiments.horizons.candidates import SEARCH, Rules, retuned_points, starting_points
from cycletime.experiments.horizons.preregistration import comparison_key, planned_comparisons
from cycletime.experiments.horizons.ranking import RuleComparison, ScoreScale
from cycletime.experiments.horizons.verdicts import judged_predictions
from cycletime.studies.spec import Cell
from tests.experiments.horizons.made import NOTHING, by_horizons, outcome

TASK = "double-pendulum"
SUBJECT = SEARCH.spec
RULES: Rules = SUBJECT.against_references({name: SUBJECT.candidates[name] for name in ("floor-6", "scaled-rate-half")})


def trial(score: Callable[[Cell], float], noise: float = 1.0) -> RuleComparison:
    tuning = outcome(SEARCH.tuning(TASK))
    found = outcome(SEARCH.study(tuning, RULES), score, noise)
    scales = {TASK: ScoreScale(NOTHING[TASK], retuned_points(tuning))}
    return RuleComparison(RULES, starting_points(tuning), {TASK: found}, scales)


def rate_of(cell: Cell) -> float:
    assert isinstance(cell.agent, PPOAgent)
    return cell.agent.learning_rate


def likes_small_rates(cell: Cell) -> float:
    return by_horizons(cell) + (40 if rate_of(cell) < 3e-4 else 0)


def hates_other_rates(cell: Cell) -> float:
    return by_horizons(cell) - (40 if rate_of(cell) != 3e-4 else 0)


@cache
def found(score: Callable[[Cell], float]) -> RuleComparison:
    return trial(score)


def test_who_is_more_than_each_of_the_papers_rules_is_better() -> None:
    assert found(likes_small_rates).winner == "scaled-rate-half"
    assert found(likes_small_rates).verdict("scaled-rate-half") == "better"


def test_who_is_less_than_one_of_them_is_worse() -> None:
    assert found(hates_other_rates).verdict("scaled-rate-half") == "worse"
    assert found(hates_other_rates).winner == "floor-6"


def test_who_cannot_be_told_from_one_of_them_is_no_worse() -> None:
    unsure = trial(lambda _cell: NOTHING[TASK] + 100, noise=0.0)
    assert {unsure.verdict(name) for name in unsure.judged} == {"no worse"}
    assert not unsure.changes_default


def test_the_default_changes_where_nothing_speaks_against_it() -> None:
    assert found(likes_small_rates).changes_default
    assert not found(likes_small_rates).objections()


def test_what_speaks_against_it_is_named() -> None:
    def bad_untuned(cell: Cell) -> float:
        """From gamma .99 at 4 ms, a horizon of 0.4 s, whatever changes the learning rate is a disaster."""
        assert isinstance(cell.agent, PPOAgent)
        short = cell.agent.discount ** (0.004 / float(cell.dt)) < 0.9905
        return likes_small_rates(cell) - (300 if short and rate_of(cell) != 3e-4 else 0)

    harmful = trial(bad_untuned)
    assert harmful.winner == "scaled-rate-half"
    assert harmful.verdict(harmful.winner) == "better"
    assert list(harmful.objections()) == [
        "the average from untuned values",
        "the worst cycle time from untuned values",
    ]
    assert not harmful.changes_default


@pytest.mark.parametrize(("predicted", "became"), [("more", "held"), ("less", "refuted"), ("undecided", None)])
def test_what_became_of_a_prediction(predicted: str, became: str | None) -> None:
    told = {comparison_key(*what): {"predicted": "undecided"} for what in planned_comparisons(SUBJECT)}
    told[comparison_key("tuned", "average", "dt-aware")] = {"predicted": predicted}
    of = judged_predictions(found(likes_small_rates), {"scaled-rate-half": told}, "scaled-rate-half")
    assert of == ({} if became is None else {"average_from_tuned_than_dt_aware": became})


def test_intervals_of_all_candidates_hold_together() -> None:
    judged = found(likes_small_rates)
    alone = judged.interval("floor-6", "tuned", "average", less="dt-aware")
    together = judged.advantage("floor-6", "dt-aware")
    assert together.value == alone.value
    assert together.high - together.low >= alone.high - alone.low
