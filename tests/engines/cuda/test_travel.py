"""A study's whole trip: packed, trained where there is little but a GPU, killed there, brought back."""

import ctypes
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cycletime.cli import main
from cycletime.engines import choosing
from cycletime.engines.cuda import travel
from cycletime.engines.cuda.compact import read_kept
from cycletime.engines.cuda.device import Done
from cycletime.engines.cuda.group import CudaGroup
from cycletime.engines.cuda.travel import Travel, Wanted
from cycletime.engines.record import Trainee
from cycletime.engines.training import train_together
from cycletime.errors import RunError
from cycletime.reports.curves import panel_curves
from cycletime.reports.scores import load_scores
from cycletime.runs.curve import read_any_curve, read_curve
from cycletime.runs.folder import RunFolder
from cycletime.studies.compact_runs import study_folder_for
from cycletime.studies.folder import StudyFolder
from cycletime.studies.packing import pack_study
from cycletime.studies.plan import Plan
from cycletime.studies.study_file import study_from
from cycletime.studies.transfer import take_runs
from cycletime.studies.verify import damage_of
from tests.engines.cuda.emulated import Emulated

ROOT = Path(__file__).parents[3]
MISSING = ("pyarrow", "tyro", "rich", "gymnasium", "optax", "safetensors", "scipy", "matplotlib", "yaml", "cupy")
STUDY = study_from(
    {
        "name": "small",
        "tasks": ["reacher", "double-pendulum"],
        "algorithm": "ppo",
        "dts": ["32ms", "64ms"],
        "rules": ["baseline"],
        "seeds": [3],
        "env_steps": 1300,
        "device": "gpu",
        "engine": "cuda",
        "tuned": {"dt": "32ms", "batch": 10, "minibatch": 10},
        "set": {"epochs": 1},
    }
)
Go = Callable[..., int]


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("packed") / "pack.zip"
    assert pack_study(STUDY, file).runs == 4
    return file


