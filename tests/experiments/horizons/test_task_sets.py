"""The search's studies: every value that a rule gives is run, once, with seeds that tuning has not seen."""

from dataclasses import replace
from itertools import pairwise
from math import exp, log

import pytest

from cycletime.cuda.sac import expected_s
from cycletime.duration import Duration
from cycletime.experiments.horizons.candidates import (
    SAC_SEARCH,
    SAC_TRIAL,
    SEARCH,
    TRIAL,
    TaskSet,
    retuned_points,
    starting_points,
)
from cycletime.rules import PPO
from cycletime.studies.spec_file import study_from_table, study_table
from tests.experiments.horizons.made import BEST_S, outcome

RULES, point_key = SEARCH.spec.rules, SEARCH.spec.point_key


@pytest.mark.parametrize("task", [*SEARCH.tasks, *TRIAL.tasks])
def test_tuning_tries_the_same_seconds_at_every_cycle_time(task: str) -> None:
    """From 6 to 400 steps and from 5 to 40 at the middle cycle time, whose b and m are the paper's."""
    study = (SEARCH if task in SEARCH.tasks else TRIAL).tuning(task)
    assert study.name == f"tuning-{task}"
    places = {(cell.labels["discount"], cell.labels["trace_decay"], str(cell.dt)) for cell in study.cells()}
    assert len(places) == 7 * 4 * 5
    middle = study.tuned["ppo"].dt
    assert middle is not None
    assert [float(dt / middle) for dt in study.dts] == [1 / 4, 1 / 2, 1, 2, 4]
    values = study.tuned["ppo"].values
    assert (values["batch"], values["minibatch"]) == ((2000,), (50,))
    assert values["discount"] == pytest.approx([exp(-1 / (6.25 * 2**each)) for each in range(7)], abs=1e-5)
    assert values["trace_decay"] == pytest.approx([exp(-1 / (5 * 2**each)) for each in range(4)], abs=1e-5)


@pytest.mark.parametrize(("search", "trial"), [(SEARCH, TRIAL), (SAC_SEARCH, SAC_TRIAL)], ids=["ppo", "sac"])
def test_what_judges_is_not_what_was_chosen_on(search: TaskSet, trial: TaskSet) -> None:
    assert not set(search.tasks) & set(trial.tasks)
    assert trial.seeds >= 30


@pytest.mark.parametrize("task", SEARCH.tasks)
def test_it_starts_where_tuning_was_best_and_where_everybody_does(task: str) -> None:
    found = starting_points(outcome(SEARCH.tuning(task)))
    assert [(str(start.values.dt), start.kind) for start in found] == [
        (dt, kind) for dt in ("4ms", "16ms", "64ms") for kind in ("tuned", "untuned")
    ]
    for start in found:
        assert isinstance(start.values, PPO)
        sizes = {"4ms": (8000, 200), "16ms": (2000, 50), "64ms": (500, 12)}[str(start.values.dt)]
        assert (start.values.batch, start.values.minibatch, start.values.learning_rate) == (*sizes, 3e-4)
        if start.kind == "tuned":
            spans = start.values.seconds()
            assert (spans["discount"], spans["trace_decay"]) == pytest.approx(BEST_S[task], rel=2e-3)
        else:
            assert (start.values.discount, start.values.trace_decay) == (0.99, 0.95)


def test_every_value_that_a_rule_gives_is_a_point_and_none_is_twice() -> None:
    tuning = outcome(SEARCH.tuning("reacher"))
    study = SEARCH.study(tuning, RULES)
    places = [point_key({"dt": cell.dt, **vars(cell.agent)}) for cell in study.cells()]
    assert len(set(places)) == len(places)
    wanted = {
        point_key(start.point(dt, rule))
        for start in starting_points(tuning)
        for rule in RULES.values()
        for dt in study.dts
    }
    assert wanted | {point_key(point) for point in retuned_points(tuning).values()} == set(places)
    assert len(wanted) < len(RULES) * len(study.dts) * 6 / 3, "most rules agree at most cycle times"
    assert not set(study.seeds) & set(SEARCH.tuning("reacher").seeds)
    assert study_from_table(study_table(study)) == study, "as a pack takes it along"


def test_a_point_is_found_though_its_last_digits_differ() -> None:
    point = starting_points(outcome(SEARCH.tuning("reacher")))[0].point(Duration("8ms"), "scaled")
    assert point_key({**point, "discount": point["discount"] * (1 + 1e-15)}) == point_key(point)
    assert point_key({**point, "discount": point["discount"] * (1 + 1e-6)}) != point_key(point)


def test_rules_start_from_the_learning_rate_that_they_would_not_change() -> None:
    start = starting_points(outcome(SEARCH.tuning("reacher")))[0]
    assert replace(start, values=replace(start.values, learning_rate=1e-3)).point(Duration("16ms"), "baseline") == {
        **start.point(Duration("16ms"), "baseline"),
        "learning_rate": 1e-3,
    }
    assert isinstance(start.values, PPO)


BLOCKS = 132
"""Runs at a time on an H200."""


@pytest.mark.parametrize("task_set", [SAC_SEARCH, SAC_TRIAL], ids=["search", "trial"])
def test_tuning_of_sac_tries_the_same_seconds_at_every_cycle_time(task_set: TaskSet) -> None:
    for task in task_set.tasks:
        study = task_set.tuning(task)
        assert study.name == f"sac-tuning-{task}"
        assert len(study.seeds) >= 10
        cells = list(study.cells())
        assert len(cells) == 7 * 4
        middle = study.tuned["sac"].dt
        assert middle is not None
        assert [float(dt / middle) for dt in study.dts] == [1 / 2, 1, 2, 4]
        steps = [-1 / log(discount) for discount in study.tuned["sac"].values["discount"]]
        assert [after / before for before, after in pairwise(steps)] == pytest.approx([2] * 6, rel=2e-2)


@pytest.mark.parametrize("task_set", [SAC_SEARCH, SAC_TRIAL], ids=["search", "trial"])
def test_the_kernel_takes_all_points_of_sac_in_the_time_that_there_is(task_set: TaskSet) -> None:
    """Every study with all candidates, of which the frozen list has fewer: a call of eight minutes has room for it."""
    for task in task_set.tasks:
        tuning = outcome(task_set.tuning(task))
        study = task_set.study(tuning, task_set.spec.rules)
        assert study.name == f"sac-{task_set.name}-{task}"
        assert {str(start.values.dt) for start in starting_points(tuning)} == {
            str(study.dts[index]) for index in (0, 1, 3)
        }
        specs = [cell.run(seed) for cell in study.cells() for seed in study.seeds]
        assert {spec.engine.name for spec in specs} == {"cuda"}, "others would be refused"
        taken_s = [expected_s(spec) for spec in specs]
        assert max(taken_s) < 120
        assert sum(taken_s) / BLOCKS < 400
        assert study_from_table(study_table(study)) == study, "as a pack takes it along"
