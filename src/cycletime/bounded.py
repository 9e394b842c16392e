"""Files that people name, or that lie in a folder of someone else's: nothing is waited for, and sizes are bounded."""

from __future__ import annotations

import os
import stat
from io import BufferedReader
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
    """The UTF-8 text of a file, line ends as they are; the encoding 'utf-8' keeps a byte order mark."""
    if "\0" in str(path):
        raise InputError(f"{str(path)!r} cannot be the name of a file.")
    try:
        return read_bounded(Path(path), most_bytes).decode(encoding)
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} cannot be read: byte {error.start + 1} is not UTF-8 text.") from None


def read_bounded(path: Path, most_bytes: int) -> bytes:
    """The content of a regular file that has no more bytes than that; an OSError where it cannot be opened."""
    with open_regular(path, most_bytes) as file:
        content = bytearray()
        # What is told of the size may be too little: a file that grows, one of /proc.
        while len(content) <= most_bytes and (part := file.read(min(2**20, most_bytes + 1 - len(content)))):
            content += part
    _check_size(path, len(content), most_bytes)
    return bytes(content)


def open_regular(path: Path, most_bytes: int | None = None) -> BufferedReader:
    """A regular file, open to be read; what does not end or would be waited for (a pipe, a device) is refused."""
    _check_regular_file(path, path.stat())
    # The name may mean another thing by now, and opening a pipe would wait for its writer.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    file = os.fdopen(handle, "rb")
    try:
        status = os.fstat(handle)
        _check_regular_file(path, status)
        if most_bytes is not None:
            _check_size(path, status.st_size, most_bytes)
    except InputError:
        file.close()
        raise
    return file


def _check_size(path: Path, size: int, most_bytes: int) -> None:
    if size > most_bytes:
        raise InputError(f"{path} has {size} bytes or more: at most {most_bytes} are read.")


def _check_regular_file(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _FILE_KINDS.get(stat.S_IFMT(status.st_mode), "no regular file")
        raise InputError(f"{path} is {kind}: give a regular file.")
