"""`cycletime explain`: what it prints, its exit status, and what it refuses."""

import json
from pathlib import Path

import pytest

from cycletime.cli import main
from tests.libraries.configurations import ZOO, write_run

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
    assert "Read from Python source without running it; what is computed is not seen." in lines


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


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere"], "There is no file or folder nowhere."),
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
    Path("cfg.py").write_text(SOURCE)
    assert explain(*words) == 2
    assert sentence in capsys.readouterr().err
