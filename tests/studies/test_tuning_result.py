from pathlib import Path

import pytest

from cycletime.agents import PPOAgent
from cycletime.studies.spec_file import study_from_table
from cycletime.training.toml_files import read_tuned
from tests.studies.toy_tuning import BEST, GRID, TABLE, Toy, noise, toy, tuned


def test_the_best_of_many_equals_falls_with_fresh_seeds(tmp_path: Path) -> None:
    table = {**TABLE, "seeds": 2, "tuned": {"discount": [0.5 + 0.01 * place for place in range(20)]}, "fresh_seeds": 40}
    outcome = tuned(table, tmp_path, Toy(score=noise))
    assert outcome.winner.mean is not None
    assert outcome.fresh.mean is not None
    assert outcome.winner.mean.value > 1.0  # of 20 means of 2, each of which is 0 but for noise
    assert abs(outcome.fresh.mean.value) < 0.5
    assert outcome.fall is not None
    told = outcome.origin()
    assert outcome.fall.difference.value == pytest.approx(outcome.fresh.mean.value - outcome.winner.mean.value)
    assert told["trials_not_decided_from_winner"] == 19


def test_a_clear_winner_is_told_from_the_runner_up(tmp_path: Path) -> None:
    outcome = tuned({**TABLE, "tuned": {"discount": [0.5, BEST, 0.999]}}, tmp_path)
    told = outcome.origin()
    assert {each.verdict for each in outcome.against_others.values()} == {"better"}
    assert told["trials_not_decided_from_winner"] == 0
    assert outcome.ranking[1].point == {"discount": 0.5}
    assert told["tuning"]["n"] == 3
    assert told["fresh"] == {**told["fresh"], "n": 4, "n_failed": 0, "seeds": [1000, 1001, 1002, 1003]}


def test_a_fresh_run_astray_is_left_out_and_counted(tmp_path: Path) -> None:
    told = tuned(GRID, tmp_path, Toy(score=lambda spec: None if spec.seed == 1003 else toy(spec))).origin()
    assert (told["fresh"]["n"], told["fresh"]["n_failed"]) == (3, 1)


def test_the_file_says_what_the_tuning_took(tmp_path: Path) -> None:
    told = tuned(GRID, tmp_path).origin()
    # 5 trials with 3 seeds of 1,200 steps of 2 ms.
    assert (told["runs"], told["simulated_hours"]) == (15, pytest.approx(15 * 2.4 / 3600))
    other = {**GRID, "env": "Pendulum-v1"}
    del other["task"]
    in_env = tuned(other, tmp_path / "env").origin()
    assert in_env["simulated_hours"] == told["simulated_hours"], "as its runs found the environment's time step"


def test_the_file_gives_studies_the_winner_s_own_runs(tmp_path: Path) -> None:
    values = {"batch": [400, 800], "minibatch": 20, "discount": BEST}
    table = {**TABLE, "algorithm": "ppo", "tuned": values, "set": {"hidden": [[8, 8]]}}
    executor = Toy()
    outcome = tuned(table, tmp_path, executor)
    outcome.write(tmp_path, tmp_path / "tuned.toml")
    read = read_tuned(tmp_path / "tuned.toml")
    assert read.algorithms == ("ppo",)
    assert read.of("ppo") == outcome.tuned()
    study = study_from_table(
        {
            **{name: TABLE[name] for name in ("name", "task", "env_steps")},
            "algorithm": "ppo",
            "dts": ["16ms", "32ms"],
            "seeds": [1000],
            "tuned": "tuned.toml",
            "set": {name: [list(value)] for name, value in read.of("ppo").others.items()},
        },
        tmp_path,
    )
    here, there = (spec for _, spec in study.runs())
    assert here.identity == next(spec.identity for spec in executor.done if spec.seed == 1000)
    assert isinstance(there.agent, PPOAgent)
    assert there.agent.batch == outcome.winner.point["batch"] / 2
    assert there.origin["tuned"] == {**outcome.tuned().values}
