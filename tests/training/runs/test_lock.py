from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cycletime.errors import RunError
from cycletime.training.atomic_files import locked
from tests.processes import started


@contextmanager
def holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from cycletime.training.atomic_files import locked\n"
        "with locked(Path(sys.argv[1])):\n"
        "    print('held', flush=True)\n"
        "    time.sleep(60)\n"
    )
    arguments = [sys.executable, "-c", program, str(path)]
    with started(arguments, None) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


def test_a_second_process_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    with holder(tmp_path / "lock") as process:
        with pytest.raises(RunError) as caught, locked(tmp_path / "lock"):
            pytest.fail("two hold it")
        assert str(caught.value) == (
            f"The run {tmp_path} is being trained by process {process.pid} on {socket.gethostname()}: wait for it, or "
            "end it and resume."
        )
        with pytest.raises(RunError, match=f"process {process.pid} "), locked(tmp_path / "lock"):
            pytest.fail("being refused took it away")


def test_a_holder_that_is_killed_holds_it_no_more(tmp_path: Path) -> None:
    with holder(tmp_path / "lock") as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        with locked(tmp_path / "lock"):
            assert f"process {os.getpid()} " in (tmp_path / "lock").read_text()


def test_the_same_process_does_not_get_it_twice_but_again(tmp_path: Path) -> None:
    for _ in range(2):
        with (
            locked(tmp_path / "lock"),
            pytest.raises(RunError, match=f"process {os.getpid()} "),
            locked(tmp_path / "lock"),
        ):
            pytest.fail("two hold it")


def test_it_is_let_go_after_an_error_which_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), locked(tmp_path / "lock"):
        (tmp_path / "missing").read_text()
    with locked(tmp_path / "lock"):
        pass


def test_a_shorter_name_leaves_nothing_of_a_longer_one(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("process 123456789 on a machine with a long name\n" * 3)
    with locked(tmp_path / "lock"):
        assert (tmp_path / "lock").read_text() == f"process {os.getpid()} on {socket.gethostname()}\n"


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def flock(handle: int, how: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(RunError) as caught, locked(tmp_path / "lock"):
        pytest.fail("nobody can hold it")
    assert str(caught.value) == (
        f"The file system of {tmp_path} has no locks ({os.strerror(number)}), which keep two processes off one run: "
        "give a folder on another one."
    )


def test_a_lock_whose_file_was_deleted_or_replaced_does_not_hold(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path) as lock:
        lock.check()
        path.unlink()
        with pytest.raises(RunError, match="was deleted or replaced in training: nothing was saved"):
            lock.check()
        path.touch()
        with pytest.raises(RunError, match="was deleted or replaced"):
            lock.check()


def test_a_lock_that_cannot_be_written_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(RunError, match="is a file; give a folder"),
        locked(tmp_path / "file" / "lock"),
    ):
        pass
    (tmp_path / "lock").symlink_to("/dev/full")
    with pytest.raises(RunError, match="cannot be written: "), locked(tmp_path / "lock"):
        pass
