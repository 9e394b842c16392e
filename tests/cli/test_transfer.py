"""`cycletime transfer` as people type it: output, JSON, exit status, and one sentence for wrong input."""

import json
import shlex
import subprocess
import sys
from math import isclose
from pathlib import Path

import pytest

from cycletime.cli import main
from cycletime.libraries.on_policy import ONE_ENVIRONMENT
from tests.cli.transferring import OWN, ZOO, carried_json


def test_ppo_from_16_to_4_milliseconds(capsys: pytest.CaptureFixture[str]) -> None:
    data = carried_json(capsys, "ppo", "--from", "16ms", "--to", "4ms")
    assert (data["algorithm"], data["rule"]) == ("ppo", "dt-aware")
    assert data["to"] == {"dt_s": 0.004, "batch": 8000, "minibatch": 200, "discount": 0.99, "trace_decay": 0.95}
    assert data["notes"] == [
        "Not given, so the paper's baseline: batch 2000, minibatch 50, discount 0.99, trace_decay 0.95.",
        "Rule 'dt-aware' shrinks horizons: discount 0.99 from 1.59 s to 0.398 s, trace_decay 0.95 from 0.312 s to "
        "0.078 s.",
    ]


def test_ppo_from_16_to_64_milliseconds(capsys: pytest.CaptureFixture[str]) -> None:
    data = carried_json(capsys, "ppo", "--from", "16ms", "--to", "64ms")
    assert (data["to"]["batch"], data["to"]["minibatch"]) == (500, 12)
    assert isclose(data["to"]["discount"], 0.99**4)
    assert isclose(data["to"]["trace_decay"], 0.95**4)
    assert any("12.5 was rounded to 12" in note for note in data["notes"])


@pytest.mark.parametrize(("rule", "discount"), [("tuned-scaled", 0.851**4), ("tuned", 0.851)])
def test_sac_from_16_to_64_milliseconds(capsys: pytest.CaptureFixture[str], rule: str, discount: float) -> None:
    data = carried_json(capsys, "sac", "--from", "16ms", "--to", "64ms", "--discount", ".851", "--rule", rule)
    assert (data["rule"], data["notes"]) == (rule, [])
    assert isclose(data["to"]["discount"], discount)


def test_all_of_ppo_s_options(capsys: pytest.CaptureFixture[str]) -> None:
    words = "ppo --from 25Hz --to 0.01 --batch 4e2 --minibatch 10 --discount .9 --trace-decay .8 --rule scaled"
    parts = "--noise-std 0.5 --learning-rate 1e-4 --clip .1 --also exploration-noise learning-rate clip"
    data = carried_json(capsys, *words.split(), *parts.split())
    assert (data["to"]["batch"], data["to"]["minibatch"], data["to"]["noise_std"]) == (1600, 40, 1.0)
    assert (data["to"]["learning_rate"], data["to"]["clip"]) == (2e-4, 0.05)
    assert isclose(data["to"]["discount"], 0.9**0.25)
    assert data["notes"] == []


def test_all_of_sac_s_options(capsys: pytest.CaptureFixture[str]) -> None:
    words = """sac --from 16ms --to 32ms --discount .9 --minibatch 128 --replay-capacity 1e5 --warmup-steps 1000
        --target-smoothing .01 --updates-per-step 1 --noise-std .1 --target-entropy -3 --action-size 2
        --learning-rate 1e-3
        --also replay-capacity warm-up target-smoothing updates-per-second exploration-noise target-entropy"""
    to = carried_json(capsys, *words.split())["to"]
    assert (to["replay_capacity"], to["warmup_steps"], to["updates_per_step"]) == (50_000, 500, 2)
    assert (to["minibatch"], to["target_smoothing"]) == (128, 0.01)
    assert set(to) == {
        *("dt_s", "discount", "minibatch", "replay_capacity", "warmup_steps", "target_smoothing"),
        *("updates_per_step", "noise_std", "learning_rate", "target_entropy"),
    }


def test_the_table_and_a_library_s_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["transfer", "ppo", "--from", "40ms", "--to", "10ms", "--for", "stable-baselines3", "--num-envs", "3"])
        == 0
    )
    out = capsys.readouterr().out
    assert "batch (b)" in out
    assert "the paper's baseline" in out
    assert "stable-baselines3:\n  n_steps = 2667\n  batch_size = 200\n" in out
    assert "note: stable-baselines3 cannot express batch 8000 with 3 environments: the nearest is 8001." in out


