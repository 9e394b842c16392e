"""Study files that are refused: one sentence with the value and what would be right, and nothing is written."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cycletime.cli import main
from cycletime.errors import InputError
from cycletime.studies.spec_file import read_study, study_from_table, study_table
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.worlds import GymnasiumEnv
from tests.studies.small import small_study
from tests.studies.spec_tables import GOOD, OWN


def test_environments_of_several_time_steps_cannot_be_kept_in_one_study() -> None:
    told = {**GOOD, "envs": ["A-v0", "B-v0"], "env_dt": "4ms"}
    del told["task"]
    study = study_from_table(told)
    other = replace(study, worlds=(study.worlds[0], GymnasiumEnv("B-v0")))
    with pytest.raises(InputError, match=r"different env_dt \(A-v0 4ms, B-v0 none\): make a study of each"):
        study_table(other)


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


NO_TIME = "is not a time span: give a positive time such as '16ms', '0.016s' or '62.5Hz'."


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"nme": 1}, "'nme' is nothing that a study has: it has algorithm, algorithms, device, dt, dts, engine, env,"),
        ({"name": ""}, "name is '': it must be a text in one line, such as 'reacher-quick'."),
        ({"name": "a\nb"}, "name is 'a\\nb': a text is one line of at most 200 printable characters."),
        ({"name": 3}, "name is 3: it must be a text in one line, such as 'reacher-quick'."),
        ({"task": "reecher"}, "'reecher' is not a task: give 'reacher', 'double-pendulum', 'pendulum'"),
        ({"task": 3}, "3 is neither a task nor an environment: give a name, such as 'reacher'."),
        ({"task": []}, "'task' is missing: a study needs a task or an env, or several as 'tasks' and 'envs'."),
        ({"tasks": ["reacher"]}, "'task' and 'tasks' are both given: give one of them."),
        ({"algorithm": "PPO"}, "'PPO' is not an algorithm: give one of actor-critic, ppo, sac; did you mean ppo?"),
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
        ({"tuned": {"batch": 400}}, "The rule is 'baseline': it needs tuned_at=..., the cycle time that the values"),
        ({"tuned": {"sac": {"dt": "16ms"}}}, "tuned has a table for 'sac': the study has ppo."),
        ({"tuned": {"ppo": 3}}, "3 is not a table of values: give a line for each, such as discount = 0.99."),
        ({"tuned": "no.toml"}, "There is no file no.toml."),
        ({"set": {"hiden": 3}}, "set has 'hiden': ppo has batch, minibatch, discount, trace_decay, learning_rate,"),
        (
            {"set": {"hidden": ["a"]}},
            "hidden is ('a',): it must be layer sizes of at most 8192, such as (64, 64), or [64, 64] in a file.",
        ),
        ({"set": {"hidden": "32"}}, "hidden is '32': it must be layer sizes of at most 8192, such as (64, 64), or ["),
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
            {"tuned": {"dt": "16ms", "from": {"file": "a", "sha256": 7}}},
            "tuned has from = {'file': 'a', 'sha256': 7}: it is for what study.json keeps of a file",
        ),
        (
            {"algorithm": "actor-critic"},
            "rules has 'baseline' for actor-critic: no rule carries its values, so leave it out.",
        ),
        ({"env_steps": 2**31}, "env_steps is 2147483648: it must be below 2**31, since steps are counted in 32 bits."),
        ({"env_steps": 1199}, "env_steps is 1199: no episode of reacher ends before 1,200 environment steps"),
        ({"env_steps": 10**400}, "env_steps is a number of more than 60 digits"),
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
        ({"task": [], "env": ""}, "'' is neither a task nor an environment: give a name, such as 'reacher'."),
        ({"set": [3]}, "set is [3]: it must be a table, such as [set] with a line for each value."),
        ({"set": {"epochs": 2.5}}, "epochs is 2.5: it must be a whole number of at least 1."),
        ({"set": {"exploration": "pink"}}, "set has 'exploration': ppo has batch, minibatch,"),
        ({"engine": "cudda"}, "'cudda' is not an engine: give one of auto, cuda, compiled, stepped; did you"),
        ({"engine": "gpu"}, "engine is 'gpu', which is a device: write device='gpu'."),
        ({"engine": 3}, "'3' is not an engine: give one of auto, cuda, compiled, stepped."),
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
        StudyFolder.create(tmp_path / "study", study_from_table({**GOOD, **change}))
    assert str(refusal.value).startswith(says)
    assert len(str(refusal.value)) < 400
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize(
    ("change", "ends"),
    [
        (
            {"sede": 3},
            "rule, rules, seed, seeds, set, simulated_s, task, tasks, trainer, tuned, width; did you mean seed?",
        ),
        ({"tuned": {"gamma": 0.9}}, "trace_decay; other fields go to 'set'; gamma is discount here."),
        ({"tuned": {"n_steps": 9}}, "trace_decay; other fields go to 'set'; n_steps is batch here."),
        ({"set": {"gamma": 0.9}}, "; gamma is discount here."),
        ({"points": [{"epoch": 3}, {"epoch": 4}]}, "; did you mean epochs?"),
        ({"task": "reachr"}, "or a Gymnasium id as an environment; did you mean reacher?"),
    ],
)
def test_names_that_are_nearly_known_or_known_elsewhere_are_told_as_they_are_here(
    change: dict[str, Any], ends: str
) -> None:
    with pytest.raises(InputError) as refusal:
        study_from_table({**GOOD, **change})
    assert str(refusal.value).endswith(ends)


WRONG_LATER = {
    "rules = ['dt-awar']": "Unknown rule 'dt-awar' for ppo",
    "dt = '15ms'": "The cycle time 15ms is not a whole multiple of the environment time step 2ms",
    "env_steps = 9": "env_steps is 9: no episode of reacher ends before 1,200 environment steps",
    "tuned = { batch = 10, minibatch = 20 }": "minibatch is 20: it must be at most the batch",
}


@pytest.mark.parametrize("line", WRONG_LATER)
@pytest.mark.parametrize("command", ["run", "plan", "pack"])
def test_the_file_is_named_whatever_is_wrong_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, line: str
) -> None:
    lines = {"dt": "dt = '16ms'", "env_steps": "env_steps = 2000", line.partition(" ")[0]: line}
    file = tmp_path / "study.toml"
    file.write_text("name = 's'\ntask = 'reacher'\nalgorithm = 'ppo'\n" + "\n".join(lines.values()))
    out = {"run": ["--out", str(tmp_path / "out")], "plan": [], "pack": ["--output", str(tmp_path / "out")]}
    assert main(["study", command, str(file), *out[command]]) == 2
    assert capsys.readouterr().err.startswith(f"cycletime: {file}: {WRONG_LATER[line]}")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("key", ["name", "task", "algorithm", "dts", "env_steps"])
def test_what_is_missing_is_named(key: str) -> None:
    told = {name: value for name, value in GOOD.items() if name != key}
    with pytest.raises(InputError, match=rf"^'{key.rstrip('s') if key == 'dts' else key}' is missing: a study needs"):
        study_from_table(told)


def test_a_study_of_python_is_kept_only_if_it_can_be_read_again(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^name is 'a\\nb': a text is one line"):
        StudyFolder.create(tmp_path / "study", replace(small_study(), name="a\nb"))
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize(
    ("rules", "own", "says"),
    [
        (
            ["flor-6"],
            {"floor-6": OWN["floor-6"]},
            "'floor-6', which is none of the study's rules (flor-6): name it there, or leave it out; did you mean "
            "'floor-6' where it says 'flor-6'?",
        ),
        (["mine"], {"mine": {"tau": "kept"}}, "Rule 'mine' has a law for 'tau': ppo has batch, "),
        (["mine"], {"mine": {"gamma": "power"}}, "; gamma is discount here."),
        (["scaled"], {"scaled": {"batch": "kept"}}, "'scaled' is the name of another rule of ppo: give yours its own."),
        (["mine"], {"mine": {"discount": "x0^2"}}, "own_rules has discount of 'mine': 'x0^2' is no law"),
        (
            ["mine"],
            {"mine": {"discount": "per second, of a count"}},
            "has x0 / rho for discount, which is a decay per step",
        ),
    ],
)
def test_own_rules_that_make_no_sense_are_refused(rules: list[str], own: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as refused:
        list(study_from_table({**GOOD, "dts": ["4ms"], "rules": rules, "own_rules": own}).cells())
    assert says in str(refused.value)
