"""Study files: what they say, and that what is written is read as the same study."""

import json
import tomllib
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime.agents import PPOAgent
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.studies.spec import StudySpec
from cycletime.studies.spec_file import read_study, study_from_table, study_table
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.toml_files import read_tuned
from cycletime.training.worlds import ClosedFormWorld
from tests.studies.small import small_study
from tests.studies.spec_tables import GOOD, OWN

SMALLEST = """\
name = "reacher-quick"
task = "reacher"
algorithm = "ppo"
dts = ["8ms", "16ms", "32ms"]
rules = ["baseline", "dt-aware"]
seeds = 3
env_steps = 100_000
[tuned]            # the values, and the cycle time they were tuned at
dt = "16ms"
batch = 2000
minibatch = 50
discount = 0.99
trace_decay = 0.95
"""


def identities(study: StudySpec) -> list[str]:
    return [spec.identity for _, spec in study.runs()]


def test_the_smallest_study(tmp_path: Path) -> None:
    (tmp_path / "quick.toml").write_text(SMALLEST)
    study = read_study(tmp_path / "quick.toml")
    assert (study.name, study.size, len(set(identities(study)))) == ("reacher-quick", 18, 15)
    assert {spec.env_steps for _, spec in study.runs()} == {100_000}
    assert {spec.seed for _, spec in study.runs()} == {0, 1, 2}
    batches = {(str(cell.dt), cell.labels["rule"]): cell.run(0).as_json()["agent"]["batch"] for cell in study.cells()}
    assert batches[("8ms", "dt-aware")] == 4000
    assert batches[("8ms", "baseline")] == batches[("32ms", "baseline")] == 2000


def test_one_value_is_a_list_of_one() -> None:
    lists = {"name": "s", "tasks": ["reacher"], "algorithms": ["ppo"], "dts": ["8ms"], "rules": ["baseline"]}
    single = {"name": "s", "task": "reacher", "algorithm": "ppo", "dt": "8ms", "rule": "baseline"}
    budget = {"seeds": [0, 1], "env_steps": 1e3}
    assert identities(study_from_table({**lists, **budget})) == identities(study_from_table({**single, **budget}))


@given(
    tasks=st.lists(st.sampled_from(["reacher", "double-pendulum"]), min_size=1, max_size=2, unique=True),
    algorithms=st.lists(st.sampled_from(["ppo", "sac", "actor-critic"]), min_size=1, max_size=3, unique=True),
    dts=st.lists(st.sampled_from(["4ms", "0.008", "16ms", "31.25Hz"]), min_size=1, max_size=3, unique=True),
    rules=st.sampled_from([["baseline"], ["scaled", "baseline"], None]),
    seeds=st.one_of(st.integers(1, 3), st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True)),
    hidden=st.sampled_from([None, [8], [8, 8], [[8], [16, 16]]]),
    discount=st.sampled_from([None, 0.97, [0.9, 0.95]]),
)
def test_a_table_is_read_as_the_study_that_it_was_written_from(
    tasks: list[str],
    algorithms: list[str],
    dts: list[str],
    rules: list[str] | None,
    seeds: Any,  # noqa: ANN401
    hidden: Any,  # noqa: ANN401
    discount: Any,  # noqa: ANN401
) -> None:
    told = {"name": "s", "tasks": tasks, "algorithms": algorithms, "dts": dts, "seeds": seeds, "env_steps": 900}
    told |= {} if rules is None or algorithms == ["actor-critic"] else {"rules": rules}
    told |= {} if hidden is None else {"set": {"hidden": hidden}}
    told |= {} if discount is None else {"tuned": {"dt": "16ms", "discount": discount}}
    study = study_from_table(told)
    again = study_from_table(json.loads(json.dumps(study_table(study))))
    assert list(again.runs()) == list(study.runs())
    assert study_table(again) == study_table(study)


def test_environments_are_read_with_their_time_step() -> None:
    told = {**GOOD, "env": "Pendulum-v1", "env_dt": "4ms", "dts": ["8ms"]}
    del told["task"]
    study = study_from_table(told)
    assert [(cell.world.name, str(cell.world.env_dt), cell.spec.engine.name) for cell in study.cells()] == [
        ("Pendulum-v1", "4ms", "stepped")
    ]
    assert identities(study_from_table(study_table(study))) == identities(study)


def test_environments_side_by_side_are_part_of_what_is_run() -> None:
    study = study_from_table({**tomllib.loads(SMALLEST), "num_envs": 8})
    assert study_from_table(study_table(study)) == study
    assert {spec.num_envs for _, spec in study.runs()} == {8}
    assert not {*identities(study)} & {*identities(study_from_table(tomllib.loads(SMALLEST)))}
    assert identities(study_from_table({**tomllib.loads(SMALLEST), "num_envs": 1})) == identities(
        study_from_table(tomllib.loads(SMALLEST))
    )
    with pytest.raises(InputError, match="The batch is 2000, which 7 environments do not divide: give 1995 or 2002"):
        study_from_table({**tomllib.loads(SMALLEST), "num_envs": 7}).check_runs()


