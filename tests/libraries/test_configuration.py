"""Whole configurations as people have them: what they say, where, of which library; and what is refused."""

import json
import re
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import yaml

from cycletime.errors import InputError
from cycletime.libraries.carry_configuration import carry_configuration
from cycletime.libraries.config_in_seconds import describe
from cycletime.libraries.configuration import Configuration, read_configuration
from tests.libraries.configurations import (
    BRAX,
    CLEANRL,
    CLEANRL_TABLE,
    ISAAC_ENV,
    LEROBOT,
    LEROBOT_0_4,
    MJLAB_ENV,
    PLAYGROUND_ENV,
    RL_GAMES,
    RSL_RL_AGENT,
    SKRL,
    ZOO,
    write_model,
    write_run,
)


def _n_envs(read: Configuration) -> int | None:
    return read.n_envs.value if read.n_envs else None


def _said_dt(read: Configuration) -> str | None:
    return str(read.cycle_time[0]) if read.cycle_time else None


@pytest.mark.parametrize("given", ["", "params"])
def test_a_run_folder_of_isaac_lab(given: str, tmp_path: Path) -> None:
    read = read_configuration(write_run(tmp_path / "run") / given)
    assert (read.library, read.environment, read.algorithm) == ("rsl-rl", "isaac-lab", "ppo")
    assert (_said_dt(read), _n_envs(read)) == ("20ms", 4096)
    assert read.cycle_time is not None
    assert read.cycle_time[1] == "sim.dt 0.005 x decimation 4"
    names = {"env.decimation": 4, "agent.algorithm.gamma": 0.99, "env.rewards.termination_penalty.weight": -200.0}
    assert {name: read.settings[name].value for name in names} == names
    decimation = read.settings["env.decimation"]
    assert decimation.file is not None
    assert (decimation.line, decimation.file.path.name) == (8, "env.yaml")
    assert decimation.file.comments == {6: "200 Hz"}
    assert read.settings["env.events.push_robot.interval_range_s"].value == [10.0, 15.0]
    unknown = {each.name for each in read.unknown}
    assert "env.viewer.eye" in unknown
    assert "env.decimation" not in unknown
    assert "agent.algorithm.lam" not in unknown


def test_a_run_folder_of_mjlab_with_its_tags(tmp_path: Path) -> None:
    read = read_configuration(write_run(tmp_path / "run", MJLAB_ENV))
    assert (read.library, read.environment, _said_dt(read), _n_envs(read)) == ("rsl-rl", "mjlab", "20ms", 32)
    stage = read.settings["env.curriculum.command_vel.params.velocity_stages.1.step"]
    lines = [line.strip() for line in MJLAB_ENV.splitlines()]
    assert (stage.value, stage.path[-2:], stage.line) == (120_000, (1, "step"), 1 + lines.index("- step: 120000"))
    name = "env.observations.critic.terms.base_ang_vel.func"
    assert read.settings[name].value == "mjlab.envs.mdp.observations.builtin_sensor"
    assert read.settings[name].line == 1 + lines.index("func: *id001")


@pytest.mark.parametrize(
    ("agent", "library", "n_envs"), [(SKRL, "skrl", 4096), (RL_GAMES, "rl-games", 512), (RSL_RL_AGENT, "rsl-rl", 4096)]
)
def test_other_agents_in_isaac_lab(agent: str, library: str, n_envs: int, tmp_path: Path) -> None:
    read = read_configuration(write_run(tmp_path / "run", agent=agent))
    assert (read.library, read.environment, read.algorithm, _n_envs(read)) == (library, "isaac-lab", "ppo", n_envs)


