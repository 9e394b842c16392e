import json
from pathlib import Path
from typing import Any

import pytest

from cycletime.agents import PPOAgent
from cycletime.cli import main
from cycletime.studies.plan import Plan
from cycletime.studies.spec_file import study_from_table, study_table
from cycletime.training.external import ExternalAgent
from cycletime.training.make_specs import make_specs
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


COMMAND = ["python", "ppo.py", "--dt", "{dt_s}", "--seed", "{seed}", "--num-envs", "{num_envs}"]
COMMAND += [f"{{{name}}}" for name in ("n_steps", "batch_size", "gamma", "gae_lambda", "learning_rate", "ent_coef")]
THEIRS: dict[str, Any] = {
    **{name: TABLE[name] for name in ("name", "task", "dt", "seeds", "fresh_seeds")},
    "algorithm": "ppo",
    "simulated_s": 40,
    "trainer": {"command": COMMAND, "words": "sb3", "num_envs": 4},
    "set": {"n_steps": 16, "batch_size": [8, 16], "learning_rate": "lin_1e-3", "ent_coef": 0.01},
}


def test_a_tuning_in_a_librarys_words_gives_a_file_that_says_each_value_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = tuned(THEIRS, tmp_path, Toy(score=lambda spec: float(spec.seed)))
    outcome.write(tmp_path, file := tmp_path / "tuned.toml")
    read = read_tuned(file).of("ppo")
    assert (read.values["batch"], read.values["minibatch"]) == (64, 8)  # the first of equals
    assert read.others == {"learning_rate": "lin_1e-3", "ent_coef": 0.01}, "which no rule can carry"
    assert read.about == {"searched": ["minibatch"], "trainer": "ppo", "num_envs": 4}
    study = {name: each for name, each in THEIRS.items() if name not in ("dt", "fresh_seeds", "set")}
    again = study_from_table({**study, "dts": ["16ms", "8ms"], "tuned": "tuned.toml"}, tmp_path)
    winner, carried = (cell.agent.settings for cell in again.cells() if isinstance(cell.agent, ExternalAgent))
    assert winner == outcome.tuning.cell(outcome.winner.point).agent.settings  # type: ignore[union-attr]
    assert (carried["n_steps"], carried["batch_size"], carried["learning_rate"]) == (32, 16, "lin_1e-3")
    assert main(["transfer", "ppo", "--tuned", str(file), "--to", "8ms", "--for", "sb3", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["library"]["values"]["n_steps"] == 32, "in each of the environments that it was tuned with"
    assert f"Sizes are for num_envs 4, with which {file} was tuned." in told["notes"]
    other = {**THEIRS["trainer"], "command": ["python", "other.py", *COMMAND[2:]], "num_envs": 2}
    elsewhere = Plan.of(study_from_table({**study, "trainer": other, "dt": "8ms", "tuned": "tuned.toml"}, tmp_path))
    assert "note: The values were tuned with trainer ppo, not other and num_envs 4, not 2." in elsewhere.notes()


@pytest.mark.parametrize(
    ("grid", "rule"),
    [({"batch": [400, 800]}, "dt-aware"), ({"discount": [0.99, 0.9]}, "horizons"), ({"discount": 0.9}, "horizons")],
)
def test_the_rule_is_recommended_by_what_was_searched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], grid: dict[str, Any], rule: str
) -> None:
    values = {"batch": 400, "minibatch": [20, 40], "discount": 0.99, "trace_decay": 0.95, **grid}
    outcome = tuned({**TABLE, "algorithm": "ppo", "tuned": values, "set": {}}, tmp_path, Toy(score=lambda spec: 0.0))
    outcome.write(tmp_path, file := tmp_path / "tuned.toml")
    table = {**{name: TABLE[name] for name in ("name", "task", "env_steps")}, "algorithm": "ppo", "dt": "32ms"}
    study = study_from_table({**table, "tuned": "tuned.toml"}, tmp_path)
    assert study.rules == {"ppo": (rule,)}
    assert study_from_table(study_table(study)) == study
    (spec,) = make_specs(task="reacher", dt="32ms", env_steps=2000, tuned=file)
    assert spec.origin["rule"] == rule
    assert main(["transfer", "ppo", "--tuned", str(file), "--to", "32ms", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rule"] == rule