@pytest.mark.parametrize("trainer", ["brax", {"name": "brax"}, {"name": "brax", "num_envs": 16}])
def test_a_trainer_has_the_study_s_environments(trainer: object) -> None:
    table = {**tomllib.loads(SMALLEST), "trainer": trainer, "num_envs": 16}
    study = study_from_table(table)
    assert study.trainer is not None
    assert (study.num_envs, study.trainer.num_envs) == (1, 16)
    with pytest.raises(InputError, match="num_envs is 16 and the trainer's 8: give one of them"):
        study_from_table({**table, "trainer": {"name": "brax", "num_envs": 8}})


def test_patience_is_no_part_of_what_is_run() -> None:
    usual, patient = study_from_table(GOOD), study_from_table({**GOOD, "patience": "2h"})
    assert (float(usual.hang_timeout), float(patient.hang_timeout)) == (600.0, 7200.0)
    assert study_from_table(study_table(patient)) == patient
    assert "patience" not in study_table(usual)
    assert identities(patient) == identities(usual)


def test_a_table_for_each_algorithm() -> None:
    study = study_from_table(
        {
            **GOOD,
            "algorithm": ["ppo", "sac"],
            "rules": {"ppo": ["baseline", "dt-aware"], "sac": "tuned"},
            "tuned": {"ppo": {"dt": "16ms", "batch": 400}, "sac": {"dt": "32ms", "discount": 0.9}},
            "set": {"sac": {"hidden": [32, 32]}},
        }
    )
    found = [(cell.labels["algorithm"], cell.labels["rule"]) for cell in study.cells()]
    assert found == [("ppo", "baseline"), ("ppo", "dt-aware"), ("sac", "tuned")]
    agents = [cell.run(0).as_json()["agent"] for cell in study.cells()]
    assert (agents[1]["batch"], agents[2]["discount"]) == (800, 0.9)
    assert (agents[0]["hidden"], agents[2]["hidden"]) == ([64, 64], [32, 32])


def test_an_algorithm_that_a_table_of_rules_leaves_out_has_its_own() -> None:
    told = {**GOOD, "algorithm": ["ppo", "sac", "actor-critic"], "rules": {"ppo": "baseline"}}
    study = study_from_table(told)
    assert [cell.labels["rule"] for cell in study.cells()] == ["baseline", "tuned", None]
    assert study_from_table(study_table(study)).rules == study.rules
    none = study_from_table({**told, "rules": {"ppo": [], "sac": []}})
    assert [cell.labels["rule"] for cell in study_from_table(study_table(none)).cells()] == [None, None, None]


def test_points_are_read_for_all_algorithms_or_for_each() -> None:
    points = [{"discount": 0.9}, {"discount": 0.99}]
    told = {**GOOD, "algorithms": ["ppo", "sac"]}
    del told["algorithm"]
    both = study_from_table({**told, "points": points})
    found = [(cell.labels["algorithm"], cell.labels["discount"]) for cell in both.cells()]
    assert found == [("ppo", 0.9), ("ppo", 0.99), ("sac", 0.9), ("sac", 0.99)]
    own = study_from_table({**told, "points": {"ppo": [{"hidden": [8, 8], "discount": 0.9}]}})
    assert own.points == {"ppo": ({"hidden": (8, 8), "discount": 0.9},)}
    at = study_from_table(
        {**GOOD, "dts": ["8ms", "16ms"], "points": [{"dt": 0.008, "epochs": 2}, {"dt": "16ms", "epochs": 1}]}
    )
    assert at.points["ppo"][0] == {"dt": Duration("8ms"), "epochs": 2}
    without_rule = {name: each for name, each in GOOD.items() if name != "rules"}
    sized = {"tuned": {"dt": "16ms", "minibatch": 3000}, "points": [{"batch": 4000}, {"batch": 6000}]}
    assert study_from_table({**without_rule, **sized}).rules == {"ppo": ("dt-aware",)}, "sizes decide no rule"
    for study in (both, own, at):
        assert list(study_from_table(json.loads(json.dumps(study_table(study)))).runs()) == list(study.runs())


def test_the_time_step_of_a_study_is_that_of_its_tasks_where_it_has_no_environments() -> None:
    told = {**GOOD, "task": ["pendulum", "cart-pole"], "env_dt": "4ms"}
    study = study_from_table(told)
    assert {str(world.env_dt) for world in study.worlds} == {"4ms"}
    assert study_from_table(study_table(study)) == study
    usual = study_from_table({**GOOD, "task": ["reacher", "pendulum"]})
    assert "env_dt" not in study_table(usual)
    mixed = replace(study, worlds=(ClosedFormWorld("pendulum"), ClosedFormWorld("cart-pole", Duration("4ms"))))
    with pytest.raises(InputError, match=r"different env_dt \(pendulum 2ms, cart-pole 4ms\): make a study of each"):
        study_table(mixed)


