"""Runs that were made elsewhere: verified, and taken whole or not at all."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cycletime.cuda.kernels import PPO, kernel_digest
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.studies.leases import hold_lease
from cycletime.studies.run_import import import_runs, open_or_create_study
from cycletime.studies.study_folder import StudyFolder, move_aside
from cycletime.training.finished_run import FinishedRun
from cycletime.training.run_folder import RunFolder
from cycletime.training.run_recorder import SaveOptions
from cycletime.training.run_store import write_bundles
from tests.studies.small import bits_of, finish, finished, names_of, small_study, specs_of
from tests.training.runs.finished import recomputed


@pytest.fixture
def elsewhere(tmp_path: Path) -> StudyFolder:
    """A study of some of the same runs and others, all done, each in a file of its own."""
    folder = StudyFolder.create(tmp_path / "elsewhere", small_study(name="other", seeds=[1, 2]))
    finish(folder)
    return folder


def files_of(folder: StudyFolder) -> list[Path]:
    return sorted((folder.path / "finished").iterdir())


def file_of(folder: StudyFolder, name: str) -> Path:
    return folder.store.places[name][0].path


def as_folder(path: Path, run: FinishedRun) -> RunFolder:
    """A run as `cycletime train` leaves it."""
    folder = RunFolder.create(path, run.spec)
    folder.write_finished(run, Duration("2ms"))
    return folder


def test_planned_runs_are_taken_once_and_whole(elsewhere: StudyFolder, make_folder: Callable[..., StudyFolder]) -> None:
    folder = make_folder(seeds=2)  # 0 and 1
    taken = import_runs(folder, [elsewhere.path])
    assert (taken.imported, taken.known, taken.not_planned, taken.damaged) == (3, 0, 3, {})
    states = folder.states(names_of(folder))
    assert {spec.seed: states[spec.name] for spec in specs_of(folder)} == {0: "pending", 1: "done"}
    theirs = bits_of(elsewhere)
    assert bits_of(folder) == {name: theirs[name] for name in bits_of(folder)}
    again = import_runs(folder, [elsewhere.path])
    assert (again.imported, again.known, again.not_planned) == (0, 3, 3)


def test_of_a_file_with_some_planned_runs_these_are_taken(
    elsewhere: StudyFolder, make_folder: Callable[..., StudyFolder]
) -> None:
    elsewhere.store.tidy()
    assert len(files_of(elsewhere)) == 1
    folder = make_folder(seeds=2)
    taken = import_runs(folder, files_of(elsewhere))
    assert (taken.imported, taken.not_planned) == (3, 3)
    assert len(bits_of(folder)) == 3


def test_single_files_and_folders_of_runs_are_taken(
    elsewhere: StudyFolder, make_folder: Callable[..., StudyFolder], tmp_path: Path
) -> None:
    folder = make_folder(seeds=3)
    one, two, three, *_ = [finished(spec) for spec in specs_of(folder) if spec.seed == 0]
    alone = as_folder(tmp_path / "runs", one)
    as_folder(tmp_path / "more", two)
    as_folder(tmp_path / "more", three)
    a_file = file_of(elsewhere, names_of(elsewhere)[0])
    assert import_runs(folder, [alone.path, tmp_path / "more", a_file]).imported == 4
    assert import_runs(folder, [alone.path, tmp_path / "more", a_file]).known == 4
    assert bits_of(folder)[one.name]["policy"]


def test_damaged_files_are_left_where_they_are_and_give_no_run(
    elsewhere: StudyFolder, make_folder: Callable[..., StudyFolder], tmp_path: Path
) -> None:
    folder = make_folder(seeds=2)
    bad = next(spec.name for spec in specs_of(elsewhere) if spec.seed == 1)
    path = file_of(elsewhere, bad)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    run = as_folder(tmp_path / "runs", finished(specs_of(folder)[0]))
    (run.path / "metrics.jsonl").write_text("")
    none = tmp_path / "none.npz"
    none.write_bytes(b"PK and no more")
    taken = import_runs(folder, [elsewhere.path, tmp_path / "runs", none])
    assert (taken.imported, sorted(taken.damaged)) == (2, sorted([path, run.path, none]))
    assert "its hash is another" in taken.damaged[path]
    assert "metrics.jsonl" in taken.damaged[run.path]
    assert folder.state_of(bad) == "pending"


def test_numbers_that_do_not_fit_together_are_refused(make_folder: Callable[..., StudyFolder], tmp_path: Path) -> None:
    folder = make_folder()
    run = finished(specs_of(folder)[0])
    (path,) = write_bundles(tmp_path, [replace(run, result={**run.result, "average_return": 1e9})])
    taken = import_runs(folder, [path])
    assert (taken.imported, list(taken.damaged)) == (0, [path])


@pytest.mark.parametrize(
    ("kernel", "refused"), [(None, False), (kernel_digest(PPO)[:12], False), ("abcdef012345", True)]
)
def test_runs_of_another_kernel_are_refused(
    make_folder: Callable[..., StudyFolder], tmp_path: Path, kernel: str | None, refused: bool
) -> None:
    folder = make_folder()
    machine: dict[str, Any] = {"device": "A card", **({} if kernel is None else {"kernel": kernel})}
    (path,) = write_bundles(tmp_path, [finished(specs_of(folder)[0], machine=machine)])
    taken = import_runs(folder, [path])
    assert (taken.imported, len(taken.damaged)) == (int(not refused), int(refused))
    assert all("another kernel" in said and "abcdef012345" in said for said in taken.damaged.values())


def test_what_another_study_has_put_aside_or_not_finished_is_not_looked_at(
    elsewhere: StudyFolder, make_folder: Callable[..., StudyFolder]
) -> None:
    folder = make_folder(seeds=2)
    bad = next(spec for spec in specs_of(elsewhere) if spec.seed == 1)
    move_aside(elsewhere, file_of(elsewhere, bad.name))
    checkpoint = elsewhere.runs / bad.name / "checkpoints" / "000001"
    checkpoint.mkdir(parents=True)
    (checkpoint / "arrays.npz").write_bytes(b"PK")
    taken = import_runs(folder, [elsewhere.path])
    assert (taken.imported, taken.damaged) == (2, {})


def test_a_run_that_is_being_trained_is_left_to_its_worker_and_a_stopped_one_is_done(
    elsewhere: StudyFolder, make_folder: Callable[..., StudyFolder]
) -> None:
    folder = make_folder(seeds=2)
    held, stopped, _ = (spec.name for spec in specs_of(folder) if spec.seed == 1)
    (folder.runs / stopped / "checkpoints" / "000001").mkdir(parents=True)
    with hold_lease(folder.leases, held, "worker"):
        taken = import_runs(folder, [elsewhere.path])
    assert (taken.imported, taken.busy) == (2, 1)
    assert (folder.state_of(stopped), folder.state_of(held)) == ("done", "pending")
    assert import_runs(folder, [elsewhere.path]).imported == 1


def test_what_holds_no_run_is_refused(make_folder: Callable[..., StudyFolder], tmp_path: Path) -> None:
    folder = make_folder()
    with pytest.raises(InputError, match="nowhere is not there"):
        import_runs(folder, [tmp_path / "nowhere"])
    with pytest.raises(InputError, match=f"There is no finished run in {folder.path}"):
        import_runs(folder, [folder.path])


def test_a_new_folder_is_made_of_the_study_that_a_source_is(elsewhere: StudyFolder, tmp_path: Path) -> None:
    made = open_or_create_study(tmp_path / "new", [tmp_path, elsewhere.path])
    assert made.study == elsewhere.study
    assert import_runs(made, [elsewhere.path]).imported == 6
    assert open_or_create_study(tmp_path / "new", [tmp_path]).study == made.study
    with pytest.raises(InputError, match="There is no folder"):
        open_or_create_study(tmp_path / "other", [elsewhere.runs])


def test_runs_in_bins_without_policies_are_taken_into_a_study_that_keeps_all(
    make_folder: Callable[..., StudyFolder], tmp_path: Path
) -> None:
    folder = make_folder()
    run = finished(specs_of(folder)[0])
    little = recomputed(run, curve=run.bins, policy=None)
    (path,) = write_bundles(tmp_path, [little])
    assert import_runs(folder, [path]).imported == 1
    assert folder.keep == SaveOptions()
    finish(folder, specs_of(folder)[1:])
    folder.store.tidy()
    assert bits_of(folder)[run.name]["curve"]["sums"] == run.bins.sums.tobytes()
    assert folder.store.result(run.name)["average_return"] == run.result["average_return"]
