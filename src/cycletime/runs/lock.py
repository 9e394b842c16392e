"""One process at a time on one run: a lock that the system takes back from whoever dies."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cycletime.errors import RunError
from cycletime.runs.files import disk_errors

_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
"""What file systems without locks say, such as Lustre as it is often mounted."""


class HeldError(RunError):
    """Another process holds the lock."""


@dataclass(frozen=True)
class Lock:
    """A lock that is held."""

    path: Path
    handle: int

    def check(self) -> None:
        """Refuse to go on where the file is gone or another one: somebody deleted the folder, and may train anew.

        Raises:
            RunError: if so.
        """
        try:
            there = self.path.stat().st_ino
        except OSError:
            there = None
        if there != os.fstat(self.handle).st_ino:
            raise RunError(
                f"The run {self.path.parent} was deleted or replaced while it was trained: nothing was saved."
            )


@contextmanager
def locked(path: Path) -> Iterator[Lock]:
    """Hold the lock at a path, a file that is made if it is not there.

    Raises:
        RunError: if another process holds it, or there can be none.
    """
    with disk_errors(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        with disk_errors(path):
            _lock(path, handle)
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        yield Lock(path, handle)
    finally:
        os.close(handle)


def _lock(path: Path, handle: int) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(handle, 200).decode(errors="replace").strip() or "another process"
        raise HeldError(
            f"The run {path.parent} is being trained by {holder}: wait for it, or end it and resume."
        ) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        raise RunError(
            f"The file system of {path.parent} has no locks ({error.strerror}), which keep two processes off one "
            "run: give a folder on another one."
        ) from error
