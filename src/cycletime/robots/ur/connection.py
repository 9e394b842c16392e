"""TCP to one port of a controller: bytes in whatever pieces they come, and failures as one sentence."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass

from cycletime.errors import InputError
from cycletime.robots.ur.types import LinkError
from cycletime.robots.ur.wire.codes import DASHBOARD_PORT, LARGEST_PORT, REALTIME_PORT, RTDE_PORT

_READ = 1 << 16


@dataclass(frozen=True)
class Address:
    """Where a controller listens."""

    host: str
    """Its name or number."""
    rtde: int = RTDE_PORT
    """States, and registers."""
    realtime: int = REALTIME_PORT
    """Script lines, and states of old controllers."""
    dashboard: int = DASHBOARD_PORT
    """Questions and releases, as text."""

    def __post_init__(self) -> None:
        """Refuse what is no address.

        Raises:
            InputError: if the host is empty, or a port is none.
        """
        if not self.host.strip():
            raise InputError(f"{self.host!r} is no host: give a controller's name or number, such as 192.168.1.10.")
        for port in (self.rtde, self.realtime, self.dashboard):
            if not 0 < port <= LARGEST_PORT:
                raise InputError(f"{port} is no port: give one from 1 to {LARGEST_PORT}.")


class Connection:
    """One TCP connection."""

    def __init__(self, host: str, port: int, what: str, timeout_s: float) -> None:
        """Connect.

        Raises:
            LinkError: if nobody answers there.
        """
        self._timeout_s = timeout_s
        self.where = f"{what} of the controller at {host}:{port}"
        """In words."""
        try:
            self._socket = socket.create_connection((host, port), timeout_s)
        except OSError as error:
            raise LinkError(f"The {self.where} does not answer: {error.strerror or error}.") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes) -> None:
        """Send all of it.

        Raises:
            LinkError: if the connection is lost, or the controller takes nothing any more.
        """
        try:
            self._socket.settimeout(self._timeout_s)
            self._socket.sendall(data)
        except OSError as error:
            raise LinkError(f"The {self.where} was lost: {error}.") from None

    def read(self, timeout_s: float) -> bytes:
        """What has come, or comes within a time; nothing if nothing does.

        Raises:
            LinkError: if the connection is lost.
        """
        try:
            self._socket.settimeout(max(0.0, timeout_s))
            data = self._socket.recv(_READ)
        except (TimeoutError, BlockingIOError):
            return b""
        except OSError as error:
            raise LinkError(f"The {self.where} was lost: {error}.") from None
        if not data:
            raise LinkError(f"The {self.where} has closed the connection.")
        return data

    def drain(self) -> None:
        """Throw away what has come, so that the controller's buffers for it do not fill.

        Raises:
            LinkError: if the connection is lost.
        """
        while len(self.read(0.0)) == _READ:
            pass

    def close(self) -> None:
        """End it."""
        self._socket.close()


class Countdown:
    """What is left of a time."""

    def __init__(self, time_s: float) -> None:
        """Begin now."""
        self._until_s = time.monotonic() + time_s

    def left_s(self) -> float:
        """Seconds, none when it is over."""
        return max(0.0, self._until_s - time.monotonic())
