"""Leases on runs: only the holder may train a run, on any machine of a shared file system; a dead one loses it.

The lease is a file made by a hard link, which is atomic on network file systems too. Its holder touches it every few
seconds; one that nobody has touched for long, or whose process is dead on this machine, is stale and may be taken.
Whoever takes a lease, or gives it back, first makes the file that is named after the lease's token, its succession:
it can be made only once, and the lease is never absent in between. A holder that was frozen and finds its lease taken
must not write any more.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from cycletime.bounded import read_bounded
from cycletime.errors import RunError
from cycletime.training.atomic_files import disk_errors, hard_link
from cycletime.training.sealed_json import parse_json

HEARTBEAT_S = 5.0
STALE_S = 120.0
"""After this an untouched lease is stale, at least; longer than network file systems remember a file's time."""
_SUFFIX = ".json"
_MOST_BYTES = 10_000
_MAX_PID = 2**22


@dataclass
class Lease:
    path: Path
    token: str
    on_loss: Callable[[], object] = lambda: None
    pid: int = field(default_factory=os.getpid)
    _lost: bool = False

    def is_lost(self) -> bool:
        """Whether another worker has taken it, so that this one must stop writing; a forked child never has it."""
        if not self._lost:
            taken = _read_token(self.path) != self.token or _successor_path(self.path, self.token).exists()
            self._lost = taken or os.getpid() != self.pid
        return self._lost

    def check(self) -> None:
        if self.is_lost():
            raise RunError("The lease on this run was taken by another worker, since this one did not answer for long.")

    def heartbeat(self) -> bool:
        """Touch the file, or report the loss; whether it is still held."""
        if self.is_lost():
            self.on_loss()
            return False
        with suppress(OSError):
            os.utime(self.path)
        return True

    def release(self) -> None:
        if self.is_lost():
            return
        with _draft(self.path.parent, "giving back") as (_, draft):
            succession = _successor_path(self.path, self.token)
            if _link_if_free(draft, succession):
                if _read_token(self.path) == self.token:
                    self.path.unlink(missing_ok=True)
                succession.unlink(missing_ok=True)


@dataclass
class _HeartbeatThread:
    """One thread that touches all leases of this process, of which a batch of runs has many."""

    leases: dict[str, Lease] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    is_beating: bool = False

    def begin(self, lease: Lease) -> None:
        with self.lock:
            self.leases[lease.token] = lease
            if not self.is_beating:
                self.is_beating = True
                threading.Thread(target=self._beat, daemon=True).start()

    def end(self, lease: Lease) -> None:
        with self.lock:
            self.leases.pop(lease.token, None)

    def _beat(self) -> None:
        while True:
            threading.Event().wait(HEARTBEAT_S)  # which nobody sets
            with self.lock:
                if not self.leases:
                    self.is_beating = False
                    return
                tokens = list(self.leases)
            for token in tokens:
                with self.lock:  # so that none is touched, or told to be lost, after it was given back
                    lease = self.leases.get(token)
                    if lease is not None:
                        with suppress(OSError):  # of a file system that does not answer now; others' hearts go on
                            if not lease.heartbeat():  # asked only once, since what is lost in between was not told of
                                del self.leases[token]


_HEARTBEAT = _HeartbeatThread()


@contextmanager
def hold_lease(
    folder: Path, run: str, worker: str, on_loss: Callable[[], object] = lambda: None, stale_s: float = STALE_S
) -> Iterator[Lease | None]:
    """Hold the lease on a run, or None where somebody else does; `on_loss` is called from another thread."""
    path = folder / f"{run}{_SUFFIX}"
    with disk_errors(path), _draft(folder, worker, stale_s) as (token, draft):
        is_free = _link_if_free(draft, path) or _replace_stale(path, draft)
        lease = Lease(path, token, on_loss) if is_free else None
    if lease is None or lease.is_lost():
        yield None
        return
    _HEARTBEAT.begin(lease)
    try:
        yield lease
    finally:
        _HEARTBEAT.end(lease)
        with suppress(OSError):  # it goes stale by itself
            lease.release()


def lease_holders(folder: Path) -> dict[str, str]:
    """By run, who holds its lease; not those whose lease is stale."""
    there = [path for path in folder.glob(f"*{_SUFFIX}") if not path.name.startswith(".")]
    now_s, found = _file_system_time_s(folder) if there else 0.0, {}
    for path in there:
        lease = _read_lease(path)
        if lease is not None and _is_stale(path, lease, now_s) is False:
            who = f"{lease.get('worker')} on {lease.get('host')}, process {lease.get('pid')}"
            found[path.name.removesuffix(_SUFFIX)] = who
    return found


