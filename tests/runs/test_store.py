"""The store of a study: no run is lost or twice in it, whoever adds, tidies or is killed at the same time."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cycletime.errors import DiskFullError, RunError
from cycletime.runs import bundle as bundle_module
from cycletime.runs import files
from cycletime.runs import store as store_module
from cycletime.runs.bundle import Bundle, write_bundles
from cycletime.runs.result import FinishedRun
from cycletime.runs.store import Store
from tests.runs.finished import all_of, make_run, recomputed

KINDS: tuple[dict[str, Any], ...] = ({}, {"kind": "sac"}, {"episodes": False, "policy": False})


def runs_of(*seeds: int) -> list[FinishedRun]:
    """Runs of three kinds for each seed."""
    return [make_run(**kind, seed=3 * seed + place) for seed in seeds for place, kind in enumerate(KINDS)]


def filled(folder: Path, seeds: int = 4) -> tuple[Store, dict[str, Any]]:
    """A store that runs were added to one seed at a time, and all that there is of them by name."""
    store = Store(folder / "finished")
    runs = runs_of(*range(seeds))
    for seed in range(seeds):
        store.add(runs[3 * seed : 3 * seed + 3])
    return store, {run.name: all_of(run) for run in runs}


def held(folder: Path) -> dict[str, Any]:
    """What somebody finds who looks for the first time."""
    store = Store(folder / "finished")
    names = store.refresh()
    found = list(store.runs())
    assert len(found) == len(names), "each once"
    assert not store.damaged
    return {run.name: all_of(run) for run in found}


def files_of(store: Store) -> set[str]:
    return {path.name for path in store.folder.iterdir()}


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


def test_a_file_from_elsewhere_is_taken_as_it_is(tmp_path: Path) -> None:
    elsewhere, expected = filled(tmp_path / "elsewhere", 1)
    store = Store(tmp_path / "finished")
    for bundle in elsewhere.bundles.values():
        store.take(bundle)
    assert store.places.keys() == expected.keys()
    assert held(tmp_path) == expected
    assert files_of(store) == files_of(elsewhere)


def test_a_run_that_is_in_two_files_counts_once(tmp_path: Path) -> None:
    _, expected = filled(tmp_path)
    write_bundles(tmp_path / "finished", runs_of(3, 0))
    assert held(tmp_path) == expected


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


# Tidying.


def test_small_files_are_put_together_one_for_each_kind(tmp_path: Path) -> None:
    store, expected = filled(tmp_path)
    assert len(files_of(store)) == 12
    store.tidy()
    assert held(tmp_path) == expected
    assert len(files_of(store)) == len(KINDS)
    assert store.refresh() == expected.keys()
    assert all(Bundle(store.folder / name).content() for name in files_of(store))


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files have room for four runs of the first kind, which compress to less than a fourth."""
    flat = make_run(episodes=False, policy=False, lines=2000)
    size = bundle_module._bytes_of(flat)
    monkeypatch.setattr(bundle_module, "MOST_BYTES", 4 * size)
    monkeypatch.setattr(store_module, "MOST_BYTES", 4 * size)
    monkeypatch.setattr(store_module, "SMALL_BYTES", size * 2)


@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize("first", [0, 20, 40, 60])
def test_tidying_comes_to_an_end_whatever_compresses_well(tmp_path: Path, first: int) -> None:
    store = Store(tmp_path / "finished")
    flat = make_run(episodes=False, policy=False, lines=2000)
    metrics = {name: np.zeros_like(column) for name, column in flat.metrics.items()}
    runs = [recomputed(flat, spec=replace(flat.spec, seed=seed), metrics=metrics) for seed in range(first, first + 11)]
    for run in runs:
        store.add([run])
    store.tidy()
    tidied = {path: path.stat().st_mtime_ns for path in store.folder.iterdir()}
    assert len(tidied) == 3
    assert store.refresh() == {run.name for run in runs}
    for _ in range(3):
        store.tidy()
    assert {path: path.stat().st_mtime_ns for path in store.folder.iterdir()} == tidied


