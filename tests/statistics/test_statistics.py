"""Against written-out formulas, resamples enumerated in full, SciPy's tests, and simulated coverage."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from cycletime.errors import InputError
from cycletime.loops import Episodes
from cycletime.statistics import (
    Comparison,
    Estimate,
    Options,
    bootstrap,
    compare,
    frequency_averaged_score,
    holm,
    iqm,
    mean_and_error,
    mean_and_interval,
    mean_curve,
    probability_of_improvement,
)
from cycletime.statistics.resampling import means_drawn_anew

SKEWED = [1.0, 1.2, 1.3, 1.7, 2.0, 2.1, 3.5, 9.0]


def draws(n: int, seed: int = 0, shift: float = 0.0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(shift, 2.0, n)


def ends(estimate: Estimate) -> tuple[float, float]:
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.high


def test_the_standard_error_is_that_of_the_formula() -> None:
    found = mean_and_error([1, 2, 3, 4])
    error = (5 / 3 / 4) ** 0.5  # the squares' sum is 5, over n - 1, over n
    assert found.value == 2.5
    assert ends(found) == pytest.approx((2.5 - error, 2.5 + error))
    assert (found.n, found.interval, found.resamples) == (4, "standard error", 0)


def test_the_t_interval_is_scipy_s() -> None:
    scores = draws(7)
    theirs = stats.ttest_1samp(scores, 0).confidence_interval(0.9)
    found = mean_and_interval(scores, confidence=0.9)
    assert ends(found) == pytest.approx(tuple(theirs))
    assert found.interval == "90 % t"


def test_a_percentile_interval_is_that_of_all_resamples() -> None:
    scores = np.array([0.0, 1.0, 3.1, 7.7, 8.4])
    all_means = [np.mean(resample) for resample in product(scores, repeat=5)]
    found = bootstrap(scores, np.mean, confidence=0.8, resamples=40_000)
    assert ends(found) == pytest.approx(tuple(np.quantile(all_means, [0.1, 0.9])), abs=0.05)
    assert (found.interval, found.resamples, found.n) == ("80 % bootstrap", 40_000, 5)


def test_a_bca_interval_is_that_of_efron_s_formula() -> None:
    scores = np.array(SKEWED)
    resamples = np.random.default_rng(1).choice(scores, (100_000, len(scores))).mean(axis=1)
    bias = stats.norm.ppf((resamples < scores.mean()).mean())
    left_out = np.array([np.delete(scores, i).mean() for i in range(len(scores))])
    deviations = left_out.mean() - left_out
    acceleration = (deviations**3).sum() / (6 * (deviations**2).sum() ** 1.5)
    normal = bias + stats.norm.ppf([0.025, 0.975])
    levels = stats.norm.cdf(bias + normal / (1 - acceleration * normal))
    found = bootstrap(scores, np.mean, method="BCa", resamples=40_000)
    assert ends(found) == pytest.approx(tuple(np.quantile(resamples, levels)), rel=0.02)
    assert found.interval == "95 % bootstrap (BCa)"
    assert ends(found)[1] > ends(bootstrap(scores, np.mean))[1]  # the long tail is above


def test_runs_are_drawn_within_each_cell_by_itself() -> None:
    a, b = np.array([0.0, 1.0, 5.0]), np.array([20.0, 23.3])
    combinations = product(product(a, repeat=3), product(b, repeat=2))
    all_scores = [(np.mean(one) + np.mean(other)) / 2 for one, other in combinations]
    found = frequency_averaged_score({"4ms": a, "8ms": b}, confidence=0.8, resamples=40_000)
    assert ends(found) == pytest.approx(tuple(np.quantile(all_scores, [0.1, 0.9])), abs=0.05)
    assert (found.cells, found.n) == ((3, 2), 5)


def test_differences_between_cells_are_no_uncertainty() -> None:
    assert ends(frequency_averaged_score({"4ms": [0, 0, 0], "8ms": [100, 100, 100]})) == (50, 50)


def test_every_cycle_time_weighs_the_same_however_many_runs_it_has() -> None:
    assert frequency_averaged_score({"4ms": [0.0] * 30, "8ms": [10.0, 10.0], 0.016: [2.0, 8.0]}).value == 5.0


@pytest.mark.parametrize(
    ("scores", "expected"), [([800, 70, 6, 5, 4, 3, 2, 1], 4.5), ([0, 1, 2, 30, 400], 11), ([1, 6], 3.5)]
)
def test_the_iqm_cuts_a_quarter_at_either_side(scores: list[float], expected: float) -> None:
    assert iqm(scores).value == pytest.approx(expected)
    assert iqm(scores).value == pytest.approx(stats.trim_mean(scores, 0.25))


def test_the_iqm_of_several_cells_is_that_of_all_their_runs() -> None:
    found = iqm({"a": [1, 2, 3, 100], "b": [-50, 4, 5, 6]})
    assert found.value == np.mean([2, 3, 4, 5])
    assert found.cells == (4, 4)


def test_one_wild_run_moves_the_mean_and_not_the_iqm() -> None:
    calm, wild = [*range(10)], [*range(9), 1e6]
    assert iqm(wild).value == iqm(calm).value
    assert mean_and_error(wild).value > 1e4


def test_the_probability_of_improvement_is_mann_and_whitney_s_u_over_the_pairs() -> None:
    x, y = np.round(draws(12)), np.round(draws(9, seed=1, shift=1.0))
    assert set(x) & set(y), "ties are wanted"
    found = probability_of_improvement(x, y)
    assert found.value == pytest.approx(stats.mannwhitneyu(x, y).statistic / (12 * 9))
    assert (found.cells, found.interval) == ((12, 9), "95 % bootstrap")
    assert probability_of_improvement([1, 2], [0, 2]).value == (0.5 + 1 + 1) / 4


def test_the_probability_over_cycle_times_is_the_mean_of_theirs() -> None:
    x = {"4ms": [3.0, 4.0], "8ms": [0.0, 1.0, 2.0]}
    y = {"8ms": [1.0, 1.0], "4ms": [1.0, 2.0]}
    assert probability_of_improvement(x, y).value == pytest.approx((1 + 0.5) / 2)


def test_the_interval_of_the_probability_is_that_of_all_resamples() -> None:
    x, y = [1.0, 4.0, 6.0], [0.0, 3.0, 5.0, 7.0]
    all_shares = [
        np.mean([a > b for a in one for b in other])
        for one, other in product(product(x, repeat=3), product(y, repeat=4))
    ]
    found = probability_of_improvement(x, y, confidence=0.7, resamples=20_000)
    assert ends(found) == pytest.approx(tuple(np.quantile(all_shares, [0.15, 0.85])), abs=1e-9)


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


@pytest.mark.parametrize("n", [2, 5])
def test_equal_scores_have_an_interval_without_width(n: int) -> None:
    scores = [0.1] * n  # whose sum is not exact
    assert ends(mean_and_error(scores)) == ends(mean_and_interval(scores)) == (0.1, 0.1)
    assert ends(iqm(scores)) == pytest.approx((0.1, 0.1))
    for method in ("percentile", "BCa"):
        assert ends(bootstrap(scores, np.median, method=method)) == (0.1, 0.1)
    assert compare(scores, [0.1] * 7).verdict == "not decided by the data"
    assert compare([0.2] * n, scores).verdict == "better"
    assert probability_of_improvement(scores, scores).value == 0.5


def test_bca_where_it_is_undefined_becomes_percentile_and_says_so() -> None:
    found = probability_of_improvement([4, 5, 6], [1, 2, 3], method="BCa")
    assert ends(found) == (1.0, 1.0)
    assert found.interval == "95 % bootstrap (percentile, as BCa is undefined)"


def test_one_run_has_no_interval_and_is_not_taken_for_certain() -> None:
    several = {"4ms": [1.0, 2.0, 3.0], "8ms": [4.0]}
    alone = [mean_and_error([3.0]), mean_and_interval([3.0]), iqm([3.0]), bootstrap([3.0], np.mean)]
    for found in [*alone, frequency_averaged_score(several), probability_of_improvement([3.0], [1.0, 2.0])]:
        assert (found.low, found.high, found.resamples) == (None, None, 0)
        assert found.interval == "no interval from 1 run"
    assert [each.value for each in alone] == [3.0] * 4
    for undecided in (compare([1.0], [2.0, 3.0]), compare([1.0], [2.0], paired=True)):
        assert (undecided.p_value, undecided.difference.low) == (None, None)
        assert undecided.verdict == "not decided by the data"
    assert mean_curve([[1, 2]], 10).low is mean_curve([[1, 2]], 10, band="bootstrap").low is None


ASTRAY = [1.0, 2.0, float("nan"), 3.0, None, float("-inf")]


def test_runs_that_went_astray_are_refused_or_left_out_and_counted() -> None:
    good = [1.0, 2.0, 3.0]
    with pytest.raises(InputError, match=r"^3 of 6 runs have no finite score: failed='exclude' leaves such out"):
        mean_and_error(ASTRAY)
    for found, clean in [
        (mean_and_error(ASTRAY, failed="exclude"), mean_and_error(good)),
        (mean_and_interval(ASTRAY, failed="exclude"), mean_and_interval(good)),
        (iqm({"4ms": ASTRAY, "8ms": [1, 2]}, failed="exclude"), iqm({"4ms": good, "8ms": [1, 2]})),
        (compare(ASTRAY, [4, 5], failed="exclude").difference, compare(good, [4, 5]).difference),
    ]:
        assert (found.value, found.low, found.high, found.n) == (clean.value, clean.low, clean.high, clean.n)
        assert (found.n_failed, clean.n_failed) == (3, 0)
        assert str(found).endswith(", 3 failed)")


def test_of_a_pair_with_a_failed_run_both_are_left_out() -> None:
    found = compare([1, None, 3, 4], [0, 5, 1, None], paired=True, failed="exclude").difference
    assert (found.value, found.cells, found.n_failed) == (1.5, (2,), 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean_and_error([]), "There are no scores: give one for each run."),
        (lambda: iqm({}), "There are no cells"),
        (lambda: iqm({"a": [1, 2], "b": []}), "There are no scores"),
        (lambda: mean_and_error([None, None], failed="exclude"), "No run of 2 has a finite score"),
        (lambda: mean_and_error(np.zeros((30, 5))), r"one number for each run, not an array of shape \(30, 5\)"),
        (lambda: mean_and_error(3.0), r"shape \(\)"),
        (lambda: mean_and_error(["fast"]), r"one number for each run, not \['fast'\]"),
        (lambda: mean_and_interval([1, 2], confidence=95), "A confidence of 95 is not between 0 and 1"),
        (lambda: compare([1, 2], [1, 2], confidence=1.0), "A confidence of 1.0 is not between 0 and 1"),
        (lambda: iqm([1, 2], resamples=0), "0 resamples make no interval"),
        (lambda: bootstrap([1, 2], np.mean, method="basic"), "'basic' is not a method"),  # type: ignore[arg-type]
        (lambda: mean_and_error([1, 2], failed="drop"), "'drop' is not a way to treat failed"),  # type: ignore[arg-type]
        (lambda: compare([1, 2], [1, 2, 3], paired=True), "2 and 3 runs cannot be paired"),
        (lambda: frequency_averaged_score({"4ms": [1], "0.004": [2]}), "'4ms' and '0.004' are the same"),
        (lambda: frequency_averaged_score({"dt-aware": [1]}), "'dt-aware' is not a time span"),
        (lambda: probability_of_improvement({"4ms": [1]}, {"8ms": [1]}), "the cells 4ms, 8ms"),
        (lambda: probability_of_improvement({"4ms": [1]}, [1]), "give both alike"),
        (lambda: mean_curve([], 10), "There are no scores"),
        (lambda: mean_curve([[1, 2], [1, 2, 3]], 10), "The curves have 2 or 3 bins"),
        (lambda: mean_curve([[1, np.nan], [1, 2]], 10), "1 of 2 runs have no finite score"),
        (lambda: mean_curve([[1, 2]], 10, band="range"), "'range' is not a band"),  # type: ignore[arg-type]
    ],
)
def test_wrong_inputs_are_refused_in_a_sentence(call: Any, message: str) -> None:  # noqa: ANN401
    with pytest.raises(InputError, match=message):
        call()


def test_a_mean_curve_is_the_mean_in_each_bin_at_its_end() -> None:
    steps = np.array([10, 30])
    runs = [Episodes(steps, steps, np.array(returns), steps) for returns in ([1.0, 5.0], [3.0, 5.0])]
    curve = mean_curve([run.binned(40, bins=4) for run in runs], env_steps=40)
    assert curve.env_steps.tolist() == [10, 20, 30, 40]
    assert curve.mean.tolist() == [2, 2, 5, 5]
    assert curve.low is not None
    assert curve.high is not None
    assert curve.low.tolist() == pytest.approx([1, 1, 5, 5])
    assert curve.high.tolist() == pytest.approx([3, 3, 5, 5])
    assert (curve.n, curve.interval) == (2, "standard error")


def test_a_curve_s_bands_are_those_of_each_bin_alone() -> None:
    runs = np.random.default_rng(0).normal(size=(9, 4)).cumsum(axis=1)
    failed = [*runs, np.full(4, np.nan)]
    error = mean_curve(failed, 4, failed="exclude")
    band = mean_curve(failed, 4, failed="exclude", band="bootstrap", confidence=0.9, seed=3)
    assert error.low is not None
    assert band.low is not None
    assert band.high is not None
    for i in range(4):
        assert error.low[i] == pytest.approx(runs[:, i].mean() - stats.sem(runs[:, i]))
        alone = bootstrap(runs[:, i], np.mean, confidence=0.9, seed=3)
        assert (band.low[i], band.high[i]) == pytest.approx(ends(alone))
    assert (band.n, band.n_failed, band.interval, band.resamples) == (9, 1, "90 % bootstrap", 10_000)


def test_an_estimate_reads_as_a_sentence_s_part() -> None:
    assert (
        str(Estimate(-4.12345, -4.6, -3.7, "standard error", (30,))) == "-4.123 (-4.6 to -3.7, standard error, n = 30)"
    )
    assert str(Estimate(1, 0, 2, "95 % Welch t", (30, 30), 1)) == "1 (0 to 2, 95 % Welch t, n = 30 + 30, 1 failed)"
    assert str(Estimate(1, 0, 2, "95 % bootstrap", (30,) * 5)) == "1 (0 to 2, 95 % bootstrap, n = 5 x 30)"
    assert str(mean_and_error([3])) == "3 (no interval from 1 run, n = 1)"


SCORES = st.lists(st.integers(-1000, 1000).map(float), min_size=2, max_size=12)


@settings(max_examples=30, deadline=None)
@given(x=SCORES, y=SCORES, shift=st.integers(-1000, 1000), factor=st.sampled_from([0.5, 2.0, 8.0]), data=st.data())
def test_statistics_follow_shifts_and_scales_and_not_the_order(
    x: list[float], y: list[float], shift: int, factor: float, data: st.DataObject
) -> None:
    moved_x, moved_y = [[factor * score + shift for score in scores] for scores in (x, y)]
    few = Options(resamples=200)
    for statistic in (mean_and_error, mean_and_interval, lambda scores: iqm(scores, **few)):
        before, after = statistic(x), statistic(moved_x)
        expected = [factor * value + shift for value in (before.value, *ends(before))]
        assert [after.value, *ends(after)] == pytest.approx(expected, abs=1e-6)
        assert statistic(data.draw(st.permutations(x))).value == pytest.approx(before.value, abs=1e-9)
    difference, moved = compare(x, y).difference, compare(moved_x, moved_y).difference
    assert ends(moved) == pytest.approx([factor * end for end in ends(difference)], abs=1e-6)
    assert compare(y, x).difference.value == pytest.approx(-difference.value, abs=1e-9)
    better = probability_of_improvement(x, y, **few)
    assert probability_of_improvement(moved_x, moved_y, **few) == better
    assert probability_of_improvement(y, x, **few).value == pytest.approx(1 - better.value)


def test_the_same_seed_draws_the_same_and_another_differs() -> None:
    scores = draws(20)
    assert iqm(scores, seed=5) == iqm(scores, seed=5)
    assert ends(iqm(scores, seed=5)) != ends(iqm(scores, seed=6))
    width = np.ptp(ends(iqm(scores)))
    assert np.std([ends(iqm(scores, seed=seed))[0] for seed in range(10)]) < 0.02 * width


@pytest.mark.parametrize(
    ("kind", "n", "of_t", "of_bootstrap"),
    [
        ("normal", 5, (0.92, 0.98), (0.75, 0.90)),
        ("normal", 30, (0.92, 0.98), (0.90, 0.98)),
        ("skewed", 5, (0.83, 0.93), (0.72, 0.88)),
        ("skewed", 30, (0.88, 0.97), (0.87, 0.97)),
    ],
)
def test_intervals_cover_as_often_as_the_docs_say(
    kind: str, n: int, of_t: tuple[float, float], of_bootstrap: tuple[float, float]
) -> None:
    source = np.random.default_rng(n)
    samples = source.normal(1.0, 1.0, (400, n)) if kind == "normal" else source.exponential(1.0, (400, n))

    def coverage(intervals: list[Estimate]) -> float:
        return float(np.mean([low <= 1.0 <= high for low, high in map(ends, intervals)]))

    by_t = coverage([mean_and_interval(sample) for sample in samples])
    resampled = coverage([bootstrap(sample, np.mean, resamples=400, seed=i) for i, sample in enumerate(samples)])
    assert of_t[0] < by_t < of_t[1]
    assert of_bootstrap[0] < resampled < of_bootstrap[1]


def test_means_drawn_anew_spread_as_their_standard_errors() -> None:
    cells = [np.arange(20.0), np.full(3, 7.0)]
    drawn = means_drawn_anew(cells, resamples=20_000)
    assert drawn.shape == (20_001, 2)
    assert list(drawn[0]) == [9.5, 7.0]
    assert drawn[1:, 0].mean() == pytest.approx(9.5, abs=0.05)
    assert drawn[1:, 0].std() == pytest.approx(np.std(cells[0]) / 20**0.5, rel=0.03)
    assert set(drawn[:, 1]) == {7.0}
    np.testing.assert_array_equal(drawn, means_drawn_anew(cells, resamples=20_000))
