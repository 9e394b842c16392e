"""Atomic writes, after which a file is complete or absent; and locks that keep a run to one process."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from cycletime.errors import DiskFullError, RunError
from cycletime.processes import private_descriptors

_UNFINISHED = ".writing-"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
"""What file systems without hard links say."""


class NoLinksError(RunError):
    """A file system has no hard links."""


def make_folder(folder: Path) -> None:
    """Create a folder and its parents, and flush the new entries to disk."""
    with disk_errors(folder):
        new = [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for each in reversed(new):
            flush_folder(each.parent)


def check_writable(folder: Path) -> None:
    with disk_errors(folder), _temporary(folder / "check") as unfinished:
        unfinished.touch()  # what the rights say is not enough: a disk can be read-only as a whole


def move(path: Path, place: Path) -> Path:
    """Rename a file or a folder within a file system, and flush both parents to disk."""
    with disk_errors(place):
        path.rename(place)
        for folder in {path.parent, place.parent}:
            flush_folder(folder)
    return place


def hard_link(path: Path, place: Path) -> None:
    """Hard-link a file of this process to another name: atomic, and only one of several processes succeeds."""
    try:
        os.link(path, place)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        lacks = f"no hard links ({os.strerror(error.errno)}), which keep two workers off one run"
        raise NoLinksError(f"The file system of {place.parent} has {lacks}: give a folder on another one.") from error


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file or a folder under a temporary name, and put it in place in one step; the last of several wins."""
    with disk_errors(path), _temporary(path) as unfinished:
        write(unfinished)
        _flush(unfinished)
        if path.exists() and not path.is_file() and not path.is_dir():  # a device or a pipe, which would be gone
            raise RunError(f"{path} cannot be written: it is not a regular file, so give another name.")
        unfinished.replace(path)
        flush_folder(path.parent)


def write_first(path: Path, write: Callable[[Path], object]) -> None:
    """The same of a file that others may write at the same time, on whatever machine: the first of several wins."""
    with disk_errors(path), _temporary(path) as unfinished:
        try:
            write(unfinished)
            _flush(unfinished)
            hard_link(unfinished, path)
        except FileExistsError:
            return
        except NoLinksError:
            if path.exists():
                return
            unfinished.replace(path)
        except OSError:
            if path.exists():  # whoever was first may have swept, too
                return
            raise
        flush_folder(path.parent)


def sweep(folder: Path, older_s: float = 0.0) -> None:
    """Remove unfinished files of killed processes; where others may write, only those older than `older_s`."""
    for unfinished in folder.glob(f"{_UNFINISHED}*"):
        with suppress(FileNotFoundError):
            if not older_s or time.time() - unfinished.lstat().st_mtime > older_s:
                _remove(unfinished)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        kind = DiskFullError if error.errno in _FULL else RunError
        raise kind(f"{path} cannot be written: {_reason(error, path)}.") from error


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    unfinished = path.with_name(f"{_UNFINISHED}{uuid4().hex}-{path.name}")
    try:
        yield unfinished
    finally:
        _remove(unfinished)


def _reason(error: OSError, path: Path) -> str:
    if error.errno in _FULL:
        return "the disk is full; make room and resume, what was saved before is untouched"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "the folder is read-only for you; give one that you may write to"
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        file = next((each for each in (path, *path.parents) if each.is_file()), None)
        if file is not None:
            return f"{str(file)!r} is a file; give a folder"
    return os.strerror(error.errno) if error.errno else str(error).rstrip(".")


def _flush(path: Path) -> None:
    """Flush a file, or a folder with its files, to disk."""
    for each in path.iterdir() if path.is_dir() else [path]:
        with each.open("rb") as file:
            os.fsync(file.fileno())
    if path.is_dir():
        flush_folder(path)


def flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
"""What file systems without locks say, such as Lustre as it is often mounted."""


@dataclass(frozen=True)
class Lock:
    path: Path
    handle: int

    def check(self) -> None:
        """Refuse to go on where the file is gone or another one: somebody deleted the folder, and may train anew."""
        try:
            there = self.path.stat().st_ino
        except OSError:
            there = None
        if there != os.fstat(self.handle).st_ino:
            raise RunError(f"The run {self.path.parent} was deleted or replaced in training: nothing was saved.")


@contextmanager
def locked(path: Path) -> Iterator[Lock]:
    with disk_errors(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        with disk_errors(path):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(handle, 200).decode(errors="replace").strip() or "another process"
                raise RunError(
                    f"The run {path.parent} is being trained by {holder}: wait for it, or end it and resume."
                ) from None
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
                lacks = f"no locks ({error.strerror}), which keep two processes off one run"
                raise RunError(
                    f"The file system of {path.parent} has {lacks}: give a folder on another one."
                ) from error
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        with private_descriptors(handle):  # a child of an environment's would keep the lock
            yield Lock(path, handle)
    finally:
        os.close(handle)
