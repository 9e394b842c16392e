"""`cycletime transfer FILE_OR_FOLDER`: what is printed, in which form, and what is written."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from cycletime.cli import main
from tests.libraries.configurations import (
    BRAX,
    ISAAC_ENV,
    LEROBOT,
    MJLAB_ENV,
    PLAYGROUND_ENV,
    SKRL,
    write_model,
    write_run,
)


def test_changes_with_their_reasons(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["transfer", str(write_run(tmp_path / "run")), "--to", "10ms"]) == 0
    out = capsys.readouterr().out
    assert "isaac-lab rsl-rl ppo at 20ms (sim.dt 0.005 x decimation 4), 4096 environments" in out
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert "8 env.decimation 4 2 it sets the cycle time" in rows
    assert "2 agent.num_steps_per_env 24 48 batch: x0 / rho, 1966 s" in rows
    assert "what your environment counts in steps" not in out
    assert "has tuned them, run 'cycletime transfer ppo --tuned FILE'." in out


@pytest.mark.parametrize("words", ["file PATH --to 10ms", "PATH --to 10ms"])
def test_ways_to_name_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path, words: str) -> None:
    run = str(write_run(tmp_path / "run"))
    assert main(["transfer", *words.replace("PATH", run).split(), "--as", "overrides"]) == 0
    assert "env.decimation=2\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "given", "override"),
    [
        ("params/env.yaml", "", "env.decimation=2\n"),
        ("params/agent.yaml", "--from 20ms", "agent.num_steps_per_env=48\n"),
        ("skrl_ppo_cfg.yaml", "--from 20ms", "agent.agent.rollouts=32\n"),
        ("mjlab", "", "--env.decimation=2\n"),  # its parser answers 'Unrecognized options' to others
        ("mjlab/params/env.yaml", "", "--env.decimation=2\n"),
    ],
)
def test_overrides_begin_as_on_the_command_line(
    name: str, given: str, override: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = write_run(tmp_path) / name
    write_run(tmp_path / "mjlab", MJLAB_ENV)
    (tmp_path / "skrl_ppo_cfg.yaml").write_text(SKRL)
    assert main(["transfer", str(file), "--to", "10ms", "--as", "overrides", *given.split()]) == 0
    assert override in capsys.readouterr().out.splitlines(keepends=True)


def test_playground_s_flags_and_what_has_none(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "env.json").write_text(json.dumps(PLAYGROUND_ENV))
    (tmp_path / "ppo.json").write_text(json.dumps(BRAX | {"gae_lambda": 0.9}))
    assert main(["transfer", str(tmp_path), "--to", "8ms", "--as", "overrides"]) == 0
    out, err = capsys.readouterr()
    said = dict(word.partition("=")[::2] for word in shlex.split(out))
    assert (said["--unroll_length"], said["--episode_length"]) == ("50", "2500")
    scales = {"reward_config.scales.termination": -2.5, "reward_config.scales.action_rate": -0.025}
    overrides = {"ctrl_dt": 0.008, "episode_length": 2500, **scales}
    assert json.loads(said["--playground_config_overrides"]) == overrides
    assert "--gae_lambda" not in said
    assert "Playground's trainers have no flag for gae_lambda 0.9" in err


def test_what_two_files_say_is_kept_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "env.json").write_text(json.dumps(PLAYGROUND_ENV))
    (tmp_path / "ppo.json").write_text(json.dumps(BRAX))
    assert main(["transfer", str(tmp_path), "--to", "12ms"]) == 0
    assert "  how many ctrl_dt an action is held: action_repeat\n" in capsys.readouterr().out


def test_what_is_nothing_is_not_listed_as_kept(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    env = ISAAC_ENV.replace("update_period: 0.02", "update_period: 0.02\n    max_delay_s: null\n    lag_s: 0.0")
    assert main(["transfer", str(write_run(tmp_path / "run", env)), "--to", "10ms"]) == 0
    kept = capsys.readouterr().out.partition("\nKept\n")[2]
    assert "env.episode_length_s" in kept
    assert "delay_s" not in kept
    assert "lag_s" not in kept


@pytest.mark.parametrize("folder", ["", "run", "elsewhere"])
def test_a_diff_that_patch_takes(
    folder: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is run, or with the folder that is named beside it: 'patch' refuses whole paths."""
    run, here = write_run(tmp_path / "run"), tmp_path / folder
    here.mkdir(exist_ok=True)
    monkeypatch.chdir(here)
    assert main(["transfer", str(run), "--to", "10ms", "--as", "diff"]) == 0
    diff, said = capsys.readouterr()
    assert "# env.decimation: 4 -> 2: it sets the cycle time\n" in diff
    assert {"-decimation: 4", "+decimation: 2"} <= set(diff.splitlines())
    assert (f"note: Apply it with: patch -d {run} -p0.\n" in said) == (folder == "elsewhere")
    root = run if folder == "elsewhere" else here
    subprocess.run(["patch", "-p0", "-d", str(root)], input=diff, text=True, check=True, stdout=subprocess.DEVNULL)
    assert "decimation: 2\n" in (run / "params" / "env.yaml").read_text()


