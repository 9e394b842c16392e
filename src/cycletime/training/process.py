"""The process that trains: signals that stop it, the heartbeat that shows its progress, and its limit of open files.

Ctrl-C, SIGTERM and SIGHUP of a terminal that goes: one asks a run to save and leave, one more ends the program. A
robot's run they end at once: its arm shall stand.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from cycletime.processes import handling

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STOPPING_NOTICE = (
    b"\nStopping at the next good moment (about a second, or the episode's end); again to stop at once.\n"
)


class Stopper:
    def __init__(self) -> None:
        self.signal: signal.Signals | None = None

    def __call__(self) -> bool:
        return self.signal is not None

    @property
    def status(self) -> int:
        """The exit status of a program that a signal ended, as shells count it."""
        return 128 + self.signal if self.signal else 0


@contextmanager
def stopping() -> Iterator[Stopper]:
    stopper = Stopper()

    def ask(number: int, frame: FrameType | None) -> None:
        if stopper.signal is not None:
            if number == signal.SIGHUP:  # the system and the shell both send it, and nobody is in a hurry
                return
            raise KeyboardInterrupt
        stopper.signal = signal.Signals(number)
        # Not by print, which fails where the signal came in the middle of another print. Nobody may be there to read.
        with suppress(OSError, AttributeError, ValueError):
            os.write(sys.stderr.fileno(), _STOPPING_NOTICE)

    with _handling(ask):
        yield stopper


@contextmanager
def stopping_at_once() -> Iterator[Stopper]:
    """Have the first signal interrupt what goes on, since a robot shall stand, and let no other one disturb that."""
    stopper = Stopper()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if stopper.signal is None:
            stopper.signal = signal.Signals(number)
            raise KeyboardInterrupt

    with _handling(interrupt, also_ignored=True):
        yield stopper


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], None], *, also_ignored: bool = False) -> Iterator[None]:
    # Who started the program may have had it ignore a signal, as shells do with Ctrl-C for what runs in the background,
    # and nohup with a terminal that goes. A training goes on then; an arm stops, since nobody may be beside it.
    heard = [number for number in _SIGNALS if also_ignored or signal.getsignal(number) is not signal.SIG_IGN]
    with handling(dict.fromkeys(heard, handler)):
        yield


class Heartbeat:
    def __init__(self) -> None:
        self.count = 0
        self.waits_for = ""
        """Another process that the work is in, for whoever finds that it hangs."""

    def tick(self) -> None:
        self.count += 1


HEARTBEAT = Heartbeat()


SPARE_FILES = 256


def allow_open_files(count: int) -> None:
    """Let this process have so many more files open, as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