def test_left_out_rules_are_the_algorithms_own_and_none_where_values_are_from_no_cycle_time() -> None:
    told = {**GOOD, "algorithm": ["ppo", "sac", "actor-critic"]}
    del told["rules"]
    assert [cell.labels["rule"] for cell in study_from_table(told).cells()] == ["dt-aware", "tuned", None]
    bare = study_from_table({**told, "algorithm": "ppo", "tuned": {"batch": 500}, "dts": ["8ms", "16ms"]})
    assert [cell.labels["rule"] for cell in bare.cells()] == [None, None]
    assert {cell.run(0).as_json()["agent"]["batch"] for cell in bare.cells()} == {500}


def test_tuned_values_in_a_file_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "values.toml").write_text('[tuned]\ndt = "16ms"\nbatch = 400\n')
    (tmp_path / "study.toml").write_text(
        'name = "s"\ntask = "reacher"\nalgorithm = "ppo"\ndt = "8ms"\nrule = "dt-aware"\nenv_steps = 9000\n'
        'tuned = "values.toml"\n'
    )
    study = read_study(tmp_path / "study.toml")
    (cell,) = study.cells()
    assert cell.run(0).as_json()["agent"]["batch"] == 800
    sha = sha256((tmp_path / "values.toml").read_bytes()).hexdigest()
    assert study.tuned["ppo"].source == {"file": "values.toml", "sha256": sha}
    assert study_from_table(json.loads(json.dumps(study_table(study)))).tuned == study.tuned


def test_a_study_keeps_what_an_earlier_version_kept_of_a_tuning(tmp_path: Path) -> None:
    source = {"file": "a", "sha256": "0", "tuning": "t", "trials": 9, "seeds": 3, "runs": 45, "simulated_hours": 2.5}
    study = study_from_table({**GOOD, "tuned": {"dt": "16ms", "batch": 400, "from": source}})
    again = StudyFolder.open(StudyFolder.create(tmp_path / "study", study).path).study
    assert again.tuned == study.tuned
    assert again.tuned["ppo"].source == {"file": "a", "sha256": "0"}


def test_counts_may_be_written_as_in_2e3(tmp_path: Path) -> None:
    values = {"dt": "16ms", "batch": [2e3, 500], "minibatch": 5e1}
    study = study_from_table({**GOOD, "tuned": values, "set": {"epochs": 3.0}})
    plain = study_from_table({**GOOD, "tuned": {**values, "batch": [2000, 500], "minibatch": 50}, "set": {"epochs": 3}})
    assert identities(study) == identities(plain)
    assert [str(cell.labels["batch"]) for cell in study.cells()] == ["2000", "500"]
    (tmp_path / "tuned.toml").write_text("[tuned]\ndt = '16ms'\nbatch = 2e3\n")
    assert str(read_tuned(tmp_path / "tuned.toml").of("ppo").values["batch"]) == "2000"


def test_the_size_is_known_without_making_the_runs() -> None:
    told = {
        **GOOD,
        "algorithm": ["ppo", "actor-critic"],
        "rules": {"ppo": ["baseline", "scaled"]},
        "dts": ["8ms", "16ms"],
    }
    points = {"ppo": [{"discount": 0.9}, {"discount": 0.99}], "actor-critic": [{"discount": 0.9}]}
    study = study_from_table({**told, "points": points, "set": {"hidden": [[8], [16], [8, 8]]}})
    assert study.size == len(list(study.runs())) == (2 * 2 * 3 + 1 * 3) * 2 * 2
    assert study_from_table({**GOOD, "seeds": 1_000_000, "dts": [f"{2 * k}ms" for k in range(1, 1001)]}).size == 10**9


def test_a_study_with_one_more_seed_has_the_others_too() -> None:
    before = set(identities(small_study()))
    for change in ({"seeds": 3}, {"dts": ["8ms", "16ms", "32ms"]}, {"rules": ["baseline", "dt-aware", "constant"]}):
        assert before < set(identities(small_study(**change)))


def test_rules_of_one_s_own_are_tables_of_laws() -> None:
    own = study_from_table({**GOOD, "dts": ["64ms"], "rules": ["dt-aware", *OWN], "own_rules": OWN})
    assert study_from_table(json.loads(json.dumps(study_table(own)))) == own
    aware, floor, also_aware = own.cells()
    assert isinstance(floor.agent, PPOAgent)
    assert (floor.agent.batch, floor.agent.minibatch) == (500, 50)
    assert floor.spec.origin["own_rules"] == {"floor-6": OWN["floor-6"]}
    assert also_aware.run(0).identity == aware.run(0).identity, "a run is what its values are, whatever rule gave them"
