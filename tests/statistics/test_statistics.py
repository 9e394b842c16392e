"""What holds of all statistics alike: equal scores, one run, runs that went astray, wrong input, coverage."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cycletime.errors import InputError
from cycletime.statistics import (
    Estimate,
    Options,
    bootstrap,
    compare,
    frequency_averaged_score,
    iqm,
    mean_and_error,
    mean_and_interval,
    mean_curve,
)
from tests.statistics.samples import ends


@pytest.mark.parametrize("n", [2, 5])
def test_equal_scores_have_an_interval_without_width(n: int) -> None:
    scores = [0.1] * n  # whose sum is not exact
    assert ends(mean_and_error(scores)) == ends(mean_and_interval(scores)) == (0.1, 0.1)
    assert ends(iqm(scores)) == pytest.approx((0.1, 0.1))
    assert ends(bootstrap(scores, np.median)) == (0.1, 0.1)
    assert compare(scores, [0.1] * 7).verdict == "not decided by the data"
    assert compare([0.2] * n, scores).verdict == "better"


def test_one_run_has_no_interval_and_is_not_taken_for_certain() -> None:
    several = {"4ms": [1.0, 2.0, 3.0], "8ms": [4.0]}
    alone = [mean_and_error([3.0]), mean_and_interval([3.0]), iqm([3.0]), bootstrap([3.0], np.mean)]
    for found in [*alone, frequency_averaged_score(several)]:
        assert (found.low, found.high, found.resamples) == (None, None, 0)
        assert found.interval == "no interval from 1 run"
    assert [each.value for each in alone] == [3.0] * 4
    for undecided in (compare([1.0], [2.0, 3.0]), compare([1.0], [2.0], paired=True)):
        assert (undecided.p_value, undecided.difference.low) == (None, None)
        assert undecided.verdict == "not decided by the data"
    assert mean_curve([[1, 2]], 10).low is None


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
        (lambda: mean_and_error([1, 2], failed="drop"), "'drop' is not a way to treat failed"),  # type: ignore[arg-type]
        (lambda: compare([1, 2], [1, 2, 3], paired=True), "2 and 3 runs cannot be paired"),
        (lambda: frequency_averaged_score({"4ms": [1], "0.004": [2]}), "'4ms' and '0.004' are the same"),
        (lambda: frequency_averaged_score({"dt-aware": [1]}), "'dt-aware' is not a time span"),
        (lambda: mean_curve([], 10), "There are no scores"),
        (lambda: mean_curve([[1, 2], [1, 2, 3]], 10), "The curves have 2 or 3 bins"),
        (lambda: mean_curve([[1, np.nan], [1, 2]], 10), "1 of 2 runs have no finite score"),
    ],
)
def test_wrong_inputs_are_refused_in_a_sentence(call: Any, message: str) -> None:  # noqa: ANN401
    with pytest.raises(InputError, match=message):
        call()


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
