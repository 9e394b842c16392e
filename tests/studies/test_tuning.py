"""Tuning on a toy whose best is known: winners, fresh seeds, kills."""

import json
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cycletime.errors import InputError, RunError
from cycletime.studies import tuning as tuning_module
from cycletime.studies.plan import Plan
from cycletime.studies.study_folder import StudyFolder
from cycletime.studies.tuning import tune
from cycletime.studies.tuning_spec import tuning_from_table
from cycletime.training.learning_curve import Episodes
from cycletime.training.spec import RunSpec
from cycletime.training.toml_files import TunedValues
from tests.studies.stand_ins import InTurn
from tests.studies.toy_tuning import BEST, GRID, SEARCH, TABLE, Killed, Toy, discount_of, files_of, toy, tuned


def test_a_grid_is_ranked_by_the_mean_over_seeds(tmp_path: Path) -> None:
    executor = Toy()
    outcome = tuned(GRID, tmp_path, executor)
    scores: dict[float, list[float]] = {}
    for spec in executor.done:
        if spec.seed < 1000:
            scores.setdefault(discount_of(spec), []).append(toy(spec) or 0.0)
    means = {discount: sum(each) / 3 for discount, each in scores.items()}
    assert [trial.point["discount"] for trial in outcome.ranking] == sorted(means, key=lambda each: -means[each])
    assert [trial.mean.value for trial in outcome.ranking if trial.mean] == pytest.approx(sorted(means.values())[::-1])
    about = {"searched": ["discount"], "trainer": "cycletime", "num_envs": 1}
    assert outcome.tuned() == TunedValues(outcome.tuning.dt, {"discount": BEST}, {"hidden": (8,)}, about)
    assert len(executor.done) == 5 * 3 + 4


@pytest.mark.parametrize(("sampler", "off"), [("tpe", 0.25), ("cmaes", 0.25), ("random", 0.5)])
def test_a_search_comes_close_to_the_best(sampler: str, off: float, tmp_path: Path) -> None:
    outcome = tuned({**SEARCH, "sampler": sampler, "trials": 25, "seeds": 1, "fresh_seeds": 1}, tmp_path)
    assert abs(log(log(outcome.winner.point["discount"]) / log(BEST))) < off
    assert len(outcome.ranking) == 25


@pytest.mark.parametrize(
    ("table", "sampler", "kill_after"),
    [(GRID, "grid", 4), (SEARCH, "tpe", 7), ({**SEARCH, "trials": 6}, "cmaes", 4)],  # TPE's first ten are random
)
def test_killed_anywhere_it_goes_on_to_the_same_files(
    table: dict[str, Any], sampler: str, kill_after: int, tmp_path: Path
) -> None:
    told = {**table, "sampler": sampler}
    undisturbed = Toy()
    wanted = files_of(told, tmp_path / "undisturbed", undisturbed)
    killed = tmp_path / "killed"
    done: list[str] = []
    lives = 0
    while True:
        lives += 1
        executor = Toy(kill_after=kill_after)
        try:
            found = files_of(told, killed, executor)
        except Killed:
            continue
        else:
            break
        finally:
            done += [spec.name for spec in executor.done]
    assert lives >= 5
    assert found == wanted
    assert sorted(done) == sorted(spec.name for spec in undisturbed.done)


def test_asked_to_stop_it_has_no_outcome_and_goes_on_later(tmp_path: Path) -> None:
    executor = Toy()
    for table in (GRID, SEARCH):
        assert tune(tuning_from_table(table), tmp_path / str(len(table)), executor, stop=lambda: True) is None
    assert executor.done == []


@pytest.mark.parametrize("table", [GRID, SEARCH])
@pytest.mark.parametrize("there", ["notes.txt", "study.json", "trials/notes.txt"])
def test_a_folder_with_other_things_is_refused_and_left_alone(
    there: str, table: dict[str, Any], tmp_path: Path
) -> None:
    other = tmp_path / there
    other.parent.mkdir(exist_ok=True)
    other.touch()
    what = "study" if other.parent.name == "trials" else "tuning"
    with pytest.raises(InputError) as refusal:
        tuned(table, tmp_path)
    assert str(refusal.value) == (
        f"{str(other.parent)!r} is not a {what}, and has other things in it, such as {other.name!r}: "
        "give a new folder or an empty one."
    )
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "search.json"] == [other]