@pytest.mark.parametrize(
    ("name", "content", "library", "algorithm", "dt"),
    [
        ("skrl_ppo_cfg.yaml", SKRL, "skrl", "ppo", None),
        ("rl_games_ppo_cfg.yaml", RL_GAMES, "rl-games", "ppo", None),
        ("agent.yaml", RSL_RL_AGENT, "rsl-rl", "ppo", None),
        ("old.yaml", "runner: {num_steps_per_env: 24}\nalgorithm: {gamma: 0.99}\n", "rsl-rl", "ppo", None),
        ("brax.json", json.dumps(BRAX), "brax", "ppo", None),
        ("brax.yaml", yaml.safe_dump(BRAX), "brax", "ppo", None),
        ("sac.json", json.dumps({"discounting": 0.99, "min_replay_size": 8192}), "brax", "sac", None),
        ("env.json", json.dumps(PLAYGROUND_ENV), None, None, "20ms"),
        ("both.json", json.dumps({"env": PLAYGROUND_ENV, "ppo": BRAX}), "mujoco-playground", "ppo", "20ms"),
        ("flat.json", json.dumps(PLAYGROUND_ENV | BRAX), "mujoco-playground", "ppo", "20ms"),
        ("train_config.json", json.dumps(LEROBOT), "lerobot", "sac", "100ms"),
        ("old.json", json.dumps(LEROBOT_0_4, indent="\t"), "lerobot", "sac", "100ms"),
        ("flags.txt", CLEANRL, "cleanrl", "ppo", None),
        ("hyperparameters", CLEANRL_TABLE, "cleanrl", "ppo", None),
        ("c51.json", json.dumps({"total_timesteps": 100, "q_lr": 1e-3, "gamma": 0.9}), "cleanrl", "sac", None),
        ("sb3.yaml", "n_steps: 16\nbatch_size: 4096\npolicy: 'MlpPolicy'\n", "stable-baselines3", "ppo", None),
    ],
)
def test_single_files(
    name: str, content: str, library: str | None, algorithm: str | None, dt: str | None, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    read = read_configuration(tmp_path / name)
    assert (read.library, read.algorithm, _said_dt(read)) == (library, algorithm, dt)


def test_numbers_and_lines_of_flags(tmp_path: Path) -> None:
    (tmp_path / "flags.txt").write_text(CLEANRL)
    read = read_configuration(tmp_path / "flags.txt")
    values = {name: each.value for name, each in read.settings.items()}
    assert values == {
        "env_id": "Hopper-v4",
        "total_timesteps": 1_000_000,
        "num_steps": 2048,
        "num_envs": 1,
        "num_minibatches": 32,
        "gamma": 0.99,
        "gae_lambda": 0.95,
        "anneal_lr": True,
    }
    assert [read.settings[name].line for name in ("env_id", "gamma")] == [1, 2]


def test_texts_that_libraries_take_for_numbers_are_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(RL_GAMES)
    assert read_configuration(tmp_path / "a.yaml").settings["params.config.learning_rate"].value == 3e-4


def test_playground_s_two_files_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(PLAYGROUND_ENV))
    (tmp_path / "ppo.yaml").write_text(yaml.safe_dump(BRAX))
    (tmp_path / "other.json").write_text('{"a": 1}')
    read = read_configuration(tmp_path)
    assert (read.library, read.environment) == ("mujoco-playground", "mujoco-playground")
    assert [file.path.name for file in read.files] == ["config.json", "ppo.yaml"]


def test_an_entry_of_the_zoo_and_what_it_saves(tmp_path: Path) -> None:
    (tmp_path / "ppo.yml").write_text(ZOO)
    read = read_configuration(tmp_path / "ppo.yml", env_id="Walker2d-v5")
    values = {name: each.value for name, each in read.settings.items()}
    assert (values["n_steps"], values["gamma"], _n_envs(read), read.algorithm) == (1024, 0.99, 4, "ppo")
    assert [read.settings[name].line for name in ("n_steps", "gamma")] == [11, 10], "what is inherited is in the entry"
    run = tmp_path / "Hopper-v5_1" / "Hopper-v5"
    run.mkdir(parents=True)
    (run / "config.yml").write_text(yaml.dump(OrderedDict(gamma=0.98, buffer_size=1000, policy="MlpPolicy")))
    (run / "args.yml").write_text(yaml.dump(OrderedDict(algo="tqc", env="Hopper-v5", seed=3)))
    for given in (run, run.parent, run / "config.yml"):
        read = read_configuration(given)
        assert (read.library, read.algorithm, read.env_id) == ("stable-baselines3", "tqc", "Hopper-v5")
        assert read.settings["gamma"].value == 0.98
    for agent in ("Hopper-v5.zip", "best_model.zip"):  # what the Zoo saves besides
        write_model(run.parent / agent)
        assert read_configuration(run.parent).settings["gamma"].value == 0.98


