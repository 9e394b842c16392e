"""Room for the files that runs keep open: each has a lock, and systems allow a process about a thousand at first."""

from __future__ import annotations

import resource
from contextlib import suppress

SPARE = 256
"""Files that a process has open besides."""


def allow_open_files(count: int) -> None:
    """Let this process have so many more files open, as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + SPARE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
