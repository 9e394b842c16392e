"""Text of files that people name: its size is bounded before anything is read, and nothing is waited for."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from cycletime.errors import InputError

_FILE_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def read_bounded_text(path: str | os.PathLike[str], most_bytes: int, encoding: str = "utf-8-sig") -> str:
    """The UTF-8 text of a file, line ends as they are; the encoding 'utf-8' keeps a byte order mark.

    Raises:
        InputError: if there is no such file, if it does not end (a pipe, a device), if it has more than
            ``most_bytes``, if it is not UTF-8 text, or if it cannot be read.
    """
    if "\0" in str(path):
        raise InputError(f"{str(path)!r} cannot be the name of a file.")
    try:
        return _read_bytes(Path(path), most_bytes).decode(encoding)
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} cannot be read: byte {error.start + 1} is not UTF-8 text.") from None


def _read_bytes(path: Path, most_bytes: int) -> bytes:
    _check_regular_file(path, path.stat())
    # The name may mean another thing by now, and opening a pipe would wait for its writer.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        _check_regular_file(path, status)
        # What is told of the size may be too little: a file that grows, one of /proc.
        content = b"" if status.st_size > most_bytes else file.read(most_bytes + 1)
    size = max(status.st_size, len(content))
    if size > most_bytes:
        raise InputError(f"{path} has {size} bytes or more: at most {most_bytes} are read.")
    return content


def _check_regular_file(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _FILE_KINDS.get(stat.S_IFMT(status.st_mode), "no regular file")
        raise InputError(f"{path} is {kind}: give a regular file.")
