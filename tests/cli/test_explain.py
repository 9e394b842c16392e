"""`cycletime explain`: what it prints, its exit status, and what it refuses."""

import json
from pathlib import Path

import pytest

from cycletime.cli import main
from tests.libraries.configurations import BRAX, PLAYGROUND_ENV, ZOO, write_run

SOURCE = """class EnvCfg:
    decimation = 2  # 50 Hz
    class sim:
        dt = 1 / 120

class SlowCfg:
    decimation = 24
    class sim:
        dt = 1 / 120
"""


def explain(*words: str) -> int:
    return main(["explain", *words])


def test_a_run_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(str(write_run(tmp_path / "run"))) == 0
    printed = capsys.readouterr().out
    assert "run: isaac-lab, rsl-rl, PPO" in printed
    assert "20 ms (50 Hz)" in printed
    assert "horizon 99.5 steps, 1.99 s" in printed
    assert "note: env.rewards.termination_penalty.weight -200 is paid per event" in printed
    assert printed.splitlines()[-1].startswith("Findings: 0 contradictions, ")


@pytest.mark.parametrize(("comment", "status"), [("50 Hz", 1), ("60 Hz", 0)])
def test_strict_fails_above_a_note(
    comment: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cfg.py").write_text(SOURCE.replace("50 Hz", comment))
    assert explain(str(tmp_path)) == 0
    assert explain(str(tmp_path), "--strict") == status
    assert ("contradiction: decimation 2 has the comment '50 Hz'" in capsys.readouterr().out) == bool(status)


def test_many_configurations_are_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cfg.py").write_text(SOURCE)
    assert explain(str(tmp_path)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 configurations"
    assert [line.split()[:3] for line in lines[4:6]] == [["EnvCfg", "16.67", "ms"], ["SlowCfg", "200", "ms"]]
    assert "Read from Python source, not run; what is computed, and tasks named Play, are not seen." in lines


def test_a_file_of_a_run_that_is_not_recognised_is_a_finding_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run")
    agent = run / "params" / "agent.yaml"
    (run / "params" / "deploy.yaml").write_text("joints: 12\n")
    assert explain(str(run), "--strict") == 0
    assert "Not read: 1 file (params/deploy.yaml: of no library that is known here)." in capsys.readouterr().out
    agent.write_text(agent.read_text().replace("algorithm:", "algoritm:"))
    assert explain(str(tmp_path), "--strict", "--json") == 1
    said = json.loads(capsys.readouterr().out)
    assert {*said["not_read"]} == {"run/params/agent.yaml", "run/params/deploy.yaml"}
    findings = said["configurations"][0]["findings"]
    assert [each["place"] for each in findings if each["kind"] == "not-recognised"] == ["params/agent.yaml"]


def test_what_may_mean_time_in_a_deployment_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sim2sim.yaml"
    settings = {"simulation_dt": 0.005, "control_decimation": 4, "lowpass_alpha": 0.9, "obs_history_len": 6}
    file.write_text(json.dumps(settings | {"cutoff_freq": 5.0, "ramp_steps": 100, "action_scale": 0.25}))
    assert explain(str(file)) == 0
    lines = [line.split(maxsplit=3) for line in capsys.readouterr().out.splitlines()]
    assert [" ".join(line[3].split()) for line in lines if line[:3] == ["may", "mean", "time"]] == [
        "lowpass_alpha 0.9 check",
        "obs_history_len 6 0.12 s if it counts cycles",
        "cutoff_freq 5 a rate: stays",
        "ramp_steps 100 2 s if it counts cycles",
    ]
    assert main(["transfer", str(file), "--to", "10ms"]) == 2
    assert (
        "sim2sim.yaml is of deployment, which 'cycletime explain' reads and nothing carries." in capsys.readouterr().err
    )


def test_a_deployment_and_another_run_in_a_run_s_folder_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run")
    (run / "params" / "deploy.yaml").write_text("step_dt: 0.01\n")
    assert explain(str(run), "--json") == 0
    (_, second) = json.loads(capsys.readouterr().out)["configurations"]
    assert [each["kind"] for each in second["findings"]] == ["deployed-at-another-rate"]
    assert explain(str(run)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith(("run:", "params/deploy.yaml:"))] == [
        "run: isaac-lab, rsl-rl, PPO",
        "params/deploy.yaml: deployment",
    ]
    write_run(run / "old")
    assert explain(str(run)) == 0
    assert [line.split()[:3] for line in capsys.readouterr().out.splitlines()[4:7]] == [
        ["run", "20", "ms"],
        ["params/deploy.yaml", "10", "ms"],
        ["old", "20", "ms"],
    ]


def test_an_episode_in_seconds_stays_in_seconds_where_no_cycle_time_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "other"):  # as tasks whose sim.dt stands in a base class out of reach
        (tmp_path / f"{name}.py").write_text(
            f"class {name}:\n    episode_length_s = 15.0\n    decimation = 8\n    class sim:\n        substeps = 1\n"
        )
    assert explain(str(tmp_path)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[4:6]] == [["one", "?", "15", "s"], ["other", "?", "15", "s"]]


def test_an_environment_and_its_trainer_in_two_files_are_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "logs" / "go1"
    run.mkdir(parents=True)
    (run / "env.json").write_text(json.dumps(PLAYGROUND_ENV))
    (run / "ppo.json").write_text(json.dumps(BRAX))
    for folder, name in ((run, "go1"), (tmp_path, "logs/go1")):
        assert explain(str(folder)) == 0
        assert capsys.readouterr().out.startswith(f"{name}: mujoco-playground, PPO\n")


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(str(write_run(tmp_path / "run")), "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["configurations"]
    assert (found["cycle_time_s"], found["stated_as"]) == (0.02, "sim.dt 0.005 x decimation 4")
    assert found["seconds"]["rollout"] == pytest.approx(0.48)
    assert found["seconds"]["discount"] == pytest.approx(1.98998, abs=1e-4)
    assert {"event-times-dt", "squared-difference"} <= {each["kind"] for each in found["findings"]}
    assert all(each["place"] for each in found["findings"])


def test_a_zoo_file_needs_the_cycle_time_for_seconds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ppo.yml").write_text(ZOO)
    assert explain(str(tmp_path / "ppo.yml")) == 0
    assert "No cycle time is said: give --dt TIME" in capsys.readouterr().out
    assert explain(str(tmp_path / "ppo.yml"), "--dt", "16ms") == 0
    assert "16 ms" in capsys.readouterr().out
    (tmp_path / "mine.yml").write_text(ZOO)  # a name that is no algorithm's
    assert explain(str(tmp_path / "mine.yml"), "--env", "Hopper-v5", "--algorithm", "ppo") == 0
    assert explain(str(tmp_path / "mine.yml")) == 0
    assert "MINE" not in capsys.readouterr().out


def test_a_cycle_time_that_the_files_contradict_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(write_run(tmp_path / "run"))
    assert explain(folder, "--dt", "20ms") == 0
    assert explain(folder, "--dt", "10ms") == 2
    said = "sim.dt 0.005 x decimation 4 is a cycle time of 20ms, and --dt is 10ms: leave that out."
    assert capsys.readouterr().err == f"cycletime: {said}\n"


def write_repository(folder: Path) -> Path:
    """A configuration among files that cannot be read, are refused, or are of other programs."""
    folder.mkdir()
    (folder / "cfg.py").write_text(SOURCE)
    (folder / "package.json").write_text('{"name": "robot"}')
    (folder / "bad.yaml").write_text("a: [1\n")
    (folder / "old.py").write_text("print 'Python 2'\n")
    (folder / "twice.json").write_text('{"NUM_STEPS": 1, "NUM_STEPS": 2}')
    (folder / "latin.yaml").write_bytes(b"name: caf\xe9\n")
    (folder / "run" / "params").mkdir(parents=True)
    (folder / "run" / "params" / "env.yaml").write_text("[1, 2]\n")
    return folder


NOT_READ = {
    "package.json": "of no library that is known here",
    "bad.yaml": "Line 2 is not valid YAML",
    "old.py": "not valid Python: Missing parentheses",
    "twice.json": "'NUM_STEPS' is there twice",
    "latin.yaml": "is not ",
    "run": "The file is [1, 2]",
}


def test_files_of_a_folder_that_are_passed_by_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_repository(tmp_path / "repository")
    assert explain(str(folder), "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in said["configurations"]] == ["EnvCfg", "SlowCfg"]
    assert said["not_read"].keys() == NOT_READ.keys()
    assert all(reason in said["not_read"][name] for name, reason in NOT_READ.items())
    assert explain(str(folder)) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("Not read: 6 files (")
    assert all(f"{name}: " in last for name in NOT_READ.keys() - {"package.json"}), "what may be a mistake is named"
    assert last.endswith("; 1 more). --json has all of them.")
    assert str(tmp_path) not in last


def test_a_folder_without_a_configuration_names_what_was_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.yaml").write_text("a: [1\n")
    assert explain(str(tmp_path)) == 2
    assert "Not read: 1 file (bad.yaml: Line 2 is not valid YAML" in capsys.readouterr().err


def test_a_refused_file_of_an_agent_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    points = '{"env_cfg_entry_point": EnvCfg, "skrl_cfg_entry_point": f"{__name__}:skrl.yaml"}'
    (tmp_path / "__init__.py").write_text(f'{SOURCE}gym.register(id="Task", kwargs={points})\n')
    (tmp_path / "skrl.yaml").write_text("agent: [1\n")
    assert explain(str(tmp_path)) == 0
    assert "Not read: 1 file (skrl.yaml: Line 2 is not valid YAML" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere"], "There is no file or folder nowhere."),
        (["quick.toml"], "quick.toml is TOML, as no library's configuration is: 'cycletime study plan'"),
        (["empty"], "empty has no configuration that is known here: "),
        (["bad.yaml"], "bad.yaml: Line 2 is not valid YAML"),
        (["list.yaml"], "list.yaml: The file is [1, 2]; expected a mapping"),
        (["cfg.py", "--dt", "soon"], "'soon'"),
    ],
)
def test_what_is_refused(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("bad.yaml").write_text("a: [1\n")
    Path("list.yaml").write_text("[1, 2]\n")
    Path("quick.toml").write_text('name = "quick"\n')
    Path("cfg.py").write_text(SOURCE)
    assert explain(*words) == 2
    assert sentence in capsys.readouterr().err
