"""One client of the simulated controller: its session, its socket, and what is on the way to it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from socket import socket
from typing import Protocol


class Session(Protocol):
    """What the controller says to one client."""

    greeting: bytes
    """What is sent first."""
    wants_to_leave: bool
    """Whether the client has said so."""

    def receive(self, data: bytes) -> bytes:
        """Take what the client sends; the replies.

        Raises:
            WireError: if the connection should end.
        """

    def stream(self) -> bytes:
        """What is sent at the end of a tick."""

    def close(self) -> None:
        """The client is gone."""


@dataclass(eq=False)
class Client:
    """A connection, with what is still to be sent."""

    interface: str
    """Which of the controller's interfaces it uses."""
    socket: socket
    """Non-blocking."""
    session: Session
    """What it is told."""
    outgoing: bytearray = field(default_factory=bytearray)
    """What the socket has not taken yet."""
    waits_to_send: bool = False
    """Whether the socket is watched for room."""
    _on_the_way: deque[tuple[float, bytes]] = field(default_factory=deque)

    def send_later(self, data: bytes, arrival_s: float) -> None:
        """Send when the controller's time has come, and not before what was sent before: TCP keeps the order."""
        last_s = self._on_the_way[-1][0] if self._on_the_way else arrival_s
        self._on_the_way.append((max(arrival_s, last_s), data))

    def let_arrive(self, time_s: float) -> None:
        """What is due by now goes to the socket next."""
        while self._on_the_way and self._on_the_way[0][0] <= time_s:
            self.outgoing += self._on_the_way.popleft()[1]

    def flush(self) -> bool:
        """Give the socket what it takes; whether something is left.

        Raises:
            OSError: if the connection is lost.
        """
        try:
            sent = self.socket.send(self.outgoing) if self.outgoing else 0
        except BlockingIOError:
            sent = 0
        del self.outgoing[:sent]
        return bool(self.outgoing)
