"""One process at a time on one run: a lock that the system takes back from whoever dies."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cycletime.errors import RunError
from cycletime.runs.files import disk_errors


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
def locked(path: Path, *, wait: bool = False) -> Iterator[Lock]:
    """Hold the lock at a path, or wait for it where it is never held for long.

    Raises:
        RunError: if another process holds it.
    """
    with disk_errors(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        with disk_errors(path):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(handle, 200).decode(errors="replace").strip() or "another process"
                raise RunError(
                    f"The run {path.parent} is being trained by {holder}: wait for it, or end it and resume."
                ) from None
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        yield Lock(path, handle)
    finally:
        os.close(handle)