def test_files_are_written_anew_and_never_over_others(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run, out = write_run(tmp_path / "run"), tmp_path / "new"
    words = ["transfer", str(run), "--to", "10ms", "--rule", "scaled", "--to-file"]
    assert main([*words, str(out)]) == 0
    assert (out / "params" / "env.yaml").read_text() != ISAAC_ENV
    assert (run / "params" / "env.yaml").read_text() == ISAAC_ENV
    capsys.readouterr()
    for taken in (out, run):
        assert main([*words, str(taken)]) == 2
        assert f"{taken} exists already" in capsys.readouterr().err
    assert main([*words, str(tmp_path / "new.yaml")]) == 2
    named = f"{run} is a folder: name a new folder, such as new, or print with --as yaml."
    assert named in capsys.readouterr().err
    assert not (tmp_path / "new.yaml").exists()
    assert main(["transfer", str(out), "--to", "20ms", "--rule", "scaled", "--to-file", str(tmp_path / "back")]) == 0
    back, before = (
        {name: (folder / "params" / name).read_text() for name in ("env.yaml", "agent.yaml")}
        for folder in (tmp_path / "back", run)
    )
    assert back["env.yaml"] == before["env.yaml"]
    assert yaml.safe_load(back["agent.yaml"])["algorithm"]["gamma"] == pytest.approx(0.99, rel=1e-14)


def test_whole_files_in_other_formats(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(LEROBOT))
    assert main(["transfer", str(tmp_path / "a.json"), "--to", "50ms", "--as", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["env"]["fps"] == 20
    assert main(["transfer", str(write_run(tmp_path / "run")), "--to", "10ms", "--as", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["env.yaml"]["decimation"] == 2
    words = ["transfer", str(write_model(tmp_path / "model.zip")), "--from", "8ms", "--to", "4ms"]
    assert main([*words, "--as", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_steps"] == 1024
    assert main([*words, "--to-file", str(tmp_path / "other.zip")]) == 2
    assert "stays as it is: use --as overrides, yaml or json" in capsys.readouterr().err


def test_a_model_by_its_name_without_zip_is_found_nearest(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_model(tmp_path / "ppo_model.zip")
    monkeypatch.chdir(tmp_path)
    assert main(["transfer", "ppo_model", "--to", "4ms"]) == 2
    assert "did you mean ppo_model.zip?" in capsys.readouterr().err


def test_a_report_in_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SKRL)
    assert main(["transfer", str(tmp_path / "a.yaml"), "--from", "20ms", "--to", "10ms", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    changes = {each["name"]: each for each in data["configuration"]["changes"]}
    assert changes["agent.rollouts"] == {
        "name": "agent.rollouts",
        "from": 16,
        "to": 32,
        "treatment": "carried",
        "reason": "batch: x0 / rho, 0.32 s",
        "file": str(tmp_path / "a.yaml"),
        "line": 9,
    }
    assert changes["agent.rewards_shaper_scale"]["treatment"] == "not carried"
    assert data["rule"] == "dt-aware"


def test_what_was_written_is_said_and_a_folder_of_runs_names_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run, out = write_run(tmp_path / "logs" / "task" / "run"), tmp_path / "new"
    assert main(["transfer", str(run), "--to", "10ms", "--to-file", str(out)]) == 0
    assert capsys.readouterr().out.endswith(f"note: Written to {out}.\n")
    assert main(["transfer", str(tmp_path / "logs"), "--to", "10ms"]) == 2
    assert f"has runs in it: give the folder of one, such as {run}." in capsys.readouterr().err


def test_an_agent_s_file_alone_lacks_what_only_the_environment_has(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = write_run(tmp_path / "run")
    assert main(["transfer", str(run / "params" / "agent.yaml"), "--to", "10ms", "--from", "20ms"]) == 0
    out = capsys.readouterr().out
    assert "note: The number of environments is not said: the batch is that of one. Give --num-envs.\n" in out
    assert "note: No setting here is the cycle time: set 10ms where your environment has it.\n" in out
    env = run / "params" / "env.yaml"
    env.write_text(ISAAC_ENV.replace("num_envs: 4096", "num_envs: many"))
    assert main(["transfer", str(run), "--to", "10ms"]) == 2
    assert "env.scene.num_envs is 'many': it must be a whole number of at least 1." in capsys.readouterr().err
