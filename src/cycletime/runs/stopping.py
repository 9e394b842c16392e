"""Ctrl-C, SIGTERM, and SIGHUP of a terminal that goes: one asks a run to save and leave, one more ends the program."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TOLD = b"\nStopping at the next good moment (about a second, or the episode's end); again to stop at once.\n"


class Stopper:
    """Whether someone asked to stop."""

    def __init__(self) -> None:
        """Nobody has yet."""
        self.signal: signal.Signals | None = None

    def __call__(self) -> bool:
        """Whether to stop."""
        return self.signal is not None

    @property
    def status(self) -> int:
        """The exit status of a program that a signal ended, as shells count it."""
        return 128 + self.signal if self.signal else 0


@contextmanager
def stopping() -> Iterator[Stopper]:
    """Catch signals while a run goes on."""
    stopper = Stopper()

    def ask(number: int, frame: FrameType | None) -> None:
        if stopper.signal is not None:
            if number == signal.SIGHUP:  # the system and the shell both send it, and nobody is in a hurry
                return
            raise KeyboardInterrupt
        stopper.signal = signal.Signals(number)
        # Not by print, which fails where the signal came in the middle of another print. Nobody may be there to read.
        with suppress(OSError, AttributeError, ValueError):
            os.write(sys.stderr.fileno(), _TOLD)

    # Who started the program may have had it ignore a signal, as shells do with Ctrl-C for what runs in the background.
    heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, ask) for number in heard}
    try:
        yield stopper
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
