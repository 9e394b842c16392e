"""A lease on a run: whoever holds it may train the run, anywhere on a shared file system, and who dies loses it.

A file that exists is the lease, made by a hard link since that is atomic on network file systems too. Its holder
touches it every few seconds; one that nobody has touched for long, or whose process is dead on this very machine, is
stale and may be taken. A holder that was frozen and finds its lease taken must not write any more.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from cycletime.runs.files import disk_errors

BEAT_S = 5.0
"""How often a holder touches its lease."""
STALE_S = 120.0
"""After this an untouched lease is stale; longer than network file systems remember a file's time."""
_NAME = "lease.json"


@dataclass
class Lease:
    """A lease that is held."""

    path: Path
    token: str
    _ended: threading.Event = field(default_factory=threading.Event)
    _lost: bool = False

    def is_lost(self) -> bool:
        """Whether another worker has taken it, so that this one must stop writing."""
        return self._lost or _token(self.path) != self.token

    def beat(self) -> None:
        """Touch it until it is given back or lost."""
        while not self._ended.wait(BEAT_S):
            if self.is_lost():
                self._lost = True
                return
            with suppress(OSError):
                os.utime(self.path)

    def give_back(self) -> None:
        """Let others have it."""
        self._ended.set()
        if not self.is_lost():
            self.path.unlink(missing_ok=True)


@contextmanager
def leased(folder: Path, worker: str) -> Iterator[Lease | None]:
    """Hold the lease on a run's folder; None where somebody else does."""
    lease = _taken(folder, worker)
    if lease is None:
        yield None
        return
    heart = threading.Thread(target=lease.beat, daemon=True)
    heart.start()
    try:
        yield lease
    finally:
        lease.give_back()
        heart.join()


def holder_of(folder: Path) -> str | None:
    """Who holds the lease on a run's folder; nobody where it is stale."""
    told = _told(folder / _NAME)
    return None if told is None or _is_stale(folder / _NAME, told) else f"{told['worker']} on {told['host']}"


def _taken(folder: Path, worker: str) -> Lease | None:
    path, token = folder / _NAME, uuid4().hex
    draft = folder / f".lease-{token}"
    with disk_errors(path):
        draft.write_text(
            json.dumps({"token": token, "worker": worker, "host": socket.gethostname(), "pid": os.getpid()})
        )
    try:
        for _ in range(2):  # once more after a stale one was put aside
            with suppress(FileExistsError):
                os.link(draft, path)
                return Lease(path, token)
            if not _put_aside_if_stale(path, draft):
                return None
        return None
    finally:
        draft.unlink(missing_ok=True)


def _put_aside_if_stale(path: Path, draft: Path) -> bool:
    """Remove a stale lease; whether it is gone. Of several that try only one removes it."""
    told = _told(path)
    if told is None:
        return not path.exists()
    if not _is_stale(path, told, now_s=draft.stat().st_mtime):
        return False
    aside = path.with_name(f".lease-stale-{uuid4().hex}")
    try:
        path.rename(aside)
    except FileNotFoundError:
        return True
    try:
        if _token(aside) != told["token"]:  # somebody was faster, and this is the new lease: put it back
            with suppress(FileExistsError):
                os.link(aside, path)
            return False
        return True
    finally:
        aside.unlink(missing_ok=True)


def _is_stale(path: Path, told: dict[str, str], now_s: float | None = None) -> bool:
    if told.get("host") == socket.gethostname() and not _is_alive(int(told.get("pid", 0))):
        return True
    try:
        touched_s = path.stat().st_mtime
    except OSError:
        return True
    # The file system's own clock, which is the one that touching goes by.
    return (_file_system_s(path.parent) if now_s is None else now_s) - touched_s > STALE_S


def _file_system_s(folder: Path) -> float:
    probe = folder / f".lease-clock-{uuid4().hex}"
    try:
        probe.touch()
        return probe.stat().st_mtime
    finally:
        probe.unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid > 0


def _told(path: Path) -> dict[str, str] | None:
    try:
        told: dict[str, str] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return told


def _token(path: Path) -> str | None:
    told = _told(path)
    return None if told is None else told.get("token")
