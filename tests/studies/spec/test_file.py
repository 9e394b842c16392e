import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.runs.tuned_file import TunedValues, read_tuned, write_tuned
from cycletime.runs.worlds import ClosedFormWorld, GymnasiumEnv
from cycletime.studies.spec.file import as_table, read_study, study_from
from cycletime.studies.spec.study import Source, Study
from cycletime.studies.store.folder import StudyFolder
from tests.studies.small import small_study

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
GOOD: dict[str, Any] = {
    "name": "s",
    "task": "reacher",
    "algorithm": "ppo",
    "dts": ["8ms"],
    "rules": ["baseline"],
    "seeds": 2,
    "env_steps": 2000,
}


def identities(study: Study) -> list[str]:
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
    assert identities(study_from({**lists, **budget})) == identities(study_from({**single, **budget}))


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
    study = study_from(told)
    again = study_from(json.loads(json.dumps(as_table(study))))
    assert list(again.runs()) == list(study.runs())
    assert as_table(again) == as_table(study)


def test_environments_are_read_with_their_time_step() -> None:
    told = {**GOOD, "env": "Pendulum-v1", "env_dt": "4ms", "dts": ["8ms"]}
    del told["task"]
    study = study_from(told)
    assert [(cell.world.name, str(cell.world.env_dt), cell.engine.name) for cell in study.cells()] == [
        ("Pendulum-v1", "4ms", "stepped")
    ]
    assert identities(study_from(as_table(study))) == identities(study)


def test_patience_is_no_part_of_what_is_run() -> None:
    usual, patient = study_from(GOOD), study_from({**GOOD, "patience": "2h"})
    assert (float(usual.patience), float(patient.patience)) == (600.0, 7200.0)
    assert study_from(as_table(patient)) == patient
    assert "patience" not in as_table(usual)
    assert identities(patient) == identities(usual)


def test_a_table_for_each_algorithm() -> None:
    study = study_from(
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
    study = study_from(told)
    assert [cell.labels["rule"] for cell in study.cells()] == ["baseline", "tuned-scaled", None]
    assert study_from(as_table(study)).rules == study.rules
    none = study_from({**told, "rules": {"ppo": [], "sac": []}})
    assert [cell.labels["rule"] for cell in study_from(as_table(none)).cells()] == [None, None, None]


def test_points_are_read_for_all_algorithms_or_for_each() -> None:
    points = [{"discount": 0.9}, {"discount": 0.99}]
    told = {**GOOD, "algorithms": ["ppo", "sac"]}
    del told["algorithm"]
    both = study_from({**told, "points": points})
    found = [(cell.labels["algorithm"], cell.labels["discount"]) for cell in both.cells()]
    assert found == [("ppo", 0.9), ("ppo", 0.99), ("sac", 0.9), ("sac", 0.99)]
    own = study_from({**told, "points": {"ppo": [{"hidden": [8, 8], "discount": 0.9}]}})
    assert own.points == {"ppo": ({"hidden": (8, 8), "discount": 0.9},)}
    at = study_from(
        {**GOOD, "dts": ["8ms", "16ms"], "points": [{"dt": 0.008, "epochs": 2}, {"dt": "16ms", "epochs": 1}]}
    )
    assert at.points["ppo"][0] == {"dt": Duration("8ms"), "epochs": 2}
    for study in (both, own, at):
        assert list(study_from(json.loads(json.dumps(as_table(study)))).runs()) == list(study.runs())


def test_environments_of_several_time_steps_cannot_be_kept_in_one_study() -> None:
    told = {**GOOD, "envs": ["A-v0", "B-v0"], "env_dt": "4ms"}
    del told["task"]
    study = study_from(told)
    other = replace(study, worlds=(study.worlds[0], GymnasiumEnv("B-v0")))
    with pytest.raises(InputError, match=r"different env_dt \(A-v0 4ms, B-v0 none\): make a study of each"):
        as_table(other)


def test_the_time_step_of_a_study_is_that_of_its_tasks_where_it_has_no_environments() -> None:
    told = {**GOOD, "task": ["pendulum", "cart-pole"], "env_dt": "4ms"}
    study = study_from(told)
    assert {str(world.env_dt) for world in study.worlds} == {"4ms"}
    assert study_from(as_table(study)) == study
    usual = study_from({**GOOD, "task": ["reacher", "pendulum"]})
    assert "env_dt" not in as_table(usual)
    mixed = replace(study, worlds=(ClosedFormWorld("pendulum"), ClosedFormWorld("cart-pole", Duration("4ms"))))
    with pytest.raises(InputError, match=r"different env_dt \(pendulum 2ms, cart-pole 4ms\): make a study of each"):
        as_table(mixed)


def test_left_out_rules_are_the_algorithms_own_and_none_where_values_are_from_no_cycle_time() -> None:
    told = {**GOOD, "algorithm": ["ppo", "sac", "actor-critic"]}
    del told["rules"]
    assert [cell.labels["rule"] for cell in study_from(told).cells()] == ["dt-aware", "tuned-scaled", None]
    bare = study_from({**told, "algorithm": "ppo", "tuned": {"batch": 500}, "dts": ["8ms", "16ms"]})
    assert [cell.labels["rule"] for cell in bare.cells()] == [None, None]
    assert {cell.run(0).as_json()["agent"]["batch"] for cell in bare.cells()} == {500}


def test_tuned_values_in_a_file_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "values.toml").write_text('[tuned]\ndt = "16ms"\nbatch = 400\n')
    (tmp_path / "study.toml").write_text(
        'name = "s"\ntask = "reacher"\nalgorithm = "ppo"\ndt = "8ms"\nrule = "dt-aware"\nenv_steps = 9\n'
        'tuned = "values.toml"\n'
    )
    study = read_study(tmp_path / "study.toml")
    (cell,) = study.cells()
    assert cell.run(0).as_json()["agent"]["batch"] == 800
    source = study.tuned["ppo"].source
    assert source == Source("values.toml", sha256((tmp_path / "values.toml").read_bytes()).hexdigest())
    assert study_from(json.loads(json.dumps(as_table(study)))).tuned == study.tuned


