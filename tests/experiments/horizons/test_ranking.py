"""Rules compared: normalised scores from made-up outcomes whose numbers can be told by hand."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import log, nan

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from cycletime.agents import PPOAgent
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.experiments.horizons import ranking
from cycletime.experiments.horizons.candidates import SEARCH, retuned_points, starting_points
from cycletime.experiments.horizons.ranking import Interval, RuleComparison, ScoreScale
from cycletime.experiments.horizons.results import Evidence
from cycletime.rules import Rule, laws
from cycletime.studies.spec import Cell
from tests.experiments.horizons.made import NOTHING, by_horizons, outcome

RULES = SEARCH.spec.rules


def compared(score: Callable[[Cell], float] = by_horizons, noise: float = 0.0) -> RuleComparison:
    tuning = outcome(SEARCH.tuning("reacher"))
    found = outcome(SEARCH.study(tuning, RULES), score, noise)
    scale = ScoreScale(NOTHING["reacher"], retuned_points(tuning))
    return RuleComparison(RULES, starting_points(tuning), {"reacher": found}, {"reacher": scale})


@cache
def noiseless() -> RuleComparison:
    return compared()


def scores_of(comparison: RuleComparison, rule: str) -> NDArray[np.float64]:
    """[starting points, other cycle times] of a rule from tuned values."""
    return np.stack([comparison.scores(rule, start)[0] for start in comparison.starts_of("tuned")])


def test_a_rule_that_keeps_the_best_horizons_has_all_that_tuning_has() -> None:
    assert scores_of(noiseless(), "scaled") == pytest.approx(np.ones((3, 4)), abs=1e-4)
    assert noiseless().interval("scaled", "tuned", "average").value == pytest.approx(1, abs=1e-4)


def test_scores_lie_between_nothing_and_tuning() -> None:
    """Baseline from 16 ms keeps gamma, so that both horizons are those of 16 ms times rho."""
    scores = scores_of(noiseless(), "baseline")[1]
    wanted = [1 / (1 + 2 * abs(log(rho))) for rho in (1 / 4, 1 / 2, 2, 4)]
    assert scores == pytest.approx(wanted, rel=1e-3)


def test_the_average_is_over_starts_and_cycle_times_and_the_worst_the_mean_of_the_lowest() -> None:
    scores = scores_of(noiseless(), "baseline")
    assert noiseless().interval("baseline", "tuned", "average").value == pytest.approx(scores.mean())
    lowest = [1 / (1 + 2 * log(16)), 1 / (1 + 2 * log(4)), 1 / (1 + 2 * log(16))]
    assert noiseless().interval("baseline", "tuned", "worst").value == pytest.approx(np.mean(lowest), rel=1e-3)


def test_the_order_is_that_of_the_averages() -> None:
    ranked = noiseless().ranked("tuned", "average")
    averages = [noiseless().interval(rule, "tuned", "average").value for rule in ranked]
    assert averages == sorted(averages, reverse=True)
    assert set(ranked) == set(RULES)
    assert ranked[-1] == "baseline"


def test_a_difference_of_rules_that_share_runs_is_surer_than_each_of_them() -> None:
    noisy = compared(noise=5.0)
    alone, more = noisy.interval("floor-4", "tuned", "average"), noisy.interval("floor-4", "tuned", "average", "scaled")
    assert more.high - more.low < alone.high - alone.low
    assert more.low < more.value < more.high
    same = noisy.interval("floor-4", "tuned", "average", "floor-4")
    assert (same.value, same.low, same.high) == (0, 0, 0)


def test_runs_that_went_astray_count_as_the_worst_that_there_is() -> None:
    astray = Duration("64ms")

    def score(cell: Cell) -> float:
        return nan if cell.dt == astray and _rate(cell) != 3e-4 else by_horizons(cell)

    scores = scores_of(compared(score), "scaled-rate-half")
    assert np.isfinite(scores).all()
    lowest = min(
        by_horizons(cell) for cell in SEARCH.study(outcome(SEARCH.tuning("reacher")), RULES).cells() if _kept(cell)
    )
    assert scores[0, 3] == pytest.approx((lowest - NOTHING["reacher"]) / 100, rel=1e-2)


def test_a_rule_whose_runs_are_not_there_is_refused() -> None:
    other = replace(noiseless(), rules={"other": Rule("other", {"discount": laws.power_with_floor(5)})})
    with pytest.raises(InputError, match=r"search-reacher has no runs of .*: it is of other candidates\."):
        other.scores("other", other.starts[0])


def test_a_cycle_time_counts_where_tuning_has_learned_something() -> None:
    """At 4 ms tuning gains a tenth of what it does elsewhere: nothing can be said of it, nor from there."""

    def score(cell: Cell) -> float:
        gained = by_horizons(cell) - NOTHING["reacher"]
        return NOTHING["reacher"] + gained * (0.1 if cell.dt == Duration("4ms") else 1)

    found = compared(score)
    assert [str(dt) for dt in found.dts["reacher"]] == ["8ms", "16ms", "32ms", "64ms"]
    assert [str(start.values.dt) for start in found.starts_of("tuned")] == ["16ms", "64ms"]
    assert scores_of(found, "scaled").shape == (2, 3)


def test_scores_beyond_the_scale_count_as_its_ends() -> None:
    """Where everything but the best is a hundred times as far below nothing as the best is above it."""

    def score(cell: Cell) -> float:
        gained = by_horizons(cell) - NOTHING["reacher"]
        return NOTHING["reacher"] + (gained if gained > 99 else -100 * gained)

    scores = scores_of(compared(score), "baseline")
    assert set(scores.ravel()) == {ranking.LOWEST}


def test_intervals_over_tasks_are_student_s_t_of_the_tasks_means(evidence: Evidence) -> None:
    comparison = evidence.trial
    values = [comparison.interval("baseline", "tuned", "worst", task=task).value for task in comparison.dts]
    theirs = stats.ttest_1samp(values, 0).confidence_interval()
    found = comparison.over_tasks("baseline", "tuned", "worst")
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))


def test_where_tuning_is_not_sure_to_have_learned_nothing_counts() -> None:
    assert compared(noise=1e4).dts == {}
    assert compared(lambda cell: NOTHING["reacher"] - 1).dts == {}


def test_intervals_that_hold_together_are_wider() -> None:
    drawn = np.array([50.0, *range(101)])
    found = Interval.of(drawn, together=5)
    assert (found.low, found.high) == pytest.approx((0.5, 99.5))


def test_an_interval_has_the_middle_95_percent_of_the_draws() -> None:
    found = Interval.of(np.array([50.0, *range(101)]))
    assert (found.value, found.low, found.high) == pytest.approx((50, 2.5, 97.5))
    assert str(Interval(0.5, 0.25, 0.75)) == "0.500 [0.250, 0.750]"


def _rate(cell: Cell) -> float:
    assert isinstance(cell.agent, PPOAgent)
    return cell.agent.learning_rate


def _kept(cell: Cell) -> bool:
    return cell.dt != Duration("64ms") or _rate(cell) == 3e-4
