"""Files that are whole or absent, whatever happens while they are written."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from cycletime.errors import RunError

_UNFINISHED = ".writing-"
_MASK = os.umask(0o077)
os.umask(_MASK)  # it can only be read by setting it, which is done once, before there are threads


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` make a file or a folder under another name, then put it in place in one step.

    Whoever is killed in the middle leaves what was there before, and a remainder that `sweep` removes.
    """
    unfinished = path.with_name(f"{_UNFINISHED}{path.name}")
    with disk_errors(path):
        _remove(unfinished)
        try:
            write(unfinished)
            _open_to_others(unfinished)
            _flush(unfinished)
            unfinished.replace(path)
            _flush_folder(path.parent)
        except BaseException:
            _remove(unfinished)
            raise


def sweep(folder: Path) -> None:
    """Remove what someone who was killed left unfinished."""
    for unfinished in folder.glob(f"{_UNFINISHED}*"):
        _remove(unfinished)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Tell in a sentence what the disk refused."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise RunError(f"{path} cannot be written: {_reason(error)}.") from error


def _reason(error: OSError | SafetensorError) -> str:
    number = _number(error)
    if number in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full; make room and resume, what was saved before is untouched"
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "the folder is read-only for you; give one that you may write to"
    return os.strerror(number) if number else str(error).rstrip(".")


def _number(error: OSError | SafetensorError) -> int | None:
    """The system's number; safetensors tells it in words only."""
    if isinstance(error, OSError):
        return error.errno
    told = re.search(r"\(os error (\d+)\)", str(error))
    return int(told[1]) if told else None


def _open_to_others(path: Path) -> None:
    """Give files the mode that the user's mask asks for; safetensors makes its own for nobody else."""
    for each in path.iterdir() if path.is_dir() else [path]:
        each.chmod(0o666 & ~_MASK)


def _flush(path: Path) -> None:
    """Have the disk hold it before it gets its name."""
    for each in path.iterdir() if path.is_dir() else [path]:
        with each.open("rb") as file:
            os.fsync(file.fileno())
    if path.is_dir():
        _flush_folder(path)


def _flush_folder(folder: Path) -> None:
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