def test_a_study_keeps_which_tuning_its_values_come_from(tmp_path: Path) -> None:
    origin = {"study": "t", "trials": 9, "runs": 45, "simulated_hours": 2.5, "tuning": {"seeds": [0, 1, 2]}}
    odd = {"study": "\x1b[31m", "trials": -1, "runs": 10**30, "simulated_hours": float("inf"), "tuning": [1]}
    for name, told in (("a", origin), ("b", odd)):
        write_tuned(tmp_path / name, "ppo", TunedValues(Duration("16ms"), {"batch": 400}), told)
    sources = []
    for name in ("a", "b"):
        study = study_from({**GOOD, "tuned": name}, tmp_path)
        again = StudyFolder.open(StudyFolder.create(tmp_path / f"study-{name}", study).path).study
        assert again.tuned == study.tuned
        sources.append(replace(study.tuned["ppo"].source or Source("", ""), sha256=""))
    assert sources == [Source("a", "", "t", trials=9, seeds=3, runs=45, simulated_hours=2.5), Source("b", "")]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name = ", " is not a TOML file: Invalid value (at end of document)"),
        ("name = 'a'\nname = 'b'", " is not a TOML file: Cannot overwrite a value (at "),
        ("task = 'reacher'", ": 'algorithm' is missing: a study needs one, or several as 'algorithms'."),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(InputError) as refusal:
        read_study(tmp_path / "bad.toml")
    assert str(refusal.value).startswith(f"{tmp_path / 'bad.toml'}{says}")


def test_a_missing_and_a_binary_file_are_named(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"^There is no file \S*no\.toml\.$"):
        read_study(tmp_path / "no.toml")
    with pytest.raises(InputError, match=r"binary\.toml cannot be read: byte 1 is not UTF-8 text\.$"):
        read_study(tmp_path / "binary.toml")
    with pytest.raises(InputError, match="is a directory: give a regular file"):
        read_study(tmp_path)