def test_a_library_s_words_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    library = carried_json(capsys, "ppo", "--from", "40ms", "--to", "10ms", "--for", "rsl_rl")["library"]
    assert library["name"] == "rsl-rl"
    assert library["values"]["num_steps_per_env"] == 8000
    assert (library["exact"], library["notes"]) == (True, [ONE_ENVIRONMENT])


ISAAC_LAB = "--from-library isaac-lab num_steps_per_env=24"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("ppo --from 0 --to 4ms", "'0' is not a time span: give a positive time such as '16ms'"),
        ("ppo --from nan --to 4ms", "'nan' is not a time span"),
        ("ppo --from 16ms --to -4ms", "'-4ms' is not a time span"),
        ("ppo --from 16ms --to 4ms --discount 1.5", "discount is 1.5: it must be a number in (0, 1]"),
        ("ppo --from 16ms --to 4ms --discount nan", "discount is nan: it must be a number in (0, 1]"),
        ("ppo --from 16ms --to 4ms --batch 40", "minibatch is 50: it must be at most the batch, 40"),
        ("ppo --from 16ms --to 4ms --batch 2.5", "'2.5' is not a whole number such as 2000 or 1e6"),
        ("ppo --from 16ms --to 4ms --batch 1e999999999", "'1e999999999' is not a whole number such as 2000 or 1e6"),
        ("ppo --from 16ms --to 4ms --batch 1e400", "'1e400' is not a whole number such as 2000 or 1e6"),
        ("ppo --from 16ms --to 4ms --batch nan", "'nan' is not a whole number such as 2000 or 1e6"),
        ("ppo --from 16ms --to 4ms --batch inf", "'inf' is not a whole number such as 2000 or 1e6"),
        ("ppo --from 16ms --to 4ms --batch x", "'x' is not a whole number such as 2000 or 1e6"),
        ("ppo --from 16ms --to 4ms --discount x", "'x' is not a number such as 0.99"),
        ("ppo --from 16ms --to 4ms --rule linear", "Unknown rule 'linear' for ppo: choose one of baseline, dt-aware"),
        ("sac --from 16ms --to 4ms --rule dt-aware", "Unknown rule 'dt-aware' for sac: choose one of baseline, scaled"),
        ("sac --from 16ms --to 4ms --also magic", "Unknown part 'magic' for sac: choose one of replay-capacity"),
        (
            "sac --from 16ms --to 4ms --also warm-up,learning-rate",
            "'warm-up,learning-rate' is not one part: separate them by blanks, warm-up learning-rate.",
        ),
        ("ppo --from 16ms --to 4ms --tuned nofile.toml", "There is no file nofile.toml."),
        ("ppo --from 16ms --to 4ms --for keras", "Unknown library 'keras': choose one of stable-baselines3"),
        ("sac --from 16ms --to 4ms --for rsl-rl", "rsl-rl has no SAC that is known here: choose one of"),
        (
            "ppo --from 16ms --to 4ms --num-envs 4",
            "--num-envs 4 matters to a library's words only: name one with --for",
        ),
        ("ppo --from 16ms", "--to"),
        ("sac --from 50ms --to 25ms --also target-entropy", "needs --action-size, the number of action dimensions"),
        ("dqn --from 16ms --to 4ms", "There is no command 'cycletime transfer dqn', nor a file or folder dqn: give"),
        ("td4 --from 16ms --to 4ms", "ddpg, file; did you mean td3?"),
        ("ppo --from 16 --to 4ms", "'16' has no unit: write '16ms' for milliseconds, '16s' for seconds or '16Hz'."),
        ("ppo --from 16ms --to 4ms --rule scald", "scaled, constant, horizons; did you mean scaled?"),
        ("ppo --from 16ms --to 4ms --for stoics", "lerobot, authors; did you mean stoix?"),
        ("td3 --from 16ms --to 4ms --for cleanrl", "cleanrl has no TD3 that is known here: choose one of stable-b"),
        ("ppo --from 16ms --to 4ms --from-library sb3 512", "'512' is not a setting such as n_steps=2048"),
        ("ppo --from 16ms --to 4ms --from-library sb3 gamma=1 gamma=1", "--from-library: gamma is given twice"),
        (
            "ppo --from 16ms --to 4ms --from-library sb3 n_envs=8",
            "n_envs=8 is no word of a library: write --num-envs 8.",
        ),
        (
            "ppo --from 16ms --to 4ms --from-library sb3 dt=16ms",
            "dt=16ms is no word of a library: write --from 16ms.",
        ),
        ("ppo --from 16ms --to 4ms --from-library sb3 n_step=512", "clip_range; did you mean n_steps?"),
        (
            "ppo --to 4ms --from-library isaac-lab agent.num_steps_per_env=24 env.decimatoin=4 env.sim.dt=0.005",
            "policy.init_noise_std; did you mean decimation?",
        ),
        (
            "ppo --to 10ms --from-library playground unroll_length=20 ctrl_dt=0.02 sim_dt=0.004",
            "The cycle time 10ms is not a whole multiple of the environment time step 4ms",
        ),
        (
            f"ppo --to 12ms {ISAAC_LAB} env.decimation=4 env.sim.dt=0.005 env.sim.render_interval=4",
            "the nearest cycle times are 10ms and 15ms. Or change sim.dt, which is 0.005, first.",
        ),
        (f"ppo --to 7ms --from 20ms {ISAAC_LAB} env.decimation=4", "are 5ms and 10ms. Or change sim.dt as well."),
        (
            f"ppo --to 10ms {ISAAC_LAB} env.decimation=4 env.sim.dt=5",
            "sim.dt is 5: it must be a number above 0 and below 1",
        ),
        (
            f"ppo --to 10ms {ISAAC_LAB} decimation=4 sim.dt=5ms",
            "sim.dt is '5ms': it must be a number above 0 and below 1",
        ),
        (
            f"ppo --to 10ms {ISAAC_LAB} decimation=0 sim.dt=0.005",
            "decimation is 0: it must be a whole number of at least",
        ),
        (
            "ppo --to 10ms --from-library playground ctrl_dt=20",
            "ctrl_dt is 20: it must be a number above 0 and below 1",
        ),
        (
            f"ppo --to 10ms {ISAAC_LAB} decimation=4 sim.dt=0.005 env.rewards.termination_penalty.weigth=-200",
            "did you mean rewards.termination_penalty.weight?",
        ),
        (f"ppo --to 10ms --from 20ms {ISAAC_LAB} rollouts=24", "isaac-lab has no setting 'rollouts' that depends on"),
        (
            f"ppo --to 10ms --from 20ms {ISAAC_LAB} algorithm.learning_rate=fast",
            "isaac-lab's algorithm.learning_rate is 'fast': it must be a number, or a schedule as lin_3e-4.",
        ),
        ("ppo --from 40ms --to 20ms --from-library sb3 learning_rate=3e", "learning_rate is '3e': it must be a number"),
        (
            f"ppo --to 10ms --from 20ms {ISAAC_LAB} env.episode_length_s=-20",
            "episode_length_s is -20: it must be a num",
        ),
        (f"ppo --to 10ms --from 20ms {ISAAC_LAB} episode_lenght_s=20", "did you mean episode_length_s?"),
        (
            "ppo --from 20ms --to 10ms --from-library rl-games horizon_length=24 minibatch_size=24576 gamma=.9 tau=.9",
            f"rl-games's minibatch_size is 24576: it must be at most the batch, 24. {ONE_ENVIRONMENT}",
        ),
        (
            "ppo --from 16ms --to 4ms --from-library isaac-lab agent.num_step_per_env=24",
            "isaac-lab has no setting 'agent.num_step_per_env' that depends on the cycle time; "
            "those are algorithm.gamma, algorithm.lam, num_steps_per_env; did you mean num_steps_per_env?",
        ),
        (
            "ppo --from 16ms --to 4ms --from-library isaac-lab agent.num_steps_per_env=24 agent.algorithm.gama=0.97",
            "did you mean algorithm.gamma?",
        ),
        ("ppo --from 16ms --to 4ms --from-library sb3 n_steps=many", "n_steps is 'many': only a number can be carried"),
        *(
            (
                f"ppo --from 20ms --to 10ms --from-library isaac-lab num_steps_per_env=24 {setting}={value}",
                f"isaac-lab's {setting.removeprefix('env.')} is {as_python}: it must be a number.",
            )
            for setting, value, as_python in (
                ("env.rewards.termination_penalty.weight", "abc", "'abc'"),
                ("env.rewards.track_lin_vel_xy_exp.weight", "none", "None"),
                ("env.curriculum.smoother.params.num_steps", "[1,many]", "[1, 'many']"),
                ("max_iterations", "many", "'many'"),
            )
        ),
        ("ppo --from 20ms --to 10ms --as overrides", "--as overrides matters to a library's words only: name one with"),
        ("missing.yml --env A --from 16ms --to 4ms", "There is no file or folder missing.yml."),
        (". --env A --from 16ms --to 4ms", ". has runs in it: give the folder of one, such as docs/examples/"),
        ("/dev/zero --env A --from 16ms --to 4ms", "/dev/zero is a device: give a regular file."),
        (
            f"{__file__} --algorithm dqn --env A --from 16ms --to 4ms",
            "'dqn' is not an algorithm with a rule: give one of",
        ),
        (
            f"{__file__} --env A --from 16ms --to 4ms",
            "is Python, which is not run: give the run's params/; 'cycletime explain' reads it.",
        ),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_status_2(
    capsys: pytest.CaptureFixture[str], words: str, says: str
) -> None:
    status = main(["transfer", *words.split()])
    captured = capsys.readouterr()
    assert (status, captured.out) == (2, "")
    assert says in captured.err
    assert captured.err.count("\n") == 1


