"""The store of a study: no run is lost or twice in it, whoever adds, tidies or is killed at the same time."""

from __future__ import annotations

import errno
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cycletime.errors import DiskFullError, RunError
from cycletime.training import atomic_files, run_store
from cycletime.training.bounded_npz import BoundedNpz
from cycletime.training.finished_run import FinishedRun
from cycletime.training.run_store import AboutRuns, Bundle, Store, read_about, write_bundles
from tests.training.runs.finished import all_of, recomputed
from tests.training.runs.stored import files_of, filled, held, runs_of


def test_what_is_added_is_there_for_whoever_looks(tmp_path: Path) -> None:
    other = Store(tmp_path / "finished")
    assert not other.refresh()
    store, expected = filled(tmp_path)
    assert held(tmp_path) == expected
    assert not any(name in other for name in expected), "it looks when it is told to"
    assert other.refresh() == expected.keys()
    for run in runs_of(1):
        for each in (store, other):
            assert run.name in each
            assert all_of(each.run(run.name)) == all_of(run)
            assert each.result(run.name) == run.result
            np.testing.assert_array_equal(each.means(run.name), run.bins.means())


def test_a_run_that_is_in_two_files_counts_once(tmp_path: Path) -> None:
    _, expected = filled(tmp_path)
    write_bundles(tmp_path / "finished", runs_of(3, 0))
    assert held(tmp_path) == expected


def test_who_wants_scores_reads_once_what_a_file_says_of_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path, 2)
    read: list[AboutRuns] = []

    def counted(file: BoundedNpz) -> AboutRuns:
        read.append(read_about(file))
        return read[-1]

    monkeypatch.setattr(run_store, "read_about", counted)
    store = Store(tmp_path / "finished", is_checked=True)
    told = [store.result(name) for name in store.refresh()]
    assert len(read) == len(store.bundles) > 1
    assert told == [each["result"] for about in read for each in about]


def test_what_others_write_at_the_moment_is_not_read(tmp_path: Path) -> None:
    store, expected = filled(tmp_path)
    whole = next(store.folder.glob("*.npz"))
    (store.folder / f".writing-{whole.name}").write_bytes(whole.read_bytes()[:100])
    assert held(tmp_path) == expected


# Damage.


def test_a_damaged_file_is_told_of_and_the_others_are_read(tmp_path: Path) -> None:
    store, expected = filled(tmp_path, 2)
    path = next(path for path in store.folder.iterdir() if Bundle(path).names == [runs_of(1)[0].name])
    content = path.read_bytes()
    path.write_bytes(content[:-10])
    fresh = Store(store.folder)
    assert fresh.refresh() == expected.keys() - {runs_of(1)[0].name}
    assert list(fresh.damaged) == [path]
    assert fresh.damaged[path] == "File is not a zip file"
    fresh.tidy()
    assert path.read_bytes() == content[:-10], "nothing that is damaged is removed"
    path.write_bytes(content)
    assert fresh.refresh() == expected.keys()
    assert not fresh.damaged


