from math import nan

import pytest

from benchmarks.robots.measures import at_the_end, budget_intervals, over_learning, rate_of
from benchmarks.robots.trial import read_preregistration, tasks_of

TASKS = tasks_of(read_preregistration())


def test_a_rate_does_not_depend_on_the_cycle_time() -> None:
    # A policy that earns 0.5 a second for 20 s, by a task that multiplies by dt and by one that does not.
    go1, cartpole = TASKS["Go1JoystickFlatTerrain"], TASKS["CartpoleSwingup"]
    for dt_s, steps in ((0.008, 2500), (0.02, 1000), (0.04, 500)):
        assert rate_of(go1, dt_s, steps, {"eval/episode_reward": 10.0}) == pytest.approx(0.5)
        assert rate_of(cartpole, dt_s, steps, {"eval/episode_reward": 0.5 * steps}) == pytest.approx(0.5)
    terms = {f"eval/episode_{term}": 25.0 for term in TASKS["AlohaHandOver"].measured_by}
    assert rate_of(TASKS["AlohaHandOver"], 0.02, 250, terms) == pytest.approx(4 * 25 / 250)


def test_means_over_learning_and_at_the_end() -> None:
    assert over_learning([0, 1, 2, 3]) == pytest.approx(1.5)
    assert over_learning([0.0, 2.0, 2.0]) == pytest.approx(1.5)
    assert at_the_end([0, 1, 2, 3]) == pytest.approx(2.5)
    assert at_the_end(list(range(21))) == pytest.approx((17 + 18 + 19 + 20) / 4)


def test_an_evaluation_without_a_number_counts_as_untrained() -> None:
    assert over_learning([1.0, 3.0, None, nan]) == over_learning([1.0, 3.0, 1.0, 1.0])
    assert at_the_end([1.0, 3.0, None]) == pytest.approx(2.0)
    assert over_learning([None, 1.0]) is None
    assert over_learning([1.0]) is None


def test_a_budget_is_half_as_much_again_as_most_of_the_learning_took() -> None:
    curve = [0.0, 1, 2, 3, 4, 5, 6, 7, 8.1, 9, 10, *[10.0] * 10]
    assert budget_intervals(curve, 0.1, 128, 5) == 12  # 0.8 of 10 after 8 intervals
    assert budget_intervals([0.0, 9.0, 10.0, *[10.0] * 18], 0.1, 128, 5) == 5  # not less than the fewest
    assert budget_intervals([float(i) for i in range(21)], 0.1, 128, 5) == 20  # nor more than there were


def test_a_task_that_was_not_learned_is_left_out() -> None:
    assert budget_intervals([1.0, 1.02, 1.01], 1.0, 128, 5) is None  # 5 standard errors are 0.44
    assert budget_intervals([1.0, nan, nan], 1.0, 128, 5) is None