def test_a_library_s_words_are_read_and_given_back_whole(capsys: pytest.CaptureFixture[str]) -> None:
    said = "n_steps=512 learning_rate=lin_3e-4 use_sde=true seed=none clip_range=0.2 cls=1e1"
    words = f"--from-library sb3 {said} --num-envs 8"
    data = carried_json(capsys, "ppo", "--from", "40ms", "--to", "20ms", *words.split())
    assert (data["from"]["batch"], data["to"]["batch"], data["to"]["minibatch"]) == (4096, 8192, 128)
    assert data["library"]["name"] == "stable-baselines3"
    assert data["library"]["values"] == {
        "n_steps": 1024,
        "learning_rate": "lin_3e-4",
        "use_sde": True,
        "seed": None,
        "clip_range": 0.2,
        "cls": 10,
        "batch_size": 128,
        "gamma": 0.99,
        "gae_lambda": 0.95,
    }
    assert isinstance(data["library"]["values"]["cls"], int)
    assert data["notes"][0] == "Not given, so the default of sb3: batch_size 64, gamma 0.99, gae_lambda 0.95."


def test_options_replace_what_a_library_says_and_another_library_may_be_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = "ppo --from 40ms --to 20ms --from-library sb3 n_steps=500 --minibatch 100 --for cleanrl"
    data = carried_json(capsys, *words.split())
    assert (data["to"]["batch"], data["to"]["minibatch"]) == (1000, 200)
    assert data["library"]["values"]["num_minibatches"] == 5


