"""Comparisons against SciPy's tests, and Holm's correction against the written-out one."""

import numpy as np
import pytest
from scipy import stats

from cycletime.errors import InputError
from cycletime.statistics import Comparison, compare, holm, mean_and_error
from tests.statistics.samples import draws, ends


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_comparing_agrees_with_scipy_s_tests(confidence: float) -> None:
    x, y = draws(11, shift=1.5), 3 * draws(6, seed=1)
    for found, theirs in [
        (compare(x, y, confidence=confidence), stats.ttest_ind(x, y, equal_var=False)),
        (compare(x[:6], y, confidence=confidence, paired=True), stats.ttest_rel(x[:6], y)),
    ]:
        assert found.p_value == pytest.approx(theirs.pvalue)
        assert ends(found.difference) == pytest.approx(tuple(theirs.confidence_interval(confidence)))
    assert compare(x, y).difference.cells == (11, 6)
    assert compare(x[:6], y, paired=True).difference.cells == (6,)


def test_a_verdict_is_given_where_the_interval_excludes_zero() -> None:
    low, high = draws(10), draws(10, seed=1, shift=5.0)
    assert compare(high, low).verdict == "better"
    assert compare(low, high).verdict == "worse"
    assert str(compare([1, 2], [3, 4])) == "-2 (-5.042 to 1.042, 95 % Welch t, n = 2 + 2): not decided by the data"
    assert compare(low, draws(10, seed=2)).verdict == "not decided by the data"
    for seed in range(30):
        found = compare(draws(5, seed=seed, shift=2.0), draws(5, seed=seed + 100))
        below, above = ends(found.difference)
        assert (found.verdict == "better", found.verdict == "worse") == (below > 0, above < 0)


def test_pairs_see_a_difference_that_the_spread_between_pairs_hides() -> None:
    pairs = 100 * draws(8)
    x, y = pairs + 1 + 0.01 * draws(8, seed=1), pairs
    assert compare(x, y).verdict == "not decided by the data"
    assert compare(x, y, paired=True).verdict == "better"


def test_holm_s_correction_is_the_written_out_one() -> None:
    alone = {
        name: Comparison(mean_and_error([1, 2]), p, 0.95)
        for name, p in zip("abcd", (0.01, 0.04, 0.03, 0.005), strict=True)
    }
    table = holm(alone)
    assert list(table) == list("abcd")
    assert [each.p_value for each in table.values()] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert [each.verdict == "better" for each in table.values()] == [True, False, False, True]
    assert all(each.verdict == "better" for each in alone.values())
    assert {each.comparisons for each in table.values()} == {4}


def test_holm_s_correction_never_exceeds_one_and_counts_what_was_not_decidable() -> None:
    table = holm(
        {1: compare([1.0], [2.0]), 2: Comparison(mean_and_error([1, 2]), 0.7, 0.95), 3: compare([1, 1], [0, 0])}
    )
    assert [each.p_value for each in table.values()] == [None, 1.0, 0.0]
    assert holm({}) == {}


def test_comparisons_that_the_data_chose_are_corrected_for_all_they_were_chosen_from() -> None:
    alone = {name: Comparison(mean_and_error([1, 2]), p, 0.95) for name, p in (("a", 0.01), ("b", 0.002))}
    table = holm(alone, comparisons=10)
    assert [each.p_value for each in table.values()] == pytest.approx([9 * 0.01, 10 * 0.002])
    assert {each.comparisons for each in table.values()} == {10}
    with pytest.raises(InputError, match="comparisons is 1: the table has 2 already"):
        holm(alone, comparisons=1)
    with pytest.raises(InputError, match="is not a table: give comparisons by name"):
        holm(list(alone.values()))  # type: ignore[arg-type]


def test_the_best_of_many_equals_is_seldom_called_better() -> None:
    studies = np.random.default_rng(0).normal(size=(300, 8, 10))
    called = {"all pairs": 0, "its own": 0}
    for study in studies:
        best = int(np.argmax(study.mean(axis=-1)))
        alone = {other: compare(study[best], study[other]) for other in range(8) if other != best}
        for name, count in (("all pairs", 28), ("its own", None)):
            verdicts = {each.verdict for each in holm(alone, comparisons=count).values()}
            called[name] += "better" in verdicts
    assert called["all pairs"] <= 0.05 * 300 < called["its own"]


def test_of_a_pair_with_a_failed_run_both_are_left_out() -> None:
    found = compare([1, None, 3, 4], [0, 5, 1, None], paired=True, failed="exclude").difference
    assert (found.value, found.cells, found.n_failed) == (1.5, (2,), 2)
