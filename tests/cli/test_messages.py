"""What people type who know another library, or mean another file: one sentence with the value and what is right."""

import inspect
from collections.abc import Callable
from pathlib import Path

import gymnasium
import pytest

import cycletime
from cycletime.agents import OrnsteinUhlenbeck
from cycletime.cli import main
from cycletime.duration import cycle_steps
from cycletime.errors import InputError
from cycletime.rules import PPO, SAC
from cycletime.studies.advice import differences
from cycletime.studies.spec_file import study_from_table
from cycletime.tasks import ActionDelay, ObservationDelay, RealTime
from cycletime.training.make_specs import make_specs
from cycletime.training.run_folder import RunFolder
from tests.policies.conftest import spec_of

TRAIN = "train --task reacher --dt 16ms --env-steps 4000"
TRANSFER = "transfer ppo --from 40ms --to 20ms"
SB3 = "--from-library stable-baselines3"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "train --task reacher --dt 16ms --total-timesteps 1000",
            "--total-timesteps is --env-steps here, which counts steps of the environment, dt / env_dt for each "
            "action.",
        ),
        (
            f"{TRANSFER} --total_timesteps 1000",
            "--total_timesteps is one of a library's words: give --from-library LIBRARY total_timesteps=1000.",
        ),
        (f"{TRAIN} --set lr=0.001", "--set lr=0.001: lr is learning_rate here: give --set learning_rate=0.001."),
        (f"{TRAIN} --set gamma=0.9", "--set gamma=0.9: gamma is --discount 0.9 here."),
        (f"{TRAIN} --seed 0-x", "--seed: '0-x' is not a whole number such as 2000 or 1e6."),
        (f"{TRANSFER} {SB3} n_steps=512 --batch 4000", "--batch is 4000, and n_steps=512 says it too: leave one out."),
        (
            f"{TRANSFER} {SB3} gamma=0.98 --discount 0.98",
            "--discount is 0.98, and gamma=0.98 says it too: leave one out.",
        ),
        (
            f"{TRANSFER} --batch 4 --minibatch 4 --for sb3 --num-envs 8",
            "--batch is 4: 8 environments collect at least 8 samples in a batch, one step of each, so give at least "
            "that, or fewer --num-envs.",
        ),
        (
            f"{TRANSFER} {SB3} exploration_fraction=0.16",
            "stable-baselines3's exploration_fraction is 0.16, a setting of DQN, and no rule here carries the values "
            "of DQN: 'cycletime transfer' is for ppo, sac, a2c, tqc, td3 and ddpg.",
        ),
        ("study run quick.toml --out s --workers 99999999999", "--workers is 99999999999: it must be at most 10,000."),
        ("study plan quick.toml --workers 10001", "--workers is 10001: it must be at most 10,000."),
        ("evaluate nowhere", "There is no folder 'nowhere': give a run's, which 'cycletime train' prints."),
        ("evaluate quick.toml", "'quick.toml' is a file: give the run's folder."),
        (
            f"{TRAIN} --tuned tuning.toml",
            "tuning.toml has [500, 1000] as batch, as what 'cycletime tune' reads: give the file that it writes, by "
            "--write tuned.toml.",
        ),
    ],
)
def test_one_sentence_says_what_is_right(
    words: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    quick = 'name = "q"\ntask = "reacher"\nalgorithm = "ppo"\ndt = "16ms"\nseeds = 1\nenv_steps = 4000\n'
    (tmp_path / "quick.toml").write_text(quick)
    (tmp_path / "tuning.toml").write_text(f"{quick}fresh_seeds = 3\n[tuned]\nbatch = [500, 1000]\n")
    assert main(words.split()) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", f"cycletime: {sentence}\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["quick.toml", "tuning.toml"]


def test_a_choice_of_the_batch_beside_another_number_of_environments_is_taken(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = f"{TRANSFER} {SB3} n_steps=512 batch_size=64 --num-envs 8 --to-num-envs 4 --batch 2048 --minibatch 32"
    assert main(words.split()) == 0
    assert "n_steps = 1024\n" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["evaluate", "watch", "plot", "export --to numpy"])
def test_a_folder_of_runs_names_one_of_them(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = RunFolder.create(Path("runs"), spec_of()).path
    assert main([*command.split(), "runs"]) == 2
    assert capsys.readouterr().err == f"cycletime: 'runs' is not a run, but a run is in it: give {run}.\n"


def test_of_several_runs_one_is_named_and_a_study_s_are_said_to_be_elsewhere(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "spec.json").touch()
    with pytest.raises(InputError, match=rf"2 runs are in it: give one of them, such as {tmp_path}/a\.$"):
        RunFolder.open(tmp_path)
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "study.json").touch()
    with pytest.raises(InputError, match=r"it is a study, whose runs 'cycletime study status --runs' names\.$"):
        RunFolder.open(tmp_path / "study")


@pytest.mark.parametrize(
    "call",
    [
        lambda: PPO(dt=40),
        lambda: PPO(dt=40.0),
        lambda: SAC(dt=40),
        lambda: PPO(dt=0.04).at(40),
        lambda: make_specs(task="reacher", dt=40, env_steps=4000),
        lambda: make_specs(task="reacher", dt="40ms", tuned_at=40, env_steps=4000),
        lambda: gymnasium.make("cycletime.tasks:cycletime/Reacher-v0", dt=40),
        lambda: ActionDelay(gymnasium.make("Pendulum-v1"), 40),
        lambda: ObservationDelay(gymnasium.make("Pendulum-v1"), ("10ms", 40)),
        lambda: RealTime(gymnasium.make("Pendulum-v1"), history=40),
        lambda: OrnsteinUhlenbeck(40.0),
        lambda: cycle_steps(40, "20ms"),
    ],
)
def test_a_time_of_a_second_or_more_needs_its_unit_in_python_too(call: Callable[[], object]) -> None:
    with pytest.raises(InputError, match=r"^'40(\.0)?' has no unit: write '40(\.0)?ms' for milliseconds, '40"):
        call()


def test_a_study_s_file_explains_other_libraries_words() -> None:
    for name, hint in (
        ("total_timesteps", "; total_timesteps is env_steps here, which counts steps of the environment"),
        ("lr", "; lr is learning_rate here, in the table set."),
        ("gamma", "; gamma is discount here, in the table tuned."),
    ):
        with pytest.raises(InputError, match=hint):
            study_from_table({name: 1})


def test_values_in_python_explain_other_libraries_words() -> None:
    with pytest.raises(InputError, match=r"; gamma is discount here\.$"):
        make_specs(task="reacher", dt="16ms", env_steps=4000, values={"gamma": 0.9})
    with pytest.raises(InputError, match=r"; lr is learning_rate here\.$"):
        make_specs(task="reacher", dt="16ms", env_steps=4000, others={"lr": 0.1})


def test_two_questions_differ_in_all_that_is_named() -> None:
    before = {"world": "reacher", "dts": ["8ms"], "env_steps": 4000, "device": "cpu"}
    assert differences(before, before) == ""
    now = {**before, "world": "pendulum", "env_steps": 5000}
    assert differences(before, now) == "task reacher instead of pendulum and env_steps 4000 instead of 5000"


def test_an_editor_completes_the_arguments_of_train() -> None:
    """They are those of the specs, with the same types and defaults, and what training needs beside."""
    ours, asked = (inspect.signature(each).parameters for each in (cycletime.train, make_specs))
    assert {name: ours[name] for name in asked} == dict(asked)
    assert set(ours) - set(asked) == {"out", "progress", "stop", "checkpoint_s"}
    assert all(each.kind is each.KEYWORD_ONLY and each.annotation is not each.empty for each in ours.values())
