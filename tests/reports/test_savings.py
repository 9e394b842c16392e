from collections.abc import Callable
from typing import Any

import pytest

from cycletime.reports.savings import savings
from cycletime.reports.scores import load_scores
from cycletime.studies.folder import StudyFolder

MakeStudy = Callable[..., StudyFolder]


def test_tuning_each_cycle_time_is_priced_by_the_paper_s_grid(decided: StudyFolder) -> None:
    (saving,) = savings(load_scores(decided))
    assert saving.grid == "the paper's grid (5 batch sizes x 5 mini-batch sizes), since the study has none"
    # 2 cycle times x 25 points x 3 seeds; 25 x 3 to tune once; 9 runs in the study.
    assert (saving.each_runs, saving.once_runs, saving.study_runs, saving.saved_runs) == (150, 75, 9, 66)
    assert saving.hours(150) == pytest.approx(150 * 4800 * 0.002 / 3600)


def test_sac_has_the_paper_s_twelve_discounts(make_study: MakeStudy) -> None:
    folder = make_study(lambda labels, seed: None, algorithm="sac", rules=["tuned", "scaled"], tuned={"dt": "16ms"})
    (saving,) = savings(load_scores(folder))
    assert (saving.points, saving.each_runs) == (12, 2 * 12 * 3)


def test_the_study_s_own_grid_is_taken_and_its_tuning_is_not_paid_twice(make_study: MakeStudy) -> None:
    tuned = {"dt": "16ms", "batch": [100, 200, 400], "minibatch": 50}
    (saving,) = savings(load_scores(make_study(lambda labels, seed: None, tuned=tuned)))
    assert (saving.points, saving.grid) == (3, "the study's own grid")
    # 3 points at 16 ms, where both rules agree, and 6 at 32 ms, each with 3 seeds.
    assert (saving.each_runs, saving.once_runs, saving.study_runs, saving.saved_runs) == (18, 0, 27, -9)


def test_a_grid_tuned_at_a_cycle_time_that_the_study_lacks_is_paid(make_study: MakeStudy) -> None:
    tuned = {"dt": "64ms", "batch": [100, 200], "minibatch": 50}
    (saving,) = savings(load_scores(make_study(lambda labels, seed: None, tuned=tuned)))
    assert (saving.once_runs, saving.study_runs) == (6, 24)


def test_a_number_of_points_can_be_given(decided: StudyFolder) -> None:
    (saving,) = savings(load_scores(decided), grid_points=4)
    assert (saving.each_runs, saving.once_runs) == (24, 12)


@pytest.mark.parametrize("keys", [{"dts": ["16ms"]}, {"algorithm": "actor-critic", "tuned": {"discount": 0.9}}])
def test_nothing_is_saved_with_one_cycle_time_or_without_a_rule(make_study: MakeStudy, keys: dict[str, Any]) -> None:
    if "algorithm" in keys:
        keys = {**keys, "rules": []}
    assert savings(load_scores(make_study(lambda labels, seed: None, **keys))) == []


def test_tasks_are_priced_by_their_own_time(make_study: MakeStudy) -> None:
    folder = make_study(lambda labels, seed: None, task=["reacher", "double-pendulum"])
    hours = {saving.task: saving.run_h for saving in savings(load_scores(folder))}
    assert hours == {"reacher": pytest.approx(9.6 / 3600), "double-pendulum": pytest.approx(19.2 / 3600)}


def test_the_time_of_an_environment_is_told_by_its_curves(make_study: MakeStudy) -> None:
    keys: dict[str, Any] = {"task": [], "env": "Pendulum-v1", "dts": ["50ms", "100ms"]}
    (saving,) = savings(load_scores(make_study(lambda labels, seed: 1.0 if seed else None, **keys)))
    assert saving.run_h == pytest.approx(4800 * 0.05 / 3600)


def test_without_curves_it_is_unknown(make_study: MakeStudy) -> None:
    keys: dict[str, Any] = {"task": [], "env": "Pendulum-v1", "dts": ["50ms", "100ms"]}
    (saving,) = savings(load_scores(make_study(lambda labels, seed: None, **keys)))
    assert saving.run_h is saving.hours(5) is None
