import numpy as np
import pytest
from scipy import stats

from cycletime.reports.summary import MOST_SEEDS, POWER, seeds_needed


def scores(mean: float, deviation: float, n: int = 3) -> dict[int, float]:
    """Scores by seed with exactly this mean and standard deviation."""
    raw = np.arange(n) - (n - 1) / 2
    return dict(enumerate(mean + deviation * raw / raw.std(ddof=1)))


@pytest.mark.parametrize(("difference", "deviations", "comparisons"), [(1.0, (1.0, 1.0), 1), (2.0, (1.0, 3.0), 4)])
def test_studies_with_so_many_seeds_decide_as_often_as_promised(
    difference: float, deviations: tuple[float, float], comparisons: int
) -> None:
    seeds = seeds_needed(scores(difference, deviations[0]), scores(0.0, -deviations[1]), comparisons)
    assert seeds is not None
    rng = np.random.default_rng(0)
    x = rng.normal(difference, deviations[0], (seeds, 20_000))
    y = (difference - x) * deviations[1] / deviations[0]  # as opposite as the scores that were seen
    share = np.mean(stats.ttest_rel(x, y).pvalue < 0.05 / comparisons)
    assert share == pytest.approx(POWER, abs=0.03)


def test_at_least_one_more_is_needed() -> None:
    assert seeds_needed(scores(100.0, 1.0), scores(0.0, 2.0)) == 4


def test_nothing_is_told_of_one_run_or_of_no_difference() -> None:
    assert seeds_needed({0: 1.0}, scores(0.0, 1.0)) is None
    assert seeds_needed(scores(0.0, 1.0), scores(0.0, 1.0)) is None
    assert seeds_needed({0: 1.0, 1: 1.0}, {2: 3.0, 3: 4.0}) is None


def test_the_most_seeds_are_told_and_no_more() -> None:
    difference = 1e-3
    deviation = difference * MOST_SEEDS**0.5 / (stats.norm.ppf(0.975) + stats.norm.ppf(POWER))
    assert seeds_needed(scores(difference, deviation * 0.99), dict.fromkeys(range(3), 0.0)) == pytest.approx(981, abs=3)
    assert seeds_needed(scores(difference, deviation * 1.01), dict.fromkeys(range(3), 0.0)) is None
