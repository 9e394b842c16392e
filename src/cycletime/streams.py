"""Standard output and standard error, on which nothing that cannot be written ends the work."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any, TextIO, cast


class LenientStream:
    """A stream that drops what cannot be written, and replaces letters that it does not have."""

    def __init__(self, stream: Any, faults: list[OSError] | None = None) -> None:  # noqa: ANN401 - of text or bytes
        """Stand before a stream; faults that others have found with it may be known."""
        self._stream = stream
        self.faults = [] if faults is None else faults
        """Why something could not be written, each time."""

    def write(self, text: Any) -> int:  # noqa: ANN401
        try:
            self._stream.write(text)
        except UnicodeEncodeError as error:
            self.write(text.encode(error.encoding, "replace").decode(error.encoding))
        except ValueError:
            pass  # somebody has closed it, who knows why
        except OSError as error:
            self.faults.append(error)
        return len(text)

    def writelines(self, lines: Iterable[Any]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except ValueError:
            pass
        except OSError as error:
            self.faults.append(error)

    @property
    def buffer(self) -> LenientStream:
        """The same for bytes."""
        return LenientStream(self._stream.buffer, self.faults)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._stream, name)


@contextmanager
def lenient_streams() -> Iterator[LenientStream]:
    """Have whatever is printed meanwhile dropped where it cannot be written; standard output, which knows its faults.

    For the outermost part of a program, since standard streams that have faults go nowhere afterwards.
    """
    _reopen_closed_streams()
    out, errors = LenientStream(sys.stdout), LenientStream(sys.stderr)
    with redirect_stdout(cast(TextIO, out)), redirect_stderr(cast(TextIO, errors)):
        try:
            yield out
        finally:
            for stream in (out, errors):
                stream.flush()
                if stream.faults:
                    _redirect_to_devnull(stream)


def _reopen_closed_streams() -> None:
    """Open what was closed before the program began, lest a file of ours take its number and be written into."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which takes the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _redirect_to_devnull(stream: LenientStream) -> None:
    """Python writes once more at exit what it could not write, and must not complain again then."""
    with suppress(OSError, ValueError):  # of what is no file, or closed by now
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