@pytest.mark.parametrize("table", [GRID, SEARCH])
def test_a_tuning_keeps_its_folder_though_other_things_came_into_it(table: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(Killed):
        tuned(table, tmp_path, Toy(kill_after=0))
    (tmp_path / "notes.txt").touch()
    assert tuned(table, tmp_path).ranking


def test_more_trials_begin_with_those_that_are_there(tmp_path: Path) -> None:
    few = tuned({**SEARCH, "trials": 11}, tmp_path)
    executor = Toy(workers=5)  # more workers than at first must not change the order
    many = tuned({**SEARCH, "trials": 14}, tmp_path, executor)
    points = {trial.number: trial.point for trial in many.ranking}
    assert all(points[trial.number] == trial.point for trial in few.ranking)
    assert len({discount_of(spec) for spec in executor.done if spec.seed < 1000}) == 3


def test_another_seed_of_the_sampler_searches_elsewhere(tmp_path: Path) -> None:
    table = {**SEARCH, "trials": 4}
    first, second = (tuned({**table, "sampler_seed": seed}, tmp_path / str(seed)) for seed in (0, 1))
    assert not {trial.point["discount"] for trial in first.ranking} & {
        trial.point["discount"] for trial in second.ranking
    }


def test_a_search_refuses_to_go_on_with_another_optuna(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tuned({**SEARCH, "trials": 1}, tmp_path)
    monkeypatch.setattr(tuning_module, "version", lambda package: "0.1")
    with pytest.raises(InputError, match=r"and 0\.1 may ask for other trials: pip install optuna==\d"):
        tuned(SEARCH, tmp_path)


@pytest.mark.parametrize(
    ("seeds", "fresh"), [(3, [1000, 1001]), ([5, 999], [1000, 1001]), ([1000], [1001, 1002]), ([7000, 3], [7001, 7002])]
)
def test_fresh_seeds_are_none_of_the_tuning_seeds(seeds: Any, fresh: list[int], tmp_path: Path) -> None:  # noqa: ANN401
    executor = Toy()
    outcome = tuned({**GRID, "seeds": seeds, "fresh_seeds": 2}, tmp_path, executor)
    rerun = executor.done[-2:]
    assert [spec.seed for spec in rerun] == fresh
    assert {discount_of(spec) for spec in rerun} == {outcome.winner.point["discount"]}
    assert not set(fresh) & {spec.seed for spec in executor.done[:-2]}


def test_of_equal_trials_the_first_wins(tmp_path: Path) -> None:
    assert tuned(GRID, tmp_path, Toy(score=lambda spec: 1.0)).winner.point == {"discount": 0.5}


def test_a_trial_with_a_run_astray_comes_last(tmp_path: Path) -> None:
    def astray(spec: RunSpec) -> float | None:
        return None if discount_of(spec) == BEST and spec.seed == 2 else toy(spec)

    ranking = tuned(GRID, tmp_path, Toy(score=astray)).ranking
    assert ranking[-1].point == {"discount": BEST}
    assert ranking[-1].trouble == "1 of 3 runs diverged or ended no episode"


def test_without_any_mean_there_is_no_winner(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="No trial of 5 has a mean over its seeds; the first: 3 of 3 runs diverged"):
        tuned(GRID, tmp_path, Toy(score=lambda spec: None))


def test_a_search_goes_on_past_values_that_make_no_sense_together(tmp_path: Path) -> None:
    ranges = {"batch": {"low": 100, "high": 1000, "log": True}, "minibatch": {"low": 50, "high": 500}}
    outcome = tuned({**TABLE, "algorithm": "ppo", "search": ranges, "trials": 20}, tmp_path)
    impossible = [trial for trial in outcome.ranking if trial.point["minibatch"] > trial.point["batch"]]
    assert 0 < len(impossible) < 20
    assert all("must be at most the batch" in (trial.trouble or "") for trial in impossible)
    assert list(outcome.ranking[-len(impossible) :]) == impossible
    assert {type(value) for trial in outcome.ranking for value in trial.point.values()} == {int}


def test_lists_can_be_searched_too_and_fields_that_no_rule_carries(tmp_path: Path) -> None:
    table = {**TABLE, "tuned": {"discount": [0.5, BEST]}, "set": {"hidden": [[8], [4, 4]]}, "sampler": "tpe"}
    outcome = tuned({**table, "trials": 8, "at_once": 3}, tmp_path)
    assert outcome.winner.point["discount"] == BEST
    assert outcome.tuned().others == {"hidden": outcome.winner.point["hidden"]}
    assert {trial.point["hidden"] for trial in outcome.ranking} == {(8,), (4, 4)}


def test_points_are_trials_with_every_value_of_lists(tmp_path: Path) -> None:
    points = [{"discount": 0.5, "value_rate": 0.1}, {"discount": BEST, "value_rate": 0.2}]
    outcome = tuned({**TABLE, "points": points, "set": {"hidden": [[8], [4, 4]]}}, tmp_path)
    found = [trial.point for trial in sorted(outcome.ranking, key=lambda trial: trial.number)]
    assert found == [{**point, "hidden": hidden} for point in points for hidden in ((8,), (4, 4))]
    assert outcome.tuning.names == ["discount", "value_rate", "hidden"]
    assert outcome.tuned().others == {"value_rate": 0.2, "hidden": outcome.winner.point["hidden"]}


def test_the_study_of_a_search_has_all_trials_that_have_runs(tmp_path: Path) -> None:
    ranges = {"batch": {"low": 100, "high": 1000, "log": True}, "minibatch": {"low": 50, "high": 500}}
    table = {**TABLE, "algorithm": "ppo", "search": ranges, "trials": 20}
    outcome = tuned(table, tmp_path)
    possible = [trial for trial in sorted(outcome.ranking, key=lambda trial: trial.number) if trial.mean]
    trials = StudyFolder.open(tmp_path / "trials")
    assert trials.study.points == {"ppo": tuple(trial.point for trial in possible)}
    plan = Plan.of(trials.study)
    assert len(plan.runs) == 3 * len(possible) == len(trials.store.places)
    assert set(trials.states(planned.name for planned in plan.runs).values()) == {"done"}
    (fresh,) = StudyFolder.open(tmp_path / "fresh").study.cells()
    assert {name: fresh.labels[name] for name in ranges} == outcome.winner.point
    # Fewer trials leave what is known of the others, and so do those who are behind.
    before = (tmp_path / "trials" / "study.json").read_bytes()
    tuned({**table, "trials": 3}, tmp_path)
    assert (tmp_path / "trials" / "study.json").read_bytes() == before
    tuned({**table, "sampler_seed": 1, "trials": 3}, tmp_path)
    assert len(StudyFolder.open(tmp_path / "trials").study.points["ppo"]) <= 3


def test_a_point_that_is_asked_for_twice_is_one_of_the_study(tmp_path: Path) -> None:
    executor = Toy()
    outcome = tuned({**GRID, "sampler": "random", "trials": 12}, tmp_path, executor)
    (points,) = StudyFolder.open(tmp_path / "trials").study.points.values()
    assert len(outcome.ranking) == 12
    assert len({trial.point["discount"] for trial in outcome.ranking}) == len(points) < 12
    assert outcome.origin()["runs"] == 3 * len(points) == len(executor.done) - 4


@pytest.mark.parametrize("text", ["", "{}", '{"optuna": "4", "at_once": "two"}'])
def test_what_is_no_search_is_one_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "search.json").write_text(text)
    with pytest.raises(InputError, match=r"search\.json cannot be read: put it back, or give another folder\.$"):
        tuned(SEARCH, tmp_path)


@pytest.mark.usefixtures("compiled_quickly")
def test_the_objective_is_the_mean_over_100_bins_of_real_curves(tmp_path: Path) -> None:
    table = {**TABLE, "dt": "32ms", "tuned": {"discount": [0.5, 0.9]}, "env_steps": 6400, "seeds": 1, "fresh_seeds": 1}
    outcome = tune(tuning_from_table(table), tmp_path, InTurn())
    assert outcome is not None
    store = StudyFolder.open(tmp_path / "trials").store
    for trial in outcome.ranking:
        curve = store.run(outcome.tuning.cell(trial.point).run(0).name).curve
        assert isinstance(curve, Episodes)
        bins: list[float] = []
        for place in range(100):
            inside = (curve.env_steps > 64 * place) & (curve.env_steps <= 64 * (place + 1))
            bins.append(curve.returns[inside].mean() if inside.any() else bins[-1] if bins else np.nan)
        first = next(each for each in bins if not np.isnan(each))
        assert trial.mean is not None
        assert trial.mean.value == pytest.approx(np.mean([first if np.isnan(each) else each for each in bins]))
    assert json.loads((tmp_path / "fresh" / "study.json").read_text())["study"]["seeds"] == [1000]
