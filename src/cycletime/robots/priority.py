"""What a process can do to be on time: ask the system to be let ahead of others, and collect no garbage meanwhile."""

from __future__ import annotations

import contextlib
import gc
import os

_PRIORITY = 10
"""Of the real-time scheduler, on Linux from 1 to 99."""
_NICE = -10


def ask_to_be_on_time() -> bool:
    """Ask for real-time scheduling, or else for a better place among the others; whether the first was granted.

    Only for a process that mostly waits: while it works, others on its core do not.
    """
    gc.freeze()
    gc.disable()
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    except OSError:
        with contextlib.suppress(OSError):
            os.nice(_NICE)
        return False
    return True
