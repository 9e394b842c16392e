import json
from dataclasses import replace
from math import nan

import pytest

from benchmarks.robots.plan import problems
from benchmarks.robots.rows import Rows, csv_text
from benchmarks.robots.shims import STAND_INS, StandIn
from benchmarks.robots.train import LearningCurve, StoppedError, last_terms, row_of, tiny_setting
from benchmarks.robots.trial import BUDGET, Run, read_trial

TRIAL = read_trial()
NAME = "Go1JoystickFlatTerrain/8ms/horizons"
SETTING = TRIAL.settings[NAME]
TASK = TRIAL.tasks[SETTING.task]


def evaluation(reward: float, length: float = 2500) -> dict[str, float]:
    return {
        "eval/episode_reward": reward,
        "eval/episode_reward_std": 1.0,
        "eval/episode_reward/pose": 50.0,
        "eval/avg_episode_length": length,
    }


def curve_of(*rewards: float) -> LearningCurve:
    curve = LearningCurve(TASK, SETTING, "key")
    for index, reward in enumerate(rewards):
        curve.add(index * SETTING.interval_steps, evaluation(reward))
    return curve


def test_a_row_has_what_the_table_needs(capsys: pytest.CaptureFixture[str]) -> None:
    row = row_of(TRIAL, SETTING, Run("main", NAME, 0), curve_of(0, 10, 20), 128, 2)
    assert (row["score"], row["final"], row["start"]) == (0.5, 0.75, 0.0)  # an episode lasts 20 s
    assert row["simulated_s"] == pytest.approx(2 * SETTING.interval_s)
    assert (row["fallen"], row["intervals"], row["arms"]) == (0.0, 2, ["horizons"])
    assert row["terms"] == {"reward/pose": pytest.approx(0.4)}
    rows = Rows()
    rows.add({**row, "started": "2026-01-01", "versions": {}})
    assert "Go1JoystickFlatTerrain,8,horizons,0,main,0,finished,0.5,0.75" in csv_text(rows)
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["rate"] for record in printed] == [0.0, 0.5, 1.0]


def test_a_budget_is_in_the_row_of_its_run() -> None:
    row = row_of(TRIAL, SETTING, Run(BUDGET, NAME, 1000), curve_of(0, *[20.0] * 12), 128, 20)
    assert row["budget_intervals"] == TRIAL.numbers["min_intervals"]


def test_a_run_that_diverges_ends_and_keeps_its_row() -> None:
    curve = curve_of(0, 10, nan)
    with pytest.raises(StoppedError, match="diverged"):
        curve.add(3 * SETTING.interval_steps, evaluation(nan))
    row = row_of(TRIAL, SETTING, Run("main", NAME, 0), curve, 128, 5)
    assert (row["status"], row["curve"]["rate"]) == ("diverged", [0.0, 0.5, None, None])
    assert row["score"] == pytest.approx(0.5 / 5)  # untrained to the end of its budget


def test_a_budgets_run_ends_when_its_wall_time_is_over() -> None:
    curve = curve_of(0, 1)
    curve.wall_limit_s = 10
    curve.add(2, evaluation(2))
    curve.began -= 11
    with pytest.raises(StoppedError, match="wall time"):
        curve.add(3, evaluation(3))


def test_a_setting_that_is_only_compiled_ends_after_its_first_interval() -> None:
    curve = curve_of(0)
    curve.compile_only = True
    with pytest.raises(StoppedError, match="compiled"):
        curve.add(10, evaluation(1))


@pytest.mark.parametrize("name", list(TRIAL.settings))
def test_every_setting_can_be_rehearsed(name: str) -> None:
    tiny = tiny_setting(TRIAL.settings[name])
    assert list(problems(tiny)) == []
    assert tiny.values["num_envs"] <= 8
    assert replace(tiny, values={}, interval_steps=0, fixed_intervals=None) == replace(
        TRIAL.settings[name], values={}, interval_steps=0, fixed_intervals=None
    )


def test_terms_are_integrals_over_an_episode() -> None:
    metrics = {"eval/episode_reward/pose": 100.0, "eval/episode_reward/pose_std": 1.0, "eval/walltime": 3.0}
    assert last_terms(metrics, 0.02) == {"reward/pose": 2.0}


def test_a_stand_in_has_every_name_but_pythons_own() -> None:
    module = StandIn(STAND_INS[0])
    assert module.anything(1, two=3).more()
    with pytest.raises(AttributeError):
        _ = module.__wrapped__
