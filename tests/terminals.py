"""Standard errors of all kinds: a terminal, a pipe that nobody reads any more, and a log on a full disk."""

import os
import pty
import re
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest


@contextmanager
def terminal(columns: int = 150) -> Iterator[list[str]]:
    """A terminal as standard error; what was shown on it, without colours, is in the list when the block has ended."""
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (1000, columns))
    read, shown = bytearray(), list[str]()

    def read_all() -> None:
        with suppress(OSError):  # Linux's way to say that the other side has left
            while chunk := os.read(leader, 10_000):
                read.extend(chunk)

    reader = threading.Thread(target=read_all)
    reader.start()
    try:
        with pytest.MonkeyPatch.context() as patch, os.fdopen(follower, "w") as file:
            patch.setenv("TERM", "xterm")
            patch.setenv("COLUMNS", str(columns))
            patch.setattr(sys, "stderr", file)
            yield shown
    finally:
        reader.join()
        os.close(leader)
        shown.append(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", read.decode()))


@contextmanager
def nobody_reads() -> Iterator[None]:
    """A standard error whose reader is gone."""
    reader, writer = os.pipe()
    os.close(reader)
    with _standard_error(writer):
        yield


@contextmanager
def full_disk() -> Iterator[None]:
    """A standard error that has no room."""
    with _standard_error(os.open("/dev/full", os.O_WRONLY)):
        yield


@contextmanager
def _standard_error(handle: int) -> Iterator[None]:
    file = os.fdopen(handle, "w")
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stderr", file)
            yield
    finally:
        with suppress(OSError):  # what was not written is lost
            file.close()
