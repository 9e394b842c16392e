"""One changed bit, a missing file and numbers that do not fit together are found."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cycletime.cli import main
from cycletime.errors import RunError
from cycletime.studies.leases import hold_lease
from cycletime.studies.study_folder import StudyFolder, damaged_runs, move_aside
from cycletime.studies.worker_pool import run_study
from cycletime.training import run_store
from cycletime.training.checkpoints import Checkpoint, Manifest
from cycletime.training.finished_run import FinishedRun
from cycletime.training.learning_curve import Episodes
from cycletime.training.run_folder import RunFolder
from cycletime.training.run_store import Bundle, write_bundles
from tests.studies.small import finish, finished, names_of, specs_of, state_of
from tests.studies.stand_ins import InTurn
from tests.training.runs.finished import recomputed


@pytest.fixture
def runs(make_folder: Callable[..., StudyFolder]) -> list[FinishedRun]:
    return [finished(spec) for spec in specs_of(make_folder())]


def fault_of_bundle(path: Path) -> str | None:
    """What is said of a file of finished runs."""
    try:
        Bundle(path).runs()
    except RunError as error:
        return str(error)
    return None


def written(folder: Path, *runs: FinishedRun) -> Path:
    (path,) = write_bundles(folder, runs)
    return path


def flip_a_bit(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_files_are_good_as_they_were_written(tmp_path: Path, runs: list[FinishedRun]) -> None:
    assert fault_of_bundle(written(tmp_path, *runs)) is None
    assert fault_of_bundle(written(tmp_path, replace(runs[0], policy=None))) is None
    binned = recomputed(runs[0], curve=runs[0].bins)
    assert fault_of_bundle(written(tmp_path, binned)) is None


@pytest.mark.parametrize("place", [0.0, 0.2, 0.5, 0.8, 1.0])
def test_one_changed_bit_is_found_wherever_it_is(tmp_path: Path, runs: list[FinishedRun], place: float) -> None:
    path = written(tmp_path, *runs)
    flip_a_bit(path, int(place * (path.stat().st_size - 1)))
    assert "its hash is another" in (fault_of_bundle(path) or "")


def test_a_file_that_was_cut_off_or_renamed_is_found(tmp_path: Path, runs: list[FinishedRun]) -> None:
    path = written(tmp_path, *runs)
    renamed = path.rename(tmp_path / f"{'0' * 32}.npz")
    assert "its hash is another" in (fault_of_bundle(renamed) or "")
    renamed.rename(path)
    path.write_bytes(path.read_bytes()[:-30])
    assert fault_of_bundle(path)


@pytest.mark.parametrize(
    ("ends", "says"),
    [
        ([1200, 2400, 3600], "its result says 4 as episodes, and it is 3 by its spec"),
        ([1200, 3600, 2400, 4800], "out of order"),
        ([1200, 2400, 3600, 4801], "out of order"),
        ([1200, 1200, 3600, 4800], "out of order"),
    ],
)
def test_a_curve_that_cannot_be_is_found(tmp_path: Path, runs: list[FinishedRun], ends: list[int], says: str) -> None:
    steps = np.array(ends, np.int64)
    run = replace(runs[0], curve=Episodes(steps, steps // 8, np.zeros(len(ends)), steps))
    fault = fault_of_bundle(written(tmp_path, runs[1], run)) or ""
    assert run.name in fault
    assert says in fault


def test_scores_policies_and_results_of_others_are_found(tmp_path: Path, runs: list[FinishedRun]) -> None:
    run, other = runs[:2]
    for wrong, says in (
        (
            replace(run, result={**run.result, "average_return": 7.0}),
            "7.0 as average_return, and it is 0.0",
        ),
        (replace(run, result=other.result), "its result belongs to another run"),
        (replace(run, policy=other.policy), "its policy is not this run's last"),
    ):
        assert says in (fault_of_bundle(written(tmp_path, wrong)) or "")


def test_a_damaged_file_is_put_aside_under_its_own_name_and_its_runs_run_again(
    make_folder: Callable[..., StudyFolder],
) -> None:
    folder = make_folder()
    spec = specs_of(folder)[0]
    for number in (1, 2):
        finish(folder, [spec])
        (path,) = (folder.path / "finished").iterdir()
        assert state_of(folder, spec.name) == "done"
        aside = move_aside(folder, path)
        assert aside.parent == folder.path / "damaged"
        assert len(list(aside.parent.iterdir())) == number
        assert state_of(folder, spec.name) == "pending"
    assert set(folder.states(names_of(folder)).values()) == {"pending"}


def test_a_file_that_cannot_be_read_hides_no_other_and_its_runs_are_not_done(
    make_folder: Callable[..., StudyFolder],
) -> None:
    folder = make_folder()
    finish(folder)
    first = next(path for path in (folder.path / "finished").iterdir())
    first.write_bytes(b"PK and no more")
    fresh = StudyFolder.open(folder.path)
    assert sorted(fresh.states(names_of(folder)).values()) == [*["done"] * 5, "pending"]
    assert list(fresh.store.damaged) == [first]


@pytest.mark.parametrize("kind", ["kernel", "script"])
@pytest.mark.parametrize(
    ("codes", "said"), [((None, "aaa"), 0), (("aaa", "aaa"), 0), (("aaa", "bbb"), 2), (("bbb", None, "aaa"), 2)]
)
def test_runs_of_another_kernel_or_of_a_trainers_changed_script_are_told_of_and_stay_apart(
    make_folder: Callable[..., StudyFolder],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    codes: tuple[str | None, ...],
    said: int,
) -> None:
    folder = make_folder()
    for number, (spec, code) in enumerate(zip(specs_of(folder), codes, strict=False)):
        machine = {"device": "A card", **({} if code is None else {kind: code})}
        elsewhere = tmp_path / str(number)
        elsewhere.mkdir()
        (path,) = write_bundles(elsewhere, [finished(spec, machine=machine)])
        folder.finished.mkdir(exist_ok=True)
        shutil.copy(path, folder.finished)
    disputes = folder.checked().disputes()
    assert len(disputes) == said
    for code in {*codes} - {None} if said else ():
        assert any(f"has runs of ppo by the {kind} {code}, and others here are by another" in each for each in disputes)
    assert main(["study", "verify", str(folder.path)]) == bool(said)
    assert all(f"  {each}" in capsys.readouterr().out for each in disputes[:1])
    run_study(folder, InTurn(), stop=lambda: True)
    monkeypatch.setattr(run_store, "MANY", 0)
    folder.store.add([finished(specs_of(folder)[-1])])  # puts small files together
    there = [{run.result["machine"].get(kind) for run in Bundle(path).runs()} for path in folder.finished.iterdir()]
    assert sorted(map(str, there)) == sorted(str({code}) for code in {*codes, None})


def test_a_run_whose_checkpoints_are_all_damaged_is_told_of_and_begins_anew_when_it_is_put_aside(
    make_folder: Callable[..., StudyFolder],
) -> None:
    folder = make_folder()
    specs = specs_of(folder)
    for spec in specs[:3]:
        run = RunFolder.create(folder.runs, spec)
        manifest = Manifest(spec.identity, 1, 1, exact=True, sessions=1, wall_s=0.0, world="", machine={})
        run.checkpoints.save(Checkpoint(manifest, {"x": np.arange(3)}))
    for spec in specs[:2]:
        (folder.runs / spec.name / "checkpoints" / "000001" / "manifest.json").write_bytes(b"\xff")
    with hold_lease(folder.leases, specs[1].name, "worker"):
        ((path, wrong),) = damaged_runs(folder)
    assert path == folder.runs / specs[0].name
    assert "No other is left" in wrong
    assert not list(damaged_runs(folder, [specs[2].name]))
    move_aside(folder, path)
    assert folder.states([spec.name for spec in specs[:3]]) == {
        specs[0].name: "pending",
        specs[1].name: "stopped",
        specs[2].name: "stopped",
    }