def last_heartbeats(folder: Path) -> dict[str, float]:
    signs: dict[str, float] = {}
    for path in folder.glob(f"*{_SUFFIX}"):
        with suppress(OSError):
            touched_s, worker = path.stat().st_mtime, str((_read_lease(path) or {}).get("worker"))
            signs[worker] = max(touched_s, signs.get(worker, touched_s))
    return signs


def sweep_leases(folder: Path) -> None:
    """Remove temporary files of processes that died while taking a lease."""
    leftovers = list(folder.glob(".lease-*"))
    now_s = _file_system_time_s(folder) if leftovers else 0.0
    for leftover in leftovers:
        with suppress(OSError):
            if _is_expired(leftover.stat().st_mtime, now_s):
                leftover.unlink()


def _replace_stale(path: Path, draft: Path) -> bool:
    now_s = draft.stat().st_mtime  # the file system's own clock, which is the one that touching goes by
    lease = _read_lease(path)
    if lease is None:
        return _link_if_free(draft, path)  # given back in this very moment
    place, first = path, str(lease["token"])
    while is_stale := _is_stale(place, lease, now_s):
        place = _successor_path(path, lease["token"])
        if _link_if_free(draft, place):
            break
        lease = _read_lease(place)  # who takes it may have died over it, and has a successor in turn
        if lease is None:
            return False
    else:
        # Who was given way to is gone from there: the lease was given back, or has a new holder, who must not see a
        # successor.
        return is_stale is None and place == path and _link_if_free(draft, path)
    still_there = _read_token(path) == first  # a succession is removed only after the lease was replaced
    if still_there:
        draft.rename(path)
    if not still_there or place == _successor_path(path, first):
        place.unlink(missing_ok=True)
    return still_there


@contextmanager
def _draft(folder: Path, worker: str, stale_s: float = STALE_S) -> Iterator[tuple[str, Path]]:
    token = uuid4().hex
    draft = folder / f".lease-{token}"
    content = {"token": token, "worker": worker, "host": socket.gethostname(), "processes": _pid_namespace()}
    try:
        draft.write_text(json.dumps({**content, "pid": os.getpid(), "stale_s": stale_s}))
        yield token, draft
    finally:
        draft.unlink(missing_ok=True)


def _link_if_free(draft: Path, place: Path) -> bool:
    try:
        hard_link(draft, place)
    except FileExistsError:
        with suppress(OSError):  # a network can repeat the question, and then refuses what it did the first time
            return draft.samefile(place)
        return False
    return True


def _successor_path(path: Path, token: str) -> Path:
    return path.with_name(f".lease-after-{token}")


def _is_stale(path: Path, lease: dict[str, Any], now_s: float) -> bool | None:
    """Whether the holder of a lease is dead or silent; None if the file is gone."""
    if lease.get("processes") == _pid_namespace() and not _is_alive(int(lease.get("pid", 0))):
        return True
    try:
        touched_s = path.stat().st_mtime
    except OSError:
        return None
    return _is_expired(touched_s, now_s, float(lease.get("stale_s", STALE_S)))


def _is_expired(touched_s: float, now_s: float, long_s: float = STALE_S) -> bool:
    """Whether a file was touched long ago; one from the future was, before a clock was set back."""
    return abs(now_s - touched_s) > long_s


def _file_system_time_s(folder: Path) -> float:
    probe = folder / f".lease-clock-{uuid4().hex}"
    try:
        probe.touch()
        return probe.stat().st_mtime
    except OSError:  # who may only read goes by the machine's clock
        return time.time()
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)


@cache
def _pid_namespace() -> str:
    """The same for processes that know each other's numbers; containers can share a host's name and yet do not."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return socket.gethostname()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return pid > 0
    return state not in "ZX"  # a dead process that nobody has asked after yet


def _read_lease(path: Path) -> dict[str, Any] | None:
    """The content of a lease; None if there is none. An unreadable one is known by its inode, and goes stale."""
    try:
        inode = path.stat().st_ino
        with suppress(ValueError, KeyError, TypeError, AttributeError):  # also of a pipe, or of what is too long
            lease = parse_json(read_bounded(path, _MOST_BYTES))
            token = lease["token"]  # which is part of a file's name
            if token.isalnum() and len(token) <= len(uuid4().hex) and 0 < lease["pid"] <= _MAX_PID:
                return lease
    except OSError:
        return None
    return {"token": f"unreadable-{inode}"}


def _read_token(path: Path) -> str | None:
    lease = _read_lease(path)
    return None if lease is None else str(lease["token"])