def test_one_that_may_not_be_read_is_not_called_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its runs would be trained again, and `verify --repair` would move it away."""
    store, expected = filled(tmp_path, 2)

    def refuse(path: Path, most_bytes: int | None = None) -> Any:  # noqa: ANN401
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(run_store, "open_regular", refuse)
        with pytest.raises(RunError, match=r"npz may not be read by you \(Permission denied\): have its owner"):
            Store(store.folder).refresh()
    assert Store(store.folder).refresh() == expected.keys()


def test_a_file_that_is_not_what_was_written_is_not_put_together_with_others(tmp_path: Path) -> None:
    """Its name says so, which would be forgotten."""
    store, _ = filled(tmp_path)
    path = next(store.folder.glob("*.npz"))
    renamed = path.rename(path.with_name(f"{'0' * 32}.npz"))
    store.tidy()
    assert renamed.exists()
    assert renamed.name in store.bundles, "its runs are not run again before somebody asks for what they came to"
    checked = Store(store.folder, is_checked=True)
    assert checked.refresh() == store.places.keys() - Bundle(renamed).names
    assert checked.damaged == {renamed: "it is not what was written: its hash is another"}


# Files that vanish, since others put them together.


def test_files_that_others_put_together_are_found_again(tmp_path: Path) -> None:
    store, expected = filled(tmp_path)
    Store(store.folder).tidy()
    name = next(iter(expected))
    assert all_of(store.run(name)) == expected[name], "though it was not looked"
    Store(store.folder).add(runs_of(7))
    assert store.refresh() == expected.keys() | {run.name for run in runs_of(7)}


def test_who_reads_all_runs_gets_each_once_though_files_vanish_meanwhile(tmp_path: Path) -> None:
    store, expected = filled(tmp_path)
    reading = store.runs()
    first = next(reading)
    Store(store.folder).tidy()
    read = [first, *reading]
    assert len(read) == len(expected)
    assert {run.name: all_of(run) for run in read} == expected


def test_runs_come_in_the_order_they_are_named_in_and_each_file_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, expected = filled(tmp_path)
    read, runs = list[Path](), Bundle.runs

    def counted(self: Bundle) -> list[FinishedRun]:
        read.append(self.path)
        return runs(self)

    monkeypatch.setattr(Bundle, "runs", counted)
    names = [*reversed(expected), *expected]
    assert list(store.in_order(names, lambda run: run.name)) == names
    assert sorted(read) == sorted(store.folder.iterdir())


def test_runs_that_are_named_are_found_though_files_vanish_meanwhile(tmp_path: Path) -> None:
    store, expected = filled(tmp_path)
    reading = store.in_order(list(expected), all_of)
    first = next(reading)
    Store(store.folder).tidy()
    assert [first, *reading] == list(expected.values())


def test_no_run_is_missing_where_files_are_put_together_while_it_is_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, expected = filled(tmp_path)
    looking, glob, listed = Store(store.folder), Path.glob, list[Path]()

    def glob_and_tidy(self: Path, pattern: str) -> Any:  # noqa: ANN401
        found = list(glob(self, pattern))
        if self == store.folder and not listed:
            listed.extend(found)
            monkeypatch.setattr(Path, "glob", glob)
            Store(store.folder).tidy()
        return found

    monkeypatch.setattr(Path, "glob", glob_and_tidy)
    assert looking.refresh() == expected.keys()
    assert len(listed) == 12


def test_a_name_without_a_file_is_no_reason_to_look_for_ever(tmp_path: Path) -> None:
    store, expected = filled(tmp_path)
    (store.folder / "nothing.npz").symlink_to(tmp_path / "nowhere")
    assert Store(store.folder).refresh() == expected.keys()


# A disk that refuses.


def test_on_a_full_disk_no_run_counts_as_finished_and_what_is_there_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, expected = filled(tmp_path)
    before = files_of(store)

    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(atomic_files, "_flush", full)
        with pytest.raises(DiskFullError, match="npz cannot be written: the disk is full; make room and resume"):
            store.add(runs_of(9))
        with pytest.raises(DiskFullError, match="the disk is full"):
            store.tidy()
    assert files_of(store) == before
    assert store.refresh() == expected.keys()
    assert held(tmp_path) == expected
    store.add(runs_of(9))
    assert held(tmp_path).keys() == expected.keys() | {run.name for run in runs_of(9)}


def test_what_was_written_before_the_disk_was_full_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, written, flush = Store(tmp_path / "finished"), list[Path](), atomic_files._flush

    def soon_full(path: Path) -> None:
        written.append(path)
        if len(written) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        flush(path)

    with monkeypatch.context() as patch:
        patch.setattr(atomic_files, "_flush", soon_full)
        with pytest.raises(DiskFullError):
            store.add(runs_of(0))
    assert store.refresh() == {runs_of(0)[0].name}
    store.add(runs_of(0))
    assert held(tmp_path) == {run.name: all_of(run) for run in runs_of(0)}


def test_a_folder_that_cannot_be_made_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="is a file; give a folder"):
        Store(tmp_path / "file" / "finished").add(runs_of(0))


LITTLE = """
import sys
missing = ("pyarrow", "safetensors", "rich", "tyro", "gymnasium", "scipy", "matplotlib", "yaml", "optax")
sys.modules.update(dict.fromkeys(missing))
from pathlib import Path
import cycletime.studies.worker
from cycletime.training.run_recorder import TrainingJob
from cycletime.training.trainer import ResultSink, train_batch
from cycletime.training.run_folder import RunFolder
from cycletime.training.finished_run import find_fault
from cycletime.training.run_store import AboutRuns, read_about
from cycletime.training.bounded_npz import BoundedNpz
from cycletime.training.run_store import Store
from tests.training.engines.scripted import Scripted, make_spec
spec, store = make_spec(), Store(Path(sys.argv[1]) / "finished")
class Sink(ResultSink):
    def finish(self, completed):
        store.add([run for _, run in completed])
        return [None]
trainee = TrainingJob(RunFolder(Path(sys.argv[1]) / "runs" / spec.name, spec))
assert train_batch([trainee], Sink(), stop=lambda: True, batch=Scripted([spec])) == ["stopped"]
assert trainee.folder.policy().env_steps == 100
assert train_batch([trainee], Sink(), batch=Scripted([spec])) == ["finished"]
store.refresh()
store.tidy()
(run,) = store.runs()
assert (find_fault(run), run.result["resumed"], run.policy.env_steps) == (None, "resumed, identical", 800)
"""


def test_machines_with_little_installed_train_keep_and_resume(tmp_path: Path) -> None:
    """With NumPy and JAX alone: the checkpoints, the store and the worker."""
    words = [sys.executable, "-c", LITTLE, str(tmp_path)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3])
    assert ran.returncode == 0, ran.stderr
    assert list((tmp_path / "finished").glob("*.npz"))


# Scores.


def test_scores_are_of_files_that_are_what_was_written_and_the_others_are_not_there(tmp_path: Path) -> None:
    store, expected = filled(tmp_path, 2)
    path = next(path for path in store.folder.iterdir() if Bundle(path).names == [runs_of(1)[0].name])
    lost, content = Bundle(path).names[0], path.read_bytes()
    path.rename(store.folder / f"{'0' * 32}.npz")
    names, checked = Store(store.folder), Store(store.folder, is_checked=True)
    assert names.refresh() == expected.keys(), "who counts runs reads their names alone"
    for read in (names.result, names.means, names.run):
        with pytest.raises(RunError, match="its hash is another"):
            read(lost)
    assert checked.refresh() == expected.keys() - {lost}
    assert list(checked.damaged.values()) == ["it is not what was written: its hash is another"]
    path.write_bytes(content)
    assert checked.refresh() == expected.keys()


def test_a_run_that_is_in_two_files_with_other_scores_is_told_of_and_not_put_together(tmp_path: Path) -> None:
    store, expected = filled(tmp_path)
    run = runs_of(0)[0]
    curve = replace(run.curve, returns=run.curve.returns + 1)  # type: ignore[union-attr, arg-type]
    write_bundles(store.folder, [recomputed(run, curve=curve)])
    fresh = Store(store.folder)
    assert fresh.refresh() == expected.keys()
    assert fresh.disputed.keys() == {run.name}
    first, other = fresh.disputed[run.name]
    fresh.tidy()
    assert first.exists()
    assert other.exists()
    other.unlink()
    fresh.refresh()
    assert not fresh.disputed
