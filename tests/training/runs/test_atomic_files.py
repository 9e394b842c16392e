from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cycletime.errors import RunError
from cycletime.training.atomic_files import (
    NoLinksError,
    hard_link,
    make_folder,
    move,
    sweep,
    write_first,
    write_whole,
)

FULL = "the disk is full; make room and resume, what was saved before is untouched"


def folder_with(text: str) -> Callable[[Path], None]:
    def write(unfinished: Path) -> None:
        unfinished.mkdir()
        (unfinished / "part").write_text(text)

    return write


def ran(program: str, *arguments: Path) -> subprocess.CompletedProcess[str]:
    imports = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom cycletime.training.atomic_files import write_whole\n"
    )
    lines = imports + program
    return subprocess.run(
        [sys.executable, "-c", lines, *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_a_file_and_a_folder_are_put_in_place(tmp_path: Path) -> None:
    write_whole(tmp_path / "file", lambda unfinished: unfinished.write_text("new"))
    write_whole(tmp_path / "folder", folder_with("new"))
    assert (tmp_path / "file").read_text() == (tmp_path / "folder" / "part").read_text() == "new"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "folder"]


def test_a_file_replaces_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    write_whole(path, lambda unfinished: unfinished.write_text("new"))
    assert path.read_text() == "new"


def test_the_unfinished_file_keeps_the_ending_that_writers_go_by(tmp_path: Path) -> None:
    seen: list[Path] = []

    def write(unfinished: Path) -> None:
        seen.append(unfinished)
        unfinished.touch()

    write_whole(tmp_path / "film.gif", write)
    assert seen[0].suffix == ".gif"
    assert seen[0].parent == tmp_path


@pytest.mark.parametrize("error", [ValueError("astray"), KeyboardInterrupt()])
def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def write(unfinished: Path) -> None:
        unfinished.write_text("half")
        raise error

    with pytest.raises(type(error)):
        write_whole(path, write)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_writer_that_is_killed_leaves_the_old_file_and_what_sweep_removes(tmp_path: Path) -> None:
    path, program = tmp_path / "file", "write_whole(Path(sys.argv[1]), {})\n"
    path.write_text("old")
    die = "(p / 'part' if p.is_dir() else p).write_text('half'), os.kill(os.getpid(), signal.SIGKILL)"
    for arguments, begin in ((path, "None"), (tmp_path / "folder", "p.mkdir()")):
        killed = ran(program.format(f"lambda p: ({begin}, {die})"), arguments)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 3
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_writer_left_does_not_get_into_the_next_file(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    die = "(p.mkdir(), (p / 'old').touch(), os.kill(os.getpid(), signal.SIGKILL))"
    assert ran(f"write_whole(Path(sys.argv[1]), lambda p: {die})", path).returncode == -signal.SIGKILL
    write_whole(path, folder_with("new"))
    assert [each.name for each in path.iterdir()] == ["part"]
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == [path]


def test_sweep_leaves_everything_else_and_needs_no_folder(tmp_path: Path) -> None:
    (tmp_path / ".hidden").touch()
    (tmp_path / "writing-x").touch()
    sweep(tmp_path)
    sweep(tmp_path / "missing")
    assert len(list(tmp_path.iterdir())) == 2


def test_where_others_write_only_what_is_old_is_swept_away(tmp_path: Path) -> None:
    old, new = (tmp_path / f".writing-{name}" for name in ("old", "new"))
    for path in (old, new):
        path.touch()
    os.utime(old, (1e9, 1e9))
    sweep(tmp_path, older_s=3600)
    assert list(tmp_path.iterdir()) == [new]
    sweep(tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_disk_holds_all_of_it_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, held = tmp_path / "folder", []
    fsync = os.fsync

    def note(handle: int) -> None:
        held.append((os.fstat(handle).st_ino, path.exists()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note)
    write_whole(path, folder_with("new"))
    parts = [(path / "part", False), (path, False), (tmp_path, True)]
    assert held == [(part.stat().st_ino, named) for part, named in parts]


# What the disk refuses.


def write_to_a_full_disk(unfinished: Path) -> None:
    unfinished.symlink_to("/dev/full")
    unfinished.write_text("new")


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(RunError) as caught:
        write_whole(path, write_to_a_full_disk)
    assert str(caught.value) == f"{path} cannot be written: {FULL}."
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "writes",
    [
        "p.write_bytes(bytes(10**6))",
        "np.savez(p.open('wb'), a=np.zeros(10**6))",
        "pq.write_table(pa.table({'a': np.random.rand(10**5)}), p)",
    ],
)
def test_a_write_that_the_system_cuts_off_leaves_the_old_file_whoever_writes(tmp_path: Path, writes: str) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    program = (
        "import resource\n"
        "import numpy as np, pyarrow as pa, pyarrow.parquet as pq\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        f"write_whole(Path(sys.argv[1]), lambda p: {writes})\n"
    )
    failed = ran(program, path)
    assert failed.stderr.splitlines()[-1] == f"cycletime.errors.RunError: {path} cannot be written: File too large."
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_nobody_may_write_to_is_told_of() -> None:
    path = Path("/sys/kernel/cycletime")  # not even root may
    with pytest.raises(RunError, match="/cycletime cannot be written: the folder is read-only for you; give one"):
        write_whole(path, lambda unfinished: unfinished.write_text("new"))


def test_a_path_below_a_file_or_a_missing_folder_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match=r"below cannot be written: '.*' is a file; give a folder\.$"):
        write_whole(tmp_path / "file" / "below", lambda unfinished: unfinished.write_text("new"))
    with pytest.raises(RunError, match=r"below cannot be written: No such file or directory\.$"):
        write_whole(tmp_path / "missing" / "below", lambda unfinished: unfinished.write_text("new"))


def test_of_files_that_are_made_at_once_the_first_stays(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def second(unfinished: Path) -> None:
        write_first(path, lambda first: first.write_text("first"))
        unfinished.write_text("second")

    write_first(path, second)
    assert path.read_text() == "first"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_whoever_was_first_may_have_swept_what_the_second_writes(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def second(unfinished: Path) -> None:
        unfinished.write_text("second")
        write_first(path, lambda first: first.write_text("first"))
        sweep(tmp_path)

    write_first(path, second)
    assert path.read_text() == "first"


def test_without_hard_links_a_file_is_made_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(source: Path, target: Path) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", link)
    write_first(tmp_path / "file", lambda unfinished: unfinished.write_text("made"))
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("file", "made")]


def test_a_first_file_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    def full(unfinished: Path) -> None:
        unfinished.write_text("begun")
        raise OSError(errno.ENOSPC, "no space")

    with pytest.raises(RunError, match=f"file cannot be written: {FULL}"):
        write_first(tmp_path / "file", full)
    assert not list(tmp_path.iterdir())


def test_of_files_that_are_replaced_at_once_the_last_stays(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def last(unfinished: Path) -> None:
        unfinished.write_text("last")
        write_whole(path, lambda first: first.write_text("first"))
        assert path.read_text() == "first"

    write_whole(path, last)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("file", "last")]


def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What the disk is made to hold from now on, by inode."""
    held, fsync = list[int](), os.fsync

    def note(handle: int) -> None:
        held.append(os.fstat(handle).st_ino)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note)
    return held


def test_the_disk_knows_of_new_folders_and_of_what_was_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = synced(monkeypatch)
    make_folder(tmp_path / "a" / "b")
    assert held == [tmp_path.stat().st_ino, (tmp_path / "a").stat().st_ino], "where the new names are"
    held.clear()
    make_folder(tmp_path / "a" / "b")
    assert not held
    (tmp_path / "a" / "b" / "file").touch()
    assert move(tmp_path / "a" / "b" / "file", tmp_path / "a" / "file").exists()
    assert set(held) == {(tmp_path / "a").stat().st_ino, (tmp_path / "a" / "b").stat().st_ino}


def test_a_file_system_without_hard_links_is_called_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(source: Path, target: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    (tmp_path / "file").touch()
    with pytest.raises(NoLinksError, match=f"The file system of {tmp_path} has no hard links .*: give a folder on"):
        hard_link(tmp_path / "file", tmp_path / "other")