@pytest.fixture(scope="module")
def here(library: ctypes.CDLL, tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    """The same study, trained without any trip."""
    folder = StudyFolder.create(tmp_path_factory.mktemp("here"), STUDY)
    plan = Plan.of(STUDY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "CudaGroup", partial(CudaGroup, device=Emulated(library)))
        trainees = [Trainee(folder.run_folder(plan.spec(planned))) for planned in plan.runs]
        assert train_together(trainees) == ["finished"] * 4
    return folder


@pytest.fixture
def go(pack: Path, device: Emulated, tmp_path: Path) -> Go:
    """Train the packed runs, a learning at a time."""
    with zipfile.ZipFile(pack) as file:
        told = json.loads(file.read("pack.json"))

    def going(*, stop: Callable[[], bool] = lambda: False, checkpoint_s: float = 0.0, **wanted: bool) -> int:
        made = Travel(told, tmp_path / "out", Wanted(**wanted), device, slices_s=(1e6,), most_periods=1)
        return made.run(stop, checkpoint_s)

    return going


def test_runs_that_come_back_whole_are_the_very_files_of_runs_made_here(
    go: Go, device: Emulated, here: StudyFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = device.finish

    def finish_or_die() -> Done:
        if device.launches == 2:
            raise KeyboardInterrupt
        return finish()

    monkeypatch.setattr(device, "finish", finish_or_die)
    with pytest.raises(KeyboardInterrupt):
        go(policies=True, episodes=True)
    monkeypatch.setattr(device, "finish", finish)
    device.given = None
    assert (tmp_path / "out" / "going-on.npz").exists()
    assert go(policies=True, episodes=True) == 0
    assert not (tmp_path / "out" / "going-on.npz").exists()
    folder = study_folder_for(tmp_path / "study", [tmp_path / "out"])
    taken = take_runs(folder, [tmp_path / "out"])
    assert (taken.taken, taken.damaged, taken.not_planned) == (4, {}, 0)
    for theirs in _runs(here):
        ours = folder.runs / theirs.path.name
        assert damage_of(ours) is None
        for name in ("spec.json", "curve.parquet", "metrics.jsonl", "policy.safetensors"):
            assert (ours / name).read_bytes() == (theirs.path / name).read_bytes(), name
        result, before = (RunFolder.open(path).result() for path in (ours, theirs.path))
        same = ("identity", "where", "agent_steps", "episodes", "average_return", "mean_over_episodes", "files")
        assert {name: result[name] for name in same} == {name: before[name] for name in same}
        assert result["machine"]["device"] == "an emulated card"
        assert result["resumed"] == "resumed, identical"
    assert take_runs(folder, [tmp_path / "out"]).known == 4


def test_runs_that_come_back_in_bins_have_the_same_performance(go: Go, here: StudyFolder, tmp_path: Path) -> None:
    answers = iter([False, False, *[True] * 9])
    assert go(stop=lambda: next(answers)) == 4
    assert go() == 0
    assert main(["study", "import", str(tmp_path / "study"), str(tmp_path / "out")]) == 0
    folder = StudyFolder.open(tmp_path / "study")
    assert folder.study == STUDY
    for theirs in _runs(here):
        ours = RunFolder.open(folder.runs / theirs.path.name)
        assert damage_of(ours.path) is None
        result, before = ours.result(), theirs.result()
        for name in ("average_return", "last_tenth_return", "episodes", "agent_steps"):
            assert result[name] == before[name], name
        assert result["mean_over_episodes"] == pytest.approx(before["mean_over_episodes"], rel=1e-14)
        assert result["curve"] == "100 bins"
        env_dt = ours.spec.world.env_dt
        assert env_dt is not None
        binned = read_any_curve(ours.curve_file, env_dt).binned(1300)
        np.testing.assert_array_equal(binned, read_curve(theirs.curve_file, env_dt).binned(1300))
        assert ours.metrics_file.read_bytes() == theirs.metrics_file.read_bytes()
        assert not ours.policy_file.exists()
    table = tmp_path / "table.csv"
    assert main(["study", "export", str(folder.path), str(table), "--bins", "50"]) == 0
    assert main(["study", "export", str(folder.path), str(table)]) == 2
    drawn = [curve for panel in load_scores(folder).panels for curve in panel_curves(panel).values()]
    assert [curve.n for curve in drawn if curve] == [1] * 4


def test_files_stay_small(go: Go, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(travel, "MOST_BYTES", 1)
    assert go() == 0
    files = sorted((tmp_path / "out").glob("results-*.npz"))
    assert [len(read_kept(file)[1]) for file in files] == [1, 1, 1, 1]
    assert [file.stem[-1] for file in files] == ["1", "2", "3", "4"]


def test_two_processes_do_not_write_to_one_folder(go: Go, tmp_path: Path) -> None:
    asked: list[int] = []

    def stop() -> bool:
        asked.append(0)
        with pytest.raises(RunError, match=r"^Another process writes to .*: wait for it, or give another folder\.$"):
            go()
        return True

    assert go(stop=stop) == 4
    assert asked


def test_a_machine_with_little_installed_runs_the_pack(pack: Path, library: ctypes.CDLL, tmp_path: Path) -> None:
    bare = f"import sys, runpy; sys.modules.update(dict.fromkeys({MISSING})); sys.argv = [{str(pack)!r}, 'out']; "
    ran = _python(bare + f"runpy.run_path({str(pack)!r}, run_name='__main__')", tmp_path)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert ran.stderr.startswith("cycletime: The engine cuda needs CuPy, which is not installed")
    (code,) = (tmp_path / "out").glob("code-*")
    emulated = (
        f"sys.path[:0] = [{str(code)!r}, {str(ROOT)!r}]; import ctypes; from pathlib import Path\n"
        "from cycletime.engines.cuda import checking, travel\n"
        f"assert Path(travel.__file__).is_relative_to({str(code)!r})\n"
        "from tests.engines.cuda.emulated import Emulated\n"
        f"library = ctypes.CDLL({library._name!r})\n"
        "library.emulate.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64]\n"
        "travel.find_device = lambda: Emulated(library)\n"
        f"sys.exit(travel.main(Path({str(code)!r}), ['out', '--policies']))"
    )
    ran = _python(bare + emulated, tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "4 of 4 finished" in ran.stdout
    folder = StudyFolder.create(tmp_path / "study", STUDY)
    assert take_runs(folder, [tmp_path / "out"]).taken == 4


def _python(program: str, folder: Path) -> Any:  # noqa: ANN401
    return subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)


def _runs(folder: StudyFolder) -> list[RunFolder]:
    runs = [RunFolder.open(path) for path in sorted(folder.runs.iterdir())]
    assert len(runs) == 4
    return runs