NO_TIME = "is not a time span: give a positive time such as '16ms', '0.016s', '0.016' (seconds) or '62.5Hz'."


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"nme": 1}, "'nme' is nothing that a study has: it has algorithm, algorithms, device, dt, dts, engine, env,"),
        ({"name": ""}, "name is '': it must be a text in one line, such as 'reacher-quick'."),
        ({"name": "a\nb"}, "name is 'a\\nb': a text is one line of at most 200 printable characters."),
        ({"name": 3}, "name is 3: it must be a text in one line, such as 'reacher-quick'."),
        ({"task": "reecher"}, "'reecher' is not a task: give 'reacher', 'double-pendulum', 'pendulum'"),
        ({"task": 3}, "3 is neither a task nor an environment: give a name, such as 'reacher'."),
        ({"task": []}, "The study 's' has no tasks or envs: give at least one."),
        ({"tasks": ["reacher"]}, "'task' and 'tasks' are both given: give one of them."),
        ({"algorithm": "ppa"}, "'ppa' is not an algorithm: give one of actor-critic, ppo, sac."),
        ({"dts": []}, "The study 's' has no dts: give at least one."),
        ({"dts": ["fast"]}, f"'fast' {NO_TIME}"),
        ({"dts": [True]}, f"True {NO_TIME}"),
        ({"dts": ["3ms"]}, "The cycle time 3ms is not a whole multiple of the environment time step 2ms: the nearest"),
        (
            {"rules": ["nope"]},
            "Unknown rule 'nope' for ppo: choose one of baseline, dt-aware, scaled, constant, horizons.",
        ),
        ({"rules": [3]}, "rules has 3: a rule is a name, such as 'dt-aware'."),
        ({"rules": {"sac": ["tuned"]}}, "rules has a table for 'sac': the study has ppo."),
        ({"rules": ["scaled", "scaled"]}, "rules has the same one twice for ppo: ['scaled', 'scaled']."),
        ({"rule": "scaled"}, "'rule' and 'rules' are both given: give one of them."),
        ({"seeds": 10**11}, "seeds is 100000000000: it is how many there are, at most 1,000,000."),
        ({"seeds": 0}, "seeds is 0: it must be a whole number of at least 1."),
        ({"seeds": 1.5}, "seeds is 1.5: it must be a whole number of at least 1."),
        ({"seeds": float("nan")}, "seeds is nan: it must be a whole number of at least 1."),
        ({"seeds": float("inf")}, "seeds is inf: it must be a whole number of at least 1."),
        ({"seeds": "three"}, "seeds is 'three': it must be a whole number of at least 1."),
        ({"seeds": [-1]}, "seeds is -1: it must be a whole number of at least 0."),
        ({"seeds": [2**40]}, "seeds has 1099511627776: a seed is a whole number from 0 to below 2**32."),
        ({"seed": 3}, "'seed' and 'seeds' are both given: give one of them."),
        ({"env_steps": 0}, "env_steps is 0: it must be a whole number of at least 1."),
        ({"env_steps": "1e5"}, "env_steps is '1e5': it must be a whole number of at least 1."),
        ({"tuned": 3}, "tuned is 3: it must be a table, such as [tuned] with a line for each value."),
        ({"tuned": {"dt": "16ms", "bach": 3}}, "tuned has 'bach': ppo has batch, minibatch, discount, trace_decay;"),
        ({"tuned": {"dt": "16ms", "batch": "x"}}, "batch is 'x': it must be a whole number of at least 1."),
        ({"tuned": {"dt": "16ms", "batch": []}}, "batch of ppo has no value: give at least one."),
        ({"tuned": {"dt": "16ms", "discount": 1.5}}, "discount is 1.5: it must be a number in (0, 1]."),
        ({"tuned": {"dt": "16ms", "discount": {"a": 1}}}, "discount is {'a': 1}: give a value, or a list of values"),
        ({"tuned": {"batch": 400}}, "The rule is 'baseline': it needs tuned_at, the cycle time that the values are"),
        ({"tuned": {"sac": {"dt": "16ms"}}}, "tuned has a table for 'sac': the study has ppo."),
        ({"tuned": {"ppo": 3}}, "3 is not a table of values: give a line for each, such as discount = 0.99."),
        ({"tuned": "no.toml"}, "There is no file no.toml."),
        ({"set": {"hiden": 3}}, "set has 'hiden': ppo has batch, minibatch, discount, trace_decay, learning_rate,"),
        ({"set": {"hidden": ["a"]}}, "hidden is ('a',): it must be a tuple of layer sizes, such as (64, 64)."),
        ({"set": {"hidden": [[[8]]]}}, "hidden is [[8]]: give a value, or a list of values to try."),
        ({"points": []}, "points is []: it must be a list of tables, such as [{ discount = 0.99 }, { discount ="),
        ({"points": [3]}, "points is [3]: it must be a list of tables, such as [{ discount = 0.99 }, { discount ="),
        ({"points": {"sac": [{"discount": 0.9}]}}, "points has a table for 'sac': the study has ppo."),
        ({"points": [{"batch": [100, 200]}]}, "points has batch = [100, 200]: a point has one value for each name."),
        ({"points": [{"hidden": [[8]]}]}, "hidden is [[8]]: give a value, or a list of values to try."),
        ({"points": [{"dt": "slow", "batch": 10}]}, "'slow' is not a time span: give a positive time such as"),
        ({"points": [{"dt": "9ms", "batch": 10}]}, "points has one with dt 9ms: the study has 8ms."),
        ({"points": [{"batch": 10, "minibatch": 20}]}, "minibatch is 20: it must be at most the batch, 10."),
        ({"tuned": {"dt": "16ms", "from": 3}}, "tuned has from = 3: it is for what study.json keeps of a file"),
        (
            {"tuned": {"dt": "16ms", "from": {"file": "a", "sha256": "b", "runs": "c"}}},
            "tuned has runs = 'c' in 'from': it must be int.",
        ),
        (
            {"algorithm": "actor-critic"},
            "rules has 'baseline' for actor-critic: no rule carries its values, so leave it out.",
        ),
        ({"env_steps": 2**31}, "env_steps is 2147483648: it must be below 2**31, since steps are counted in 32 bits."),
        ({"env_steps": 1199}, "env_steps is 1199: no episode of reacher ends before 1,200 environment steps"),
        ({"env_steps": 10**400}, "env_steps has the number 1000000000000000000000000000"),
        ({"env": "Nope-v0"}, "'Nope-v0' is not an environment that Gymnasium can make"),
        ({"env": "Hopper"}, "'Hopper' has no version, and its newest may change: give 'Hopper-v5'."),
        ({"env": "no module:X-v0"}, "'no module:X-v0' is not an environment: 'no module' is not a module"),
        ({"seeds": [0, 2**32]}, "seeds has 4294967296: a seed is a whole number from 0 to below 2**32."),
        ({"seeds": [1, 1.0]}, "The study 's' has 1 twice in its seeds: give each once."),
        ({"algorithm": [["ppo"]]}, "['ppo'] is not an algorithm: give one of actor-critic, ppo, sac."),
        ({"name": "a" * 5000}, f"name is '{'a' * 49}...{'a' * 49}': a text is one line of at most 200 printable"),
        ({"set": {"hidden": ["8"] * 9999}}, "hidden is ('8', '8', '8', '8', '8', '8', '8', '8', '8', '8',... '8',"),
        ({"rules": ["scaled"] * 999}, "rules has the same one twice for ppo: ['scaled', 'scaled', 'scaled', 'scaled',"),
        ({"points": [{"discount": 0.9}, {"\x1b[31m": 1}]}, "points has the key '\\x1b[31m': a text is one line"),
        (
            {"set": {"epochs": list(range(1, 100_001)), "clip": [each / 100_001 for each in range(1, 100_001)]}},
            "The study 's' has 20,000,000,000 runs: it may have 1,000,000 at most.",
        ),
        ({"seeds": 1_000_000, "dts": ["8ms", "16ms"]}, "The study 's' has 2,000,000 runs: it may have 1,000,000"),
        (
            {"tuned": {"dt": "16ms", "from": {"file": "a", "sha256": "b", "simulated_hours": float("inf")}}},
            "tuned has simulated_hours = inf in 'from': it must be float.",
        ),
        ({"task": [], "env": ""}, "'' is neither a task nor an environment: give a name, such as 'reacher'."),
        ({"set": [3]}, "set is [3]: it must be a table, such as [set] with a line for each value."),
        ({"set": {"epochs": 2.5}}, "epochs is 2.5: it must be a whole number of at least 1."),
        ({"set": {"exploration": "pink"}}, "set has 'exploration': ppo has batch, minibatch,"),
        ({"device": "tpuu"}, "device is 'tpuu': it must be 'cpu' or 'gpu'"),
        ({"width": 0}, "width is 0: it must be a whole number of at least 1."),
        ({"width": 10**9}, "width is 1000000000: a study has 1,000,000 runs at most."),
        ({"patience": "30m"}, "patience is '30m': give a time of at least a second, such as '30min' or '2h'."),
        ({"patience": "5ms"}, "patience is '5ms': give a time of at least a second, such as '30min' or '2h'."),
        ({"patience": True}, "patience is True: give a time of at least a second, such as '30min' or '2h'."),
        ({"env_dt": "3ms"}, "env_dt is 3ms: the Reacher has a time step of its own, 2ms."),
        (
            {"env": "Pendulum-v1", "env_dt": "7ms"},
            "The cycle time 8ms is not a whole multiple of the environment time step 7ms",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence_and_nothing_is_written(
    tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError) as refusal:
        StudyFolder.create(tmp_path / "study", study_from({**GOOD, **change}))
    assert str(refusal.value).startswith(says)
    assert len(str(refusal.value)) < 400
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize("key", ["name", "task", "algorithm", "dts", "env_steps"])
def test_what_is_missing_is_named(key: str) -> None:
    told = {name: value for name, value in GOOD.items() if name != key}
    with pytest.raises(InputError, match=rf"^'{key.rstrip('s') if key == 'dts' else key}' is missing: a study needs"):
        study_from(told)


def test_counts_may_be_written_as_in_2e3(tmp_path: Path) -> None:
    values = {"dt": "16ms", "batch": [2e3, 500], "minibatch": 5e1}
    study = study_from({**GOOD, "tuned": values, "set": {"epochs": 3.0}})
    plain = study_from({**GOOD, "tuned": {**values, "batch": [2000, 500], "minibatch": 50}, "set": {"epochs": 3}})
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
    study = study_from({**told, "points": points, "set": {"hidden": [[8], [16], [8, 8]]}})
    assert study.size == len(list(study.runs())) == (2 * 2 * 3 + 1 * 3) * 2 * 2
    assert study_from({**GOOD, "seeds": 1_000_000, "dts": [f"{2 * k}ms" for k in range(1, 1001)]}).size == 10**9


def test_a_study_of_python_is_kept_only_if_it_can_be_read_again(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^name is 'a\\nb': a text is one line"):
        StudyFolder.create(tmp_path / "study", replace(small_study(), name="a\nb"))
    assert not (tmp_path / "study").exists()


def test_a_study_with_one_more_seed_has_the_others_too() -> None:
    before = set(identities(small_study()))
    for change in ({"seeds": 3}, {"dts": ["8ms", "16ms", "32ms"]}, {"rules": ["baseline", "dt-aware", "constant"]}):
        assert before < set(identities(small_study(**change)))


OWN = {
    "floor-6": {"batch": "per second, of a count", "discount": "per second, of a decay, at least 6 steps"},
    "also-dt-aware": {
        **dict.fromkeys(("batch", "minibatch"), "per second, of a count"),
        **dict.fromkeys(("discount", "trace_decay"), "the paper's min"),
    },
}


def test_rules_of_one_s_own_are_tables_of_laws() -> None:
    own = study_from({**GOOD, "dts": ["64ms"], "rules": ["dt-aware", *OWN], "own_rules": OWN})
    assert study_from(json.loads(json.dumps(as_table(own)))) == own
    aware, floor, also_aware = own.cells()
    assert floor.agent.batch == 500  # type: ignore[attr-defined]
    assert floor.agent.minibatch == 50  # type: ignore[attr-defined]
    assert floor.origin["own_rules"] == {"floor-6": OWN["floor-6"]}
    assert also_aware.run(0).identity == aware.run(0).identity, "a run is what its values are, whatever rule gave them"


@pytest.mark.parametrize(
    ("rules", "own", "says"),
    [
        (
            ["flor-6"],
            {"floor-6": OWN["floor-6"]},
            "'floor-6', which is none of the study's rules (flor-6)",
        ),
        (["mine"], {"mine": {"tau": "kept"}}, "Rule 'mine' has a law for 'tau': ppo has batch, "),
        (["scaled"], {"scaled": {"batch": "kept"}}, "'scaled' is the name of another rule of ppo: give yours its own."),
        (["mine"], {"mine": {"discount": "x0^2"}}, "own_rules has discount of 'mine': 'x0^2' is no law"),
        (["mine"], {"mine": {"discount": "per second, of a count"}}, "discount is 3.96: it must be a number in (0, 1]"),
    ],
)
def test_own_rules_that_make_no_sense_are_refused(rules: list[str], own: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as refused:
        list(study_from({**GOOD, "dts": ["4ms"], "rules": rules, "own_rules": own}).cells())
    assert says in str(refused.value)
