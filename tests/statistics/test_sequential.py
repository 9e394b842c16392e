"""Looks: the error that may be spent, verdicts against written-out formulas, and the error rate by simulation."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import count
from math import comb

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from cycletime.errors import InputError
from cycletime.statistics import Judgement, SequentialDesign

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]


def normal(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    return rng.normal(size=size)


def failing(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """One run in five learns nothing."""
    return np.where(rng.random(size) < 0.2, -2.4, 0.6) + 0.3 * rng.normal(size=size)


def looked(draw: Draw, means: Sequence[float], rng: np.random.Generator, looks: int = 6) -> list[Judgement[int]]:
    """What is judged until one is left, or at so many looks."""
    plan, left, made = SequentialDesign(len(means)), tuple(range(len(means))), []
    runs = {label: mean + draw(rng, plan.runs(looks)) for label, mean in enumerate(means)}
    for look in range(1, looks + 1):
        made.append(Judgement.of(plan, look, {label: runs[label][: plan.runs(look)].tolist() for label in left}))
        left = made[-1].left
        if len(left) == 1:
            break
    return made


def test_looks_grow_by_half_and_spend_no_more_than_there_is() -> None:
    looks = SequentialDesign(4, 0.9)
    assert [looks.runs(look) for look in range(1, 8)] == [5, 8, 12, 17, 26, 38, 57]
    spent = sum(comb(4, 2) * Fraction(1, looks.comparisons(look)) for look in range(1, 1000))
    assert Fraction(998, 1000) < spent < 1
    assert looks.confidence_of_one(1) == pytest.approx(1 - 0.1 / 2 / 6)


def test_a_comparison_is_that_of_pairs_at_the_level_of_its_look() -> None:
    rng, looks = np.random.default_rng(1), SequentialDesign(3)
    x, y = rng.normal(0, 1, 8).tolist(), rng.normal(1, 2, 8).tolist()
    told = looks.compare(2, x, y)
    expected = stats.ttest_rel(x, y)
    interval = expected.confidence_interval(1 - 0.05 / (2 * 3) / 3)
    assert told.p_value == pytest.approx(expected.pvalue)
    assert (told.difference.low, told.difference.high) == pytest.approx((interval.low, interval.high))


def test_those_that_are_worse_are_dropped_and_the_leader_is_the_best_of_the_rest() -> None:
    scores = {"a": [0.0, 0.1, 0.2, 0.1, 0.0], "b": [9.0, 9.1, 9.2, 8.9, 9.1], "c": [9.3, 8.8, 9.2, 9.4, 9.0]}
    judged = Judgement.of(SequentialDesign(3), 1, scores)
    assert (judged.dropped, judged.left, judged.leader) == ({"a": "c"}, ("b", "c"), "c")
    assert judged.lead("b").difference.value == pytest.approx(0.08)
    assert judged.lead("b").difference.low == pytest.approx(-judged.pairs["b", "c"].difference.high)  # type: ignore[operator]
    assert not judged.is_decided()
    assert judged.is_decided(enough=2.0)
    assert not judged.is_decided(enough=0.01)


def test_one_that_is_left_is_decided() -> None:
    judged = Judgement.of(SequentialDesign(2), 1, {"a": [0.0, 0.1, 0.0, 0.2], "b": [5.0, 5.1, 5.2, 5.1]})
    assert judged.is_decided()
    assert judged.left == ("b",)


@pytest.mark.parametrize("draw", [normal, failing])
def test_among_equals_hardly_any_is_ever_dropped(draw: Draw) -> None:
    """The promise is 5 % of studies at most: were it 5 %, more than 10 of 100 would happen once in 100 times."""
    rng = np.random.default_rng(0)
    wrong = sum(any(each.dropped for each in looked(draw, [0.0] * 3, rng)) for _ in range(100))
    assert wrong <= 10


def test_the_best_is_found_with_fewer_runs_where_it_is_plain() -> None:
    rng = np.random.default_rng(0)
    runs = {}
    for lead in (0.8, 3.0):
        made = [looked(normal, [0.0, 0.0, lead], rng, looks=9) for _ in range(20)]
        assert all(each[-1].left == (2,) for each in made)
        runs[lead] = np.mean([sum(map(len, each[-1].scores.values())) for each in made])
    assert runs[3.0] < 24 < runs[0.8]


def test_what_makes_no_sense_is_refused() -> None:
    for wrong in ({"candidates": 1}, {"candidates": 2, "confidence": 1.0}, {"candidates": 2, "first_runs": 1}):
        with pytest.raises(InputError):
            SequentialDesign(**wrong)
    assert next(look for look in count(1) if SequentialDesign(2).runs(look) > 1000) < 20