def test_a_model_of_stable_baselines3_without_what_is_pickled(tmp_path: Path) -> None:
    read = read_configuration(write_model(tmp_path / "model.zip"))
    assert (read.library, read.algorithm, _n_envs(read)) == ("stable-baselines3", "ppo", 4)
    assert read.settings["gamma"].value == 0.99
    assert read.unread == ("policy_class", "clip_range")
    sac: dict[str, Any] = {"policy_class": "x", "buffer_size": 100, "gamma": 0.9, "tau": 0.005, "policy_delay": 2}
    assert read_configuration(write_model(tmp_path / "td3.zip", sac)).algorithm == "td3"
    a2c: dict[str, Any] = {"policy_class": "x", "n_steps": 5, "gamma": 0.9, "gae_lambda": 1.0}
    assert read_configuration(write_model(tmp_path / "a2c.zip", a2c)).algorithm == "a2c"


def test_a_library_that_is_named_and_what_is_looked_for_otherwise(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("num_steps: 64\nnum_envs: 64\ngamma: 0.99\n")
    with pytest.raises(InputError, match=r"no library that was recognised \(it has num_steps, num_envs, gamma\)"):
        read_configuration(tmp_path / "a.yaml")
    assert read_configuration(tmp_path / "a.yaml", library="rejax").library == "rejax"
    with pytest.raises(InputError, match="'rejacks' is not a library that is known here"):
        read_configuration(tmp_path / "a.yaml", library="rejacks")


def bombed_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data", b" " * 40_000_000)


ANCHORS = "decimation: 4\nsim: {dt: 1}\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]\n" for n in range(9)
)


@pytest.mark.parametrize(
    ("content", "asked", "algorithm"),
    [
        (SKRL, "sac", "agent.class PPO"),
        (SKRL, "ppo", "ppo"),
        (SKRL.replace("class: PPO", "class: IPPO"), None, "ppo"),
        (SKRL.replace("class: PPO", "class: AMP"), None, "amp"),
        (SKRL.replace("class: PPO", "class: AMP"), "ppo", "ppo"),
        (RL_GAMES, None, "ppo"),
        (RL_GAMES.replace("a2c_continuous", "amp_continuous"), None, "amp_continuous"),
        (RSL_RL_AGENT.replace("class_name: PPO", "class_name: Distillation"), None, "distillation"),
        ("n_steps: 512\ngamma: 0.9\nn_timesteps: 100000\n", None, None),  # of PPO or of A2C
        ("n_steps: 512\ngamma: 0.9\nn_timesteps: 100000\nuse_rms_prop: false\n", None, "a2c"),
        (json.dumps(BRAX), "sac", "unroll_length 20"),
        (json.dumps({"num_timesteps": 5, "discounting": 0.9, "grad_updates_per_step": 8}), "ppo", "grad_updates_per_s"),
    ],
)
def test_the_algorithm_is_what_the_file_says(
    content: str, asked: str | None, algorithm: str | None, tmp_path: Path
) -> None:
    (tmp_path / "a.yaml").write_text(content)
    if asked in (None, algorithm):
        assert read_configuration(tmp_path / "a.yaml", algorithm=asked).algorithm == algorithm
    else:
        with pytest.raises(InputError, match=f"{algorithm}.* is of .*: leave --algorithm {asked} out"):
            read_configuration(tmp_path / "a.yaml", algorithm=asked)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.yaml", ANCHORS, "more than 20000 values"),
        ("a.yaml", "a: !!python/object/apply:os.system [id]\n", "has the tag"),
        ("a.yaml", "a: !!python/object/new:os.system [id]\n", "which is refused: only plain YAML is read"),
        ("a.yaml", "a: !!python/module:os\n", "which is refused"),
        ("a.yaml", "a: " + "[" * 9000, "is nested 51 levels deep"),
        ("a.json", "[" * 9000, "is nested"),
        ("a.json", '{"a":' * 9000, "It is nested 9000 levels deep"),
        ("a.json", '{"a": 1, "a": 2}', "'a' is there twice"),
        ("a.json", '{"a": 1' + "0" * 5000 + "}", "A number of 5001 digits is there"),
        ("a.json", '{"a": ', "Line 1 is not valid JSON"),
        ("a.yaml", "algorithm: {gamma: 0.99, lam: 0.95}\n", "is of no library that was recognised (it has algorithm)"),
        ("a.yaml", RSL_RL_AGENT + "seed: 43\n", "'seed' is there twice"),
        ("a.yaml", "- 1\n", "expected a mapping"),
        ("a.yaml", "", "The file is empty"),
        ("a.txt", "--gamma 0.9 --gamma 0.8 --total-timesteps 5 --num-minibatches 3", "--gamma is there twice"),
        ("a.yaml", "x" * 2_000_000, "at most 1048576 are read"),
        ("a.yaml", ZOO, "is an RL Zoo file: say which entry with --env, such as one of Hopper-v5"),
        ("model.zip", "PK\x03\x04 no zip", "is no zip file that can be read"),
        ("a.json", json.dumps({"a": BRAX, "b": BRAX}), "has the settings of 2 agents (a.json.a, a.json.b)"),
    ],
)
def test_what_cannot_be_read_is_refused(name: str, content: str, says: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError) as refusal:
        read_configuration(tmp_path / name)
    assert says in str(refusal.value)
    assert len(str(refusal.value)) < 1000


