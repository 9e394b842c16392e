"""Small files of finished runs are put together, and no run is lost over it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cycletime.training import atomic_files
from cycletime.training import run_store as bundle_module
from cycletime.training import run_store as store_module
from cycletime.training.run_store import Bundle, Store
from tests.training.runs.finished import all_of, make_run, recomputed
from tests.training.runs.stored import KINDS, files_of, filled, held, runs_of


def test_small_files_are_put_together_one_for_each_kind(tmp_path: Path) -> None:
    store, expected = filled(tmp_path)
    assert len(files_of(store)) == 12
    store.tidy()
    assert held(tmp_path) == expected
    assert len(files_of(store)) == len(KINDS)
    assert store.refresh() == expected.keys()
    assert all(Bundle(store.folder / name).runs() for name in files_of(store))


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
        "from cycletime.training.run_store import Store\n"
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
    store, runs, flush = Store(tmp_path / "finished"), runs_of(0)[:1], atomic_files._flush

    def other_comes(path: Path) -> None:
        monkeypatch.setattr(atomic_files, "_flush", flush)
        Store(store.folder).add(runs)
        flush(path)

    monkeypatch.setattr(atomic_files, "_flush", other_comes)
    store.add(runs)
    assert held(tmp_path) == {run.name: all_of(run) for run in runs}
    assert len(files_of(store)) == 1