def test_another_number_of_environments_keeps_the_batch_and_names_the_other_choice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = "ppo --from 20ms --to 20ms --to-num-envs 1024 --num-envs 4096 --from-library rsl_rl num_steps_per_env=24"
    data = carried_json(capsys, *words.split())
    assert data["library"]["values"]["num_steps_per_env"] == 96
    assert data["to"]["batch"] == 4096 * 24
    assert "A rollout lasts 1.92 s in each, and did 0.48 s." in data["notes"][-2]
    assert "set num_steps_per_env 24: a batch of 24576 and a minibatch of 6144 samples" in data["notes"][-1]
    same = carried_json(capsys, *words.split(), "--batch", "24576", "--minibatch", "6144")
    assert same["library"]["values"]["num_steps_per_env"] == 24
    assert not any("become" in note for note in same["notes"])
    said = "ppo --from 20ms --to 10ms --to-num-envs 4096 --from-library cleanrl num_envs=2048 num_steps=64"
    assert carried_json(capsys, *said.split())["library"]["values"]["num_envs"] == 4096
    assert main(["transfer", "ppo", "--from", "20ms", "--to", "10ms", "--to-num-envs", "8"]) == 2
    assert "name one with --for" in capsys.readouterr().err


def test_values_of_a_file_and_of_a_library_are_refused_together(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "tuned.toml"
    file.write_text("[tuned.ppo]\ndt = '16ms'\nbatch = 100\nminibatch = 10\n")
    assert main(f"transfer ppo --tuned {file} --to 8ms --from-library sb3".split()) == 2
    assert "--from-library has values as well, so leave one out." in capsys.readouterr().err


@pytest.mark.parametrize("algorithm", ["ppo", "sac", "a2c", "tqc", "td3", "ddpg"])
def test_tables_of_the_paper_s_rules_fit_80_columns(capsys: pytest.CaptureFixture[str], algorithm: str) -> None:
    parts = "replay-capacity warm-up target-smoothing exploration-noise --noise-std 0.123456 --replay-capacity 1000000"
    also = "exploration-noise" if algorithm in ("ppo", "a2c") else parts
    if algorithm in ("sac", "tqc"):
        also = f"target-entropy {parts} --target-entropy -1.23456 --action-size 7"
    rule = "dt-aware" if algorithm in ("ppo", "a2c") else "tuned-scaled"  # the formula of 'horizons' is long
    words = f"transfer {algorithm} --from 33ms --to 16.5ms --discount 0.987654 --rule {rule} --also {also}"
    assert main(words.split()) == 0
    out = capsys.readouterr().out
    table = [line for line in out.splitlines() if not line.startswith(("note: ", "Not carried: ", "Use "))]
    assert len(table) > 4
    assert max(map(len, table)) <= 80


def test_what_a_tuned_file_sets_is_what_a_part_starts_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tuned.toml"
    file.write_text("[tuned.ppo]\ndt = '16ms'\nbatch = 100\n[set.ppo]\nlearning_rate = 1e-3\nhidden = [8]\n")
    carried = carried_json(capsys, "ppo", "--tuned", str(file), "--to", "4ms", "--also", "learning-rate")
    assert f"Not in these values, but set in {file} for every cycle time: hidden (8,)." in carried["notes"]
    assert carried["to"]["learning_rate"] == 2e-3
    typed = carried_json(capsys, *f"ppo --tuned {file} --to 4ms --also learning-rate --learning-rate 1e-4".split())
    assert typed["to"]["learning_rate"] == 2e-4
    assert "learning_rate" not in carried_json(capsys, "ppo", "--tuned", str(file), "--to", "4ms")["to"]


def test_a_rule_of_one_s_own_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "own.toml"
    file.write_text(f'name = "a study is such a file, too"\n{OWN}')
    words = ["--from", "16ms", "--to", "64ms", "--discount", "0.92", "--rule", "mine", "--own-rules", str(file)]
    data = carried_json(capsys, "ppo", *words)
    assert (data["rule"], data["to"]["batch"], data["to"]["minibatch"]) == ("mine", 500, 50)
    assert isclose(data["to"]["discount"], 0.8464817248906141)
    assert main(["transfer", "ppo", *words]) == 0
    assert "max(x0^rho, min(x0, e^(-1/6)))" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "rule", "says"),
    [
        (OWN, "min", "--rule is 'min': {file} has mine."),
        ("name = 'nothing'", "mine", "--rule is 'mine': {file} has no table [own_rules.NAME]."),
        ("own_rules = 3", "mine", "{file}: own_rules is 3: it must have a table for each rule"),
        ("own_rules", "mine", "{file} is not a TOML file"),
    ],
)
def test_a_file_without_the_rule_is_one_sentence(
    text: str, rule: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "own.toml"
    file.write_text(text)
    assert main(["transfer", "ppo", "--from", "16ms", "--to", "4ms", "--rule", rule, "--own-rules", str(file)]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"cycletime: {says.format(file=file)}")
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "most"),
    [
        ("ppo --from 40ms --to 10ms", 25),
        ("sac --from 40ms --to 10ms --for brax", 25),
        ("ppo.yml --env Pendulum-v1 --from 50ms --to 25ms", 33),  # a file's reader and writer as well
    ],
)
def test_a_transfer_loads_few_modules_and_nothing_heavy(words: str, most: int, tmp_path: Path) -> None:
    (tmp_path / "ppo.yml").write_text("Pendulum-v1:\n  n_steps: 1024\n  batch_size: 64\n")
    program = (
        "import sys\nfrom cycletime.cli import main\n"
        f"assert main({['transfer', *words.split()]!r}) == 0\n"
        "loaded = [name for name in sys.modules if name.split('.')[0] == 'cycletime']\n"
        f"assert len(loaded) <= {most}, (len(loaded), loaded)\n"
        "assert not {'jax', 'numpy', 'rich', 'gymnasium'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("number", [0, -5])
@pytest.mark.parametrize("words", ["ppo --for sb3", "FILE --env ReacherBulletEnv-v0 --algorithm ppo"])
def test_a_number_of_environments_to_go_to_is_at_least_1(
    words: str, number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ppo.yml").write_text(ZOO)
    given = words.replace("FILE", str(tmp_path / "ppo.yml")).split()
    assert main(["transfer", *given, "--from", "20ms", "--to", "10ms", "--to-num-envs", str(number)]) == 2
    assert f"--to-num-envs is {number}: it must be a whole number of at least 1." in capsys.readouterr().err


@pytest.mark.parametrize("said", ["", *(f"{name}num_envs=4096" for name in ("", "scene.", "env.scene."))])
def test_isaac_lab_s_block_has_the_number_of_environments(said: str, capsys: pytest.CaptureFixture[str]) -> None:
    number = "" if said else "--num-envs 4096"
    words = f"ppo --to 10ms {number} --to-num-envs 2048 --from-library isaac-lab agent.num_steps_per_env=24 "
    library = carried_json(capsys, *words.split(), "env.decimation=4", "env.sim.dt=0.005", *said.split())["library"]
    assert library["values"]["agent.num_steps_per_env"] == 24 * 2 * 2
    numbers = {name: value for name, value in library["values"].items() if name.endswith("num_envs")}
    assert numbers == {"env.scene.num_envs": 2048}, "by its name on the command line"
    assert library["unknown"] == []


@pytest.mark.parametrize(
    ("words", "sets", "left"),
    [
        ("--from 20ms --for isaac-lab --num-envs 8", True, "what your environment counts in steps"),
        (
            "--from-library isaac-lab num_steps_per_env=24 decimation=4 sim.dt=0.005",
            False,
            "what else your environment",
        ),
    ],
)
def test_what_is_left_to_set_in_the_environment(
    words: str, sets: bool, left: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["transfer", "ppo", "--to", "10ms", *words.split()]) == 0
    out = capsys.readouterr().out
    assert ("note: Set sim.dt and decimation so that the cycle time is 10ms.\n" in out) == sets
    assert f"; {left}" in out


def test_rollouts_that_come_out_the_same_are_carried(capsys: pytest.CaptureFixture[str]) -> None:
    words = "ppo --from 50ms --to 25ms --from-library sb3 n_steps=256 gamma=0.98 --num-envs 8 --to-num-envs 16"
    data = carried_json(capsys, *words.split())
    assert data["library"]["values"]["n_steps"] == 256 * 2 * 8 // 16
    assert not [note for note in data["library"]["notes"] if "n_steps" in note]


def test_minus_1_is_no_number_of_steps(capsys: pytest.CaptureFixture[str]) -> None:
    words = "ppo --from 8ms --to 4ms --from-library sb3 n_steps=256 sde_sample_freq=-1"
    notes = carried_json(capsys, *words.split())["library"]["notes"]
    assert "Kept: sde_sample_freq -1 (-1 is no number of steps)." in notes


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("isaac env.decimation=4", "Unknown library 'isaac'"),
        ("isaaclab num_steps_per_env=24", "or give sim.dt and decimation in the library's words."),
        ("skrl rollouts=24 env.decimation=4", "or give env.sim.dt and env.decimation in the library's words."),
        ("lerobot", "or give env.fps in the library's words."),
    ],
)
def test_a_library_that_is_unknown_or_says_no_cycle_time(
    words: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    algorithm = "sac" if words == "lerobot" else "ppo"
    assert main(["transfer", algorithm, "--to", "10ms", "--from-library", *words.split()]) == 2
    assert says in capsys.readouterr().err


def test_the_number_of_environments_is_no_default_of_rl_games(capsys: pytest.CaptureFixture[str]) -> None:
    words = "transfer ppo --from 20ms --to 10ms --from-library rl-games horizon_length=24 minibatch_size=24 gamma=0.99"
    for given, number, told in (("", 1, True), ("env.scene.num_envs=8", 8, False), ("--num-envs 8", 8, False)):
        assert main(f"{words} tau=0.95 {given}".split()) == 0
        out = capsys.readouterr().out
        assert (f"num_actors = {number}\n" in out, "so the default of" in out) == (True, False)
        assert ("The number of environments is not said: the batch is that of one." in out) == told


@pytest.mark.parametrize(
    ("words", "overrides"),
    [
        (
            "--from 20ms --for isaac-lab --num-envs 4096 --batch 98304 --minibatch 24576",
            "agent.num_steps_per_env=48 agent.algorithm.num_mini_batches=4 agent.algorithm.gamma=0.99",
        ),
        (
            "--from-library isaac-lab num_steps_per_env=24 env.decimation=4 sim.dt=0.005 agent.lag_s=2 own=3 "
            "rewards.action_rate_l2.weight=-0.01 events.push.interval_range_s=[10,15]",
            "agent.num_steps_per_env=48 env.decimation=2 env.sim.dt=0.005 agent.lag_s=2 own=3 "
            "env.rewards.action_rate_l2.weight=-0.02 env.events.push.interval_range_s=[10,15]",
        ),
        (
            "--from 20ms --from-library skrl rollouts=24 agent.agent.lambda=1 timesteps=10 memory.memory_size=24",
            "agent.agent.rollouts=48 agent.agent.lambda=1 agent.trainer.timesteps=20 agent.memory.memory_size=48",
        ),
        (
            "--from 20ms --num-envs 8 --from-library rl-games horizon_length=24 minibatch_size=64 gamma=1 tau=1",
            "agent.params.config.horizon_length=48 agent.params.config.minibatch_size=128 agent.params.config.gamma=1",
        ),
        ("--from 20ms --for cleanrl --batch 100 --minibatch 50", "--num-envs=1 --num-steps=200 --num-minibatches=2"),
        ("--from 20ms --for torchrl --batch 100 --minibatch 50", "collector.frames_per_batch=200"),
    ],
)
def test_values_as_the_command_line_takes_them(words: str, overrides: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["transfer", "ppo", "--to", "10ms", "--as", "overrides", *words.split()]) == 0
    out, err = capsys.readouterr()
    assert set(overrides.split()) <= set(out.splitlines())
    assert "rho = dt/dt0 = 1/2" in err
    assert all("=" in line and " " not in line for line in out.splitlines())


def test_values_as_playground_s_flags(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--from-library playground ctrl_dt=0.02 env.episode_length=1000 num_timesteps=1000 gae_lambda=1"
    scale = "reward_config.scales.action_rate=-0.01"
    assert main(["transfer", "ppo", "--to", "10ms", "--as", "overrides", *words.split(), scale]) == 0
    out, err = capsys.readouterr()
    flags = dict(word.partition("=")[::2] for word in shlex.split(out))
    assert (flags["--num_timesteps"], flags["--unroll_length"]) == ("2000", "20")
    of_env = {"ctrl_dt": 0.01, "episode_length": 2000, "reward_config.scales.action_rate": -0.02}
    assert json.loads(flags["--playground_config_overrides"]) == of_env
    assert "--gae_lambda" not in flags
    assert "Playground's trainers have no flag for gae_lambda 1" in err


def test_isaac_lab_s_words_are_those_of_its_command_line_in_the_table_too(capsys: pytest.CaptureFixture[str]) -> None:
    words = "ppo --from 20ms --to 10ms --for isaac-lab --num-envs 4096 --batch 98304 --minibatch 24576"
    assert main(["transfer", *words.split()]) == 0
    assert (
        "isaac-lab:\n  agent.num_steps_per_env = 48\n  agent.algorithm.num_mini_batches = 4\n"
        in capsys.readouterr().out
    )
