"""Processes that end with the one that started them: helpers of an environment, another library's trainer, and theirs.

`owning_children` and `owned_process` have a guard, a small process of its own, wait until the block ends or this
process dies, however it does, and then end what is left. The guard knows the processes by marks that they inherit: a
variable in their environment, a socket that stays open in a fork, the session and the parent. So also those are found
whose parents have ended. Without /proc, as on macOS, there is no guard.

A forked child is a copy of this process, and would answer its signals and hold its descriptors: `handling` and
`private_descriptors` say which of them are not for children.
"""

# ruff: noqa: PTH112, PTH115, PTH123, PTH208
# since a guard starts in half the time without pathlib

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any
from uuid import uuid4

OWNERS = "CYCLETIME_OWNERS"
"""The environment variable with the tokens of all owners; a process in which it is empty ends by itself."""
END_TIMEOUT_S = 5.0
"""For so long processes are killed again and again that start others; a process that the kernel holds is left then."""
_SELF_ENDING = b"multiprocessing.resource_tracker"
"""Removes shared memory that others leave behind, and ends when they have."""

Handler = Callable[[int, FrameType | None], object]
_handlers: dict[signal.Signals, Handler] = {}
_private: set[int] = set()


@contextmanager
def handling(handlers: Mapping[signal.Signals, Handler]) -> Iterator[None]:
    """Handle signals in this process alone: in forked children SIGTERM ends the child and others are ignored."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    outer = {number: _handlers[number] for number in handlers if number in _handlers}
    _handlers.update(handlers)
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)
            del _handlers[number]
        _handlers.update(outer)


@contextmanager
def private_descriptors(*descriptors: int) -> Iterator[None]:
    """Close descriptors, which stay open meanwhile, in forked children, where they would keep a pipe or a lock."""
    _private.update(descriptors)
    try:
        yield
    finally:
        _private.difference_update(descriptors)


def ignore_signal(number: int, frame: FrameType | None) -> None:
    """Do nothing: unlike SIG_IGN this is not inherited by programs that are started."""


class _Mask(threading.local):
    """The signals that a thread had blocked before it forked."""

    before: frozenset[int] = frozenset()


_mask = _Mask()


def _before_fork() -> None:
    # One that comes at once must not meet the parent's handler in the child.
    _mask.before = frozenset(signal.pthread_sigmask(signal.SIG_BLOCK, _handlers))


def _after_fork() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _mask.before)


def _after_fork_in_child() -> None:
    wakeup = signal.set_wakeup_fd(-1)
    if wakeup != -1 and wakeup not in _private:
        signal.set_wakeup_fd(wakeup)
    for number, handler in _handlers.items():
        if signal.getsignal(number) is handler:
            signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else ignore_signal)
    for descriptor in _private:
        with suppress(OSError):
            os.close(descriptor)
    _private.clear()
    _handlers.clear()
    _after_fork()


def self_ending_environment() -> dict[str, str]:
    """The environment of a process that no owner ends: one that must outlive this one for a moment."""
    return {**os.environ, OWNERS: ""}


@contextmanager
def owning_children() -> Iterator[None]:
    """End all processes that this one starts meanwhile when the block ends, or when this process dies.

    For programs, not for libraries: it does not ask which part of the program has started them. A forked child that
    comes to the end of the block ends there.
    """
    owner, before = os.getpid(), os.environ.get(OWNERS)
    with _guarded() as token:
        os.environ[OWNERS] = f"{before or ''}:{token}"
        try:
            yield
        except SystemExit as error:
            if os.getpid() != owner:
                os._exit(error.code if isinstance(error.code, int) else error.code is not None)
            raise
        finally:
            if os.getpid() != owner:
                os._exit(1)
            if before is None:
                del os.environ[OWNERS]
            else:
                os.environ[OWNERS] = before


@contextmanager
def owned_process(
    command: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    **options: Any,  # noqa: ANN401 - those of Popen
) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a command in a session of its own; when the block ends it is killed, and all that it has started.

    To let it end in order, wait for it inside the block, with a timeout; `terminate` asks it to.
    """
    environment = dict(os.environ if env is None else env)
    with _guarded() as token:
        environment[OWNERS] = f"{os.environ.get(OWNERS, '')}:{token}"
        process = subprocess.Popen(list(command), env=environment, start_new_session=True, **options)
        try:
            yield process
        finally:
            kill_session(process)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()
            with suppress(subprocess.TimeoutExpired):  # where the kernel holds it
                process.wait(END_TIMEOUT_S)