def test_what_killed_writers_left_is_removed_when_nobody_can_be_writing_it_any_more(tmp_path: Path) -> None:
    store, _ = filled(tmp_path)
    old, new = (store.folder / f".writing-{name}.npz" for name in ("old", "new"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (1e9, 1e9))
    store.tidy()
    assert (old.exists(), new.exists()) == (False, True)


@pytest.mark.parametrize("at", range(13))
def test_who_is_killed_while_tidying_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """After the first new files, and after each old one that is removed."""
    store, expected = filled(tmp_path)
    deletions, unlink = iter(range(100)), Path.unlink

    def killed(self: Path, missing_ok: bool = False) -> None:
        if self.suffix == ".npz" and not self.name.startswith(".") and next(deletions) == at:
            raise KeyboardInterrupt
        unlink(self, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        if at < 12:
            with pytest.raises(KeyboardInterrupt):
                store.tidy()
        else:
            store.tidy()
    assert held(tmp_path) == expected
    Store(store.folder).tidy()
    assert held(tmp_path) == expected
    assert len(files_of(store)) == len(KINDS)


def test_a_process_that_is_killed_between_writing_and_removing_loses_nothing(tmp_path: Path) -> None:
    store, expected = filled(tmp_path)
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from cycletime.runs.store import Store\n"
        "unlink = Path.unlink\n"
        "def die(self, missing_ok=False):\n"
        "    if not self.name.startswith('.'): os.kill(os.getpid(), signal.SIGKILL)\n"
        "    unlink(self, missing_ok)\n"
        "Path.unlink = die\n"
        "Store(Path(sys.argv[1])).tidy()\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(store.folder)], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(list(store.folder.glob("*.npz"))) == 12 + len(KINDS)
    assert held(tmp_path) == expected
    store.tidy()
    assert held(tmp_path) == expected


def test_two_that_tidy_while_others_add_lose_nothing(tmp_path: Path) -> None:
    store, expected = filled(tmp_path, 2)
    more = runs_of(*range(2, 12))
    begin = threading.Barrier(3)

    def add() -> None:
        begin.wait()
        adding = Store(store.folder)
        for run in more:
            adding.add([run])

    def tidy() -> None:
        begin.wait()
        tidying = Store(store.folder)
        for _ in range(20):
            tidying.tidy()

    with ThreadPoolExecutor(3) as pool:
        doing = [pool.submit(what) for what in (add, tidy, tidy)]
    for each in doing:
        each.result()
    expected |= {run.name: all_of(run) for run in more}
    assert held(tmp_path) == expected
    for _ in range(2):
        store.tidy()
    assert held(tmp_path) == expected
    assert len(files_of(store)) == len(KINDS)


def test_two_that_write_the_same_file_at_once_both_succeed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As two do who tidy the same files: one comes in the middle of the other."""
    store, runs, flush = Store(tmp_path / "finished"), runs_of(0)[:1], files._flush

    def other_comes(path: Path) -> None:
        monkeypatch.setattr(files, "_flush", flush)
        Store(store.folder).add(runs)
        flush(path)

    monkeypatch.setattr(files, "_flush", other_comes)
    store.add(runs)
    assert held(tmp_path) == {run.name: all_of(run) for run in runs}
    assert len(files_of(store)) == 1


# A disk that refuses.


def test_on_a_full_disk_no_run_counts_as_finished_and_what_is_there_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, expected = filled(tmp_path)
    before = files_of(store)

    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files, "_flush", full)
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
    store, written, flush = Store(tmp_path / "finished"), list[Path](), files._flush

    def soon_full(path: Path) -> None:
        written.append(path)
        if len(written) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        flush(path)

    with monkeypatch.context() as patch:
        patch.setattr(files, "_flush", soon_full)
        with pytest.raises(DiskFullError):
            store.add(runs_of(0))
    assert store.refresh() == {runs_of(0)[0].name}
    store.add(runs_of(0))
    assert held(tmp_path) == {run.name: all_of(run) for run in runs_of(0)}


def test_a_folder_that_cannot_be_made_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="finished cannot be written: Not a directory"):
        Store(tmp_path / "file" / "finished").add(runs_of(0))


LITTLE = """
import sys
missing = ("pyarrow", "safetensors", "rich", "tyro", "gymnasium", "scipy", "matplotlib", "yaml", "optax")
sys.modules.update(dict.fromkeys(missing))
from pathlib import Path
import cycletime.studies.running.worker
from cycletime.engines.record import KEEP_ALL, Trainee
from cycletime.engines.training import train_together
from cycletime.runs.folder import RunFolder
from cycletime.runs.result import fault_of
from cycletime.runs.store import Store
from tests.engines.scripted import Scripted, make_spec
spec, store = make_spec(), Store(Path(sys.argv[1]) / "finished")
class Shelf:
    keep = KEEP_ALL
    def save(self, record, chunk): pass
    def finish(self, last):
        store.add([run for _, run in last])
        return [None]
trainee = Trainee(RunFolder(Path(sys.argv[1]) / "runs" / spec.name, spec))
assert train_together([trainee], Shelf(), stop=lambda: True, group=Scripted([spec])) == ["stopped"]
assert trainee.folder.policy().env_steps == 100
assert train_together([trainee], Shelf(), group=Scripted([spec])) == ["finished"]
store.refresh()
store.tidy()
(run,) = store.runs()
assert (fault_of(run), run.result["resumed"], run.policy.env_steps) == (None, "resumed, identical", 800)
"""


def test_machines_with_little_installed_train_keep_and_resume(tmp_path: Path) -> None:
    """With NumPy and JAX alone: the checkpoints, the store and the worker."""
    words = [sys.executable, "-c", LITTLE, str(tmp_path)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
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
