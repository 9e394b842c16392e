"""`cycletime export` as people type it: what it writes, what it prints, and one sentence for wrong input."""

import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from cycletime.agents.numpy_policy import NumpyPolicy
from cycletime.cli import main
from cycletime.policies.export import onnx_actions
from cycletime.studies.study_folder import StudyFolder, open_run, policy_of
from cycletime.training.run_folder import RunFolder
from cycletime.training.worlds import ActionBounds
from tests.policies.conftest import BOUNDS, Trained, observations, spec_of, trained
from tests.studies.small import names_of
from tests.studies.stand_ins import train_run
from tests.training.runs.finished import save_checkpoint


@pytest.fixture
def policy() -> Trained:
    return trained(bounds=BOUNDS["bounded"])


@pytest.fixture
def run(tmp_path: Path, policy: Trained) -> Path:
    folder = RunFolder.create(tmp_path / "runs", spec_of())
    save_checkpoint(folder, policy.saved)
    return folder.path


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main(["export", *map(str, words)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("cycletime: ")
    assert printed.err.count("\n") == 1
    return printed.err


def told_difference(printed: str) -> float:
    (worst,) = re.findall(
        r"^worst difference from the JAX policy: (\S+) \(1,000 observations, limit 1e-05\)$", printed, re.MULTILINE
    )
    return float(worst)


def test_onnx(run: Path, policy: Trained, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(run), "--to", "onnx"]) == 0
    printed = capsys.readouterr().out
    file = run / "policy.onnx"
    assert f"wrote {file} ({file.stat().st_size:,} bytes)" in printed
    assert "reacher at 16ms, trained for 4,000 environment steps" in printed
    assert 0 < told_difference(printed) < 1e-5
    acted = onnx_actions(onnx.load(file), observations())
    np.testing.assert_allclose(acted, policy.act(observations()), atol=1e-5)


def test_numpy(run: Path, policy: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(run), "--to", "numpy", "--out", str(tmp_path / "for" / "robot")]) == 0
    printed = capsys.readouterr().out
    assert f"wrote {tmp_path / 'for' / 'robot' / 'policy.py'}" in printed
    assert 0 < told_difference(printed) < 1e-5
    acted = NumpyPolicy.load(tmp_path / "for" / "robot" / "policy.npz").act(observations())
    np.testing.assert_allclose(acted, policy.act(observations()), atol=1e-5)
    assert sorted(path.name for path in (tmp_path / "for" / "robot").iterdir()) == ["policy.npz", "policy.py"]


@pytest.mark.parametrize(("to", "file"), [("onnx", "policy.onnx"), ("numpy", "numpy/policy.py")])
def test_nothing_is_replaced_without_force(to: str, file: str, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / file).parent.mkdir(exist_ok=True)
    (run / file).write_text("mine")
    assert "exists already: add --force to replace it" in refused(capsys, run, "--to", to)
    assert (run / file).read_text() == "mine"
    assert main(["export", str(run), "--to", to, "--force"]) == 0
    assert (run / file).read_bytes() != b"mine"


def test_wrong_inputs_are_told_in_one_sentence(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert "--to is 'torch': give one of 'onnx', 'numpy'" in refused(capsys, run, "--to", "torch")
    assert "is not a run" in refused(capsys, tmp_path, "--to", "onnx")
    assert "is a folder" in refused(capsys, run, "--to", "onnx", "--out", tmp_path)
    assert "is a file" in refused(capsys, run, "--to", "numpy", "--out", tmp_path / "file")
    shutil.rmtree(run / "checkpoints")
    assert "a run writes its policy with its first checkpoint" in refused(capsys, run, "--to", "onnx")
    assert sorted(path.name for path in run.iterdir()) == ["spec.json"]


def test_a_missing_onnx_is_told(run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert "pip install 'cycletime[onnx]'" in refused(capsys, run, "--to", "onnx")


def test_a_policy_of_a_diverged_run_is_not_exported(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = RunFolder.open(run)
    nan = trained(bounds=ActionBounds.raw(2), scale=float("nan"))
    save_checkpoint(folder, nan.saved)
    assert "its training has diverged" in refused(capsys, run, "--to", "numpy")
    assert not (run / "numpy").exists()


def test_runs_in_the_store_of_a_study(quick: StudyFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = quick.runs / names_of(quick)[1]
    assert "--out is missing" in refused(capsys, path, "--to", "numpy")
    assert main(["export", str(path), "--to", "numpy", "--out", str(tmp_path / "numpy")]) == 0
    printed = capsys.readouterr().out
    assert "reacher at 32ms, trained for 6,400 environment steps" in printed
    assert told_difference(printed) < 1e-5
    exported, own = NumpyPolicy.load(tmp_path / "numpy" / "policy.npz"), policy_of(open_run(path)).in_numpy()
    seen = np.random.default_rng(0).normal(size=(5, own.observation_size)).astype(np.float32)
    np.testing.assert_array_equal(exported.act(seen), own.act(seen))
    assert "'nobody' is not a run of" in refused(
        capsys, quick.runs / "nobody", "--to", "numpy", "--out", tmp_path / "no"
    )
    assert not path.exists()


def test_a_run_of_a_study_that_came_without_its_policy(
    quick: StudyFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = StudyFolder.create(tmp_path / "study", quick.study)
    (run, *_) = quick.store.runs()
    folder.store.add([replace(run, policy=None)])
    said = refused(capsys, folder.runs / run.name, "--to", "onnx", "--out", tmp_path / "policy.onnx")
    assert "came without its policy" in said


def test_a_run_of_a_study_that_is_not_finished(
    quick: StudyFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = StudyFolder.create(tmp_path / "study", quick.study)
    (name, *_) = names_of(folder)
    assert train_run(folder, name, stop=lambda: True) == "stopped"
    assert main(["export", str(folder.runs / name), "--to", "numpy"]) == 0
    assert "reacher at 32ms, trained for " in capsys.readouterr().out
    assert (folder.runs / name / "numpy" / "policy.py").exists()