def kill_session(process: "subprocess.Popen[Any]") -> None:
    """Kill a process that was started in a session of its own, and those of its group, also where it has ended."""
    with suppress(ProcessLookupError, PermissionError):  # all of them have ended
        os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def _guarded() -> Iterator[str]:
    """Have a guard, which ends all that has its token; it has done so when the block ends."""
    token = uuid4().hex
    ours, guards = socket.socketpair()
    with ours, guards:
        words = [str(each) for each in (os.getpid(), os.getsid(0), os.fstat(ours.fileno()).st_ino, token)]
        with suppress(OSError):  # where no process can be started, none is left either
            if os.path.isdir("/proc/self/fd"):
                subprocess.run(
                    [sys.executable, "-I", "-S", __file__, *words],
                    check=False,
                    stdin=guards.fileno(),
                    env=self_ending_environment(),
                    start_new_session=True,
                )
        guards.close()
        owner = os.getpid()
        try:
            yield token
        finally:
            if os.getpid() == owner:
                with suppress(OSError):  # somebody has killed the guard
                    ours.settimeout(2 * END_TIMEOUT_S)
                    ours.send(b"end")
                    ours.recv(1)


def _guard(owner: int, session: int, inode: int, token: str) -> None:
    """What a guard does: it waits for its owner's end, or word, and kills all with its marks."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    life, owner_begun = [], _stat(owner)[_START]
    with suppress(OSError, AttributeError):  # of older systems, which are asked every second
        life = [os.pidfd_open(owner)]
    is_alive = os.getppid() == owner
    if os.fork():
        os._exit(0)  # so that it is no child of its owner, which may wait for all that it has, or kill them
    begun = int(_stat(os.getpid())[_START])
    while is_alive and _stat(owner)[_START] == owner_begun:
        if select.select([0, *life], [], [], 1.0)[0]:
            break
    own_session = str(session) if session == owner else None
    until = time.monotonic() + END_TIMEOUT_S
    while (left := _find_marked(owner, begun, own_session, f"socket:[{inode}]", token)) and time.monotonic() < until:
        for pid in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)


_PARENT, _SESSION, _START = 1, 3, 19


def _stat(pid: int) -> list[str]:
    """The fields of a process's state, from the third on; all are empty where it has ended."""
    with suppress(OSError), open(f"/proc/{pid}/stat") as file:
        if (fields := file.read().rpartition(")")[2].split())[0] not in "ZX":
            return fields
    return [""] * 50


def _find_marked(owner: int, begun: int, session: str | None, link: str, token: str) -> set[int]:
    marked: set[int] = set()
    children: dict[str, list[int]] = {}
    for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
        fields = _stat(pid)
        if pid in (owner, os.getpid()) or not fields[_START] or int(fields[_START]) < begun:
            continue
        with suppress(OSError):  # another user's, or it has ended
            with open(f"/proc/{pid}/environ", "rb") as file:
                variables = b"\0" + file.read() + b"\0"
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if f"\0{OWNERS}=\0".encode() in variables or _SELF_ENDING in file.read():
                    continue
            children.setdefault(fields[_PARENT], []).append(pid)
            if token.encode() in variables or fields[_SESSION] == session or _has_open(pid, link):
                marked.add(pid)
    waiting = [owner, *marked]
    while waiting:
        new = set(children.get(str(waiting.pop()), ())) - marked
        marked |= new
        waiting += new
    return marked


def _has_open(pid: int, link: str) -> bool:
    folder = f"/proc/{pid}/fd"
    for name in os.listdir(folder):
        with suppress(OSError):
            if os.readlink(f"{folder}/{name}") == link:
                return True
    return False


if __name__ == "__main__":
    _guard(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
else:
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
