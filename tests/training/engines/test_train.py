"""`cycletime.train`, the way in from Python."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cycletime.errors import InputError, RunError
from cycletime.training import trainer
from cycletime.training.run_folder import RunFolder
from cycletime.training.trainer import train

SMALL: dict[str, Any] = {
    "env": "toys/Walk-v0",
    "env_dt": "50ms",
    "algorithm": "actor-critic",
    "dt": "50ms",
    "env_steps": 300,
    "others": {"hidden": (8,)},
    "seeds": 2,
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, ...]:
    """Runs that nobody disturbed."""
    return train(**SMALL, out=tmp_path_factory.mktemp("whole"), progress=False)


def test_it_trains_a_run_for_each_seed_and_gives_their_folders(whole: tuple[RunFolder, ...]) -> None:
    assert [folder.spec.seed for folder in whole] == [0, 1]
    for folder in whole:
        assert folder.result()["env_steps"] == 300
        assert folder.finished().curve.env_steps.tolist() == list(range(20, 301, 20))
        assert RunFolder.open(folder.path).spec == folder.spec


def test_what_was_trained_is_not_trained_again(
    whole: tuple[RunFolder, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(trainer, "make_batch", None)
    before = [folder.result() for folder in whole]
    again = train(**SMALL, out=str(whole[0].path.parent))
    assert again == whole
    assert [folder.result() for folder in again] == before
    assert capsys.readouterr().out == ""


def test_what_was_stopped_goes_on_where_it_was(
    tmp_path: Path, whole: tuple[RunFolder, ...], left_by: Callable[[RunFolder], dict[str, Any]]
) -> None:
    answers = iter([False] * 4 + [True] * 9)  # before the first run, and after each of its episodes
    first = train(**SMALL, out=tmp_path, stop=lambda: next(answers), progress=False)
    assert [(folder.has_begun, folder.is_finished) for folder in first] == [(True, False), (False, False)]
    again = train(**SMALL, out=tmp_path, progress=False)
    assert [folder.result()["resumed"] for folder in again] == ["resumed, identical", "never"]
    assert [left_by(folder) for folder in again] == [left_by(folder) for folder in whole]


def test_progress_is_shown_on_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(**{**SMALL, "seeds": 1}, out=tmp_path)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "toys/Walk-v0 actor-critic 50ms seed 0: " in shown.err


def test_what_makes_no_sense_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    for wrong, reason in (
        ({"dt": "70ms"}, "not a whole multiple"),
        ({"device": "gpu"}, "JAX finds none here"),
        ({"engine": "compiled"}, "cannot run"),
        ({"algorithm": "dqn"}, "'dqn' is not an algorithm"),
    ):
        with pytest.raises(InputError, match=reason):
            train(**{**SMALL, **wrong}, out=tmp_path / "runs", progress=False)
    assert not (tmp_path / "runs").exists()


def test_an_error_of_a_run_is_raised(tmp_path: Path) -> None:
    (folder,) = train(**{**SMALL, "seeds": 1}, out=tmp_path, progress=False, stop=lambda: True)
    with folder.locked(), pytest.raises(RunError, match="is being trained by process"):
        train(**SMALL, out=tmp_path, progress=False)


LOADED = """
import sys
from cycletime.cli import main
words = "--task reacher --algorithm actor-critic --set hidden=4 --dt 40ms --env-steps 2000 --out"
assert main(["train", *words.split(), sys.argv[1]]) == 0
print(*(name for name in sys.modules if name.partition(".")[0] == "cycletime"), file=sys.stderr)
"""


def test_a_training_on_a_cpu_loads_few_modules_and_none_of_cuda_or_robots(tmp_path: Path) -> None:
    words = [sys.executable, "-c", LOADED, str(tmp_path)]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    loaded = ran.stderr.splitlines()[-1].split()
    assert "cycletime.training.compiled_engine" in loaded
    assert [name for name in loaded if name.startswith(("cycletime.cuda", "cycletime.robots"))] == []
    assert len(loaded) <= 90
