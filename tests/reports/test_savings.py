from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cycletime.duration import Duration
from cycletime.reports.answer import TuningSaving, tuning_savings
from cycletime.studies.scores import read_scores
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.toml_files import TunedValues, write_tuned

MakeStudy = Callable[..., StudyFolder]


def runs_of(saving: TuningSaving) -> tuple[int, ...]:
    return tuple(price.runs for price in (saving.each, saving.once, saving.study, saving.saved))


def test_tuning_each_cycle_time_is_priced_by_the_paper_s_grid(decided: StudyFolder) -> None:
    (saving,) = tuning_savings(read_scores(decided))
    assert saving.how == (
        "by the paper's grid (5 batch sizes x 5 mini-batch sizes), since the study does not say how its values were "
        "tuned"
    )
    # 2 cycle times x 25 points x 3 seeds; 25 x 3 to tune once; 9 runs in the study.
    assert runs_of(saving) == (150, 75, 9, 66)
    assert saving.each.hours == pytest.approx(150 * 4800 * 0.002 / 3600)
    assert saving.saved.hours == pytest.approx(66 * 4800 * 0.002 / 3600)


def test_sac_has_the_paper_s_twelve_discounts(make_study: MakeStudy) -> None:
    folder = make_study(lambda labels, seed: None, algorithm="sac", rules=["tuned", "scaled"], tuned={"dt": "16ms"})
    (saving,) = tuning_savings(read_scores(folder))
    assert (saving.points, saving.each.runs) == (12, 2 * 12 * 3)


def test_the_study_s_own_grid_is_taken_and_its_tuning_is_not_paid_twice(make_study: MakeStudy) -> None:
    tuned = {"dt": "16ms", "batch": [100, 200, 400], "minibatch": 50}
    (saving,) = tuning_savings(read_scores(make_study(lambda labels, seed: None, tuned=tuned)))
    assert (saving.points, saving.how) == (3, "by the study's own grid")
    # 3 points at 16 ms, where both rules agree, and 6 at 32 ms, each with 3 seeds.
    assert runs_of(saving) == (18, 0, 27, -9)
    assert not saving.saved.is_positive


def test_a_grid_tuned_at_a_cycle_time_that_the_study_lacks_is_paid(make_study: MakeStudy) -> None:
    tuned = {"dt": "64ms", "batch": [100, 200], "minibatch": 50}
    (saving,) = tuning_savings(read_scores(make_study(lambda labels, seed: None, tuned=tuned)))
    assert (saving.once.runs, saving.study.runs) == (6, 24)


def test_a_number_of_points_can_be_given(decided: StudyFolder) -> None:
    (saving,) = tuning_savings(read_scores(decided), grid_points=4)
    assert (saving.each.runs, saving.once.runs) == (24, 12)


@pytest.mark.parametrize("keys", [{"dts": ["16ms"]}, {"algorithm": "actor-critic", "tuned": {"discount": 0.9}}])
def test_nothing_is_saved_with_one_cycle_time_or_without_a_rule(make_study: MakeStudy, keys: dict[str, Any]) -> None:
    if "algorithm" in keys:
        keys = {**keys, "rules": []}
    assert tuning_savings(read_scores(make_study(lambda labels, seed: None, **keys))) == []


def test_tasks_are_priced_by_their_own_time(make_study: MakeStudy) -> None:
    folder = make_study(lambda labels, seed: None, task=["reacher", "double-pendulum"])
    hours = {
        saving.task: saving.tuning.hours / 75 for saving in tuning_savings(read_scores(folder)) if saving.tuning.hours
    }
    assert hours == {"reacher": pytest.approx(9.6 / 3600), "double-pendulum": pytest.approx(19.2 / 3600)}


def test_the_time_of_an_environment_is_told_by_its_curves(make_study: MakeStudy) -> None:
    keys: dict[str, Any] = {"task": [], "env": "Pendulum-v1", "dts": ["50ms", "100ms"]}
    (saving,) = tuning_savings(read_scores(make_study(lambda labels, seed: 1.0 if seed else None, **keys)))
    assert saving.tuning.hours == pytest.approx(75 * 4800 * 0.05 / 3600)


def test_without_curves_it_is_unknown(make_study: MakeStudy) -> None:
    keys: dict[str, Any] = {"task": [], "env": "Pendulum-v1", "dts": ["50ms", "100ms"]}
    (saving,) = tuning_savings(read_scores(make_study(lambda labels, seed: None, **keys)))
    assert saving.tuning.hours is saving.saved.hours is None
    assert saving.saved.is_positive


def test_the_tuning_that_really_happened_is_the_price(make_study: MakeStudy, tmp_path: Path) -> None:
    origin = {"study": "t", "trials": 7, "runs": 30, "simulated_hours": 6.0, "tuning": {"seeds": [0, 1, 2, 3, 4]}}
    values = TunedValues(Duration("16ms"), {"batch": 100, "minibatch": 50})
    write_tuned(tmp_path / "tuned.toml", "ppo", values, origin)
    folder = make_study(lambda labels, seed: None, tuned=str(tmp_path / "tuned.toml"))
    scores = read_scores(StudyFolder.open(folder.path))
    (saving,) = tuning_savings(scores)
    assert (saving.points, saving.seeds) == (7, 5)
    assert runs_of(saving) == (60, 30, 9, 21)
    assert (saving.each.hours, saving.once.hours) == (12.0, 6.0)
    assert saving.how.startswith("like the tuning 't' that the study's values are from (")
    (other,) = tuning_savings(scores, grid_points=4)
    assert runs_of(other) == (24, 12, 9, 3)


def test_a_file_that_does_not_say_what_its_tuning_took_leaves_the_paper_s_grid(
    make_study: MakeStudy, tmp_path: Path
) -> None:
    (tmp_path / "tuned.toml").write_text("[tuned]\ndt = '16ms'\nbatch = 100\nminibatch = 50\n")
    (saving,) = tuning_savings(read_scores(make_study(lambda labels, seed: None, tuned=str(tmp_path / "tuned.toml"))))
    assert runs_of(saving) == (150, 75, 9, 66)