def test_hostile_zips_and_folders_are_refused(tmp_path: Path) -> None:
    bombed_zip(tmp_path / "model.zip")
    with pytest.raises(InputError, match="has 40000000 bytes of 'data': at most 16777216 are read"):
        read_configuration(tmp_path / "model.zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("policy.pth", b"")
    with pytest.raises(InputError, match="has no 'data' in it"):
        read_configuration(tmp_path / "other.zip")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="has no configuration that is known here"):
        read_configuration(tmp_path / "empty")
    with pytest.raises(InputError, match="There is no file or folder"):
        read_configuration(tmp_path / "none")


def test_two_action_repeats_are_refused(tmp_path: Path) -> None:
    both = {"env": PLAYGROUND_ENV, "ppo": BRAX | {"action_repeat": 4}}
    (tmp_path / "a.json").write_text(json.dumps(both))
    with pytest.raises(InputError, match=r"env\.action_repeat 1 and ppo\.action_repeat 4 differ: make them one"):
        carry_configuration(read_configuration(tmp_path / "a.json"), "40ms")


def test_a_hash_in_a_text_is_no_comment(tmp_path: Path) -> None:
    (tmp_path / "env.yaml").write_text(ISAAC_ENV + 'name: "a # b"  # c # d\nother: a#b\n# 60 Hz\n')
    file = read_configuration(tmp_path / "env.yaml").files[0]
    lines = file.text.count("\n")
    assert file.comments == {6: "200 Hz", lines - 2: "c # d", lines: "60 Hz"}


def test_mjlab_s_one_environment_is_a_default_that_its_command_line_replaces(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", MJLAB_ENV.replace("num_envs: 32", "num_envs: 1"))
    read = read_configuration(run)
    says = "env.scene.num_envs 1 is mjlab's default, which its command line replaces, and so taken as not said"
    assert any(note.startswith(says) for note in carry_configuration(read, "10ms").notes)
    assert not any("mjlab's default" in note for note in carry_configuration(read, "10ms", n_envs=4096).notes)
    what = r"says env\.scene\.num_envs 1, mjlab's default.*give --num-envs, 1 where that is meant"
    with pytest.raises(InputError, match=what):
        carry_configuration(read, to_num_envs=4096)
    changed = carry_configuration(read, to_num_envs=4096, n_envs=512).changed()
    assert (changed["agent.num_steps_per_env"], changed["env.scene.num_envs"]) == (3, 4096), "of 24 and 1 in the files"
    meant = carry_configuration(read, to_num_envs=2, n_envs=1).changed()
    assert meant["env.scene.num_envs"] == 2
    (row,) = (row for row in describe(read) if row.what == "environments")
    assert (row.value, row.meaning.partition(",")[0]) == ("env.scene.num_envs 1", "mjlab's default")


@pytest.mark.parametrize(
    ("said", "instead", "says"),
    [
        ("num_envs: 4096", "num_envs: 4096.5", "num_envs is 4096.5: it must be a whole number of at least 1"),
        ("num_envs: 4096", "num_envs: 0", "num_envs is 0: it must be a whole number of at least 1"),
        ("s: !!python/tuple\n    - 10.0", "s: !!python/tuple\n    - -10.0", "the shortest time, which is at least 0"),
    ],
)
def test_counts_and_times_that_no_library_can_use_are_refused(
    said: str, instead: str, says: str, tmp_path: Path
) -> None:
    assert said in ISAAC_ENV
    run = write_run(tmp_path / "run", env=ISAAC_ENV.replace(said, instead))
    with pytest.raises(InputError, match=re.escape(says)):
        carry_configuration(read_configuration(run), "10ms")
