"""The simulated controller on the network: moves bytes between sessions and sockets, and keeps the time.

One thread does all, so that what arrives between two ticks is done between them. Ticks are due on a grid of absolute
deadlines, at any pace; in lock-step they are due when a client has granted them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from random import Random
from selectors import EVENT_READ, EVENT_WRITE, SelectSelector
from socket import AF_INET, IPPROTO_TCP, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, TCP_NODELAY, socket
from typing import TextIO, TypeAlias

from cycletime.errors import InputError, quote
from cycletime.robots.ur.simulator.controller import Controller, Session
from cycletime.robots.ur.simulator.faults import FaultSession, StreamFaults
from cycletime.robots.ur.simulator.rtde_session import InputOwners, RtdeSession, register_number
from cycletime.robots.ur.simulator.text_sessions import DashboardSession, RealtimeSession
from cycletime.robots.ur.types import WireError
from cycletime.robots.ur.wire.rtde import LOCKSTEP_GRANT


@dataclass(eq=False)
class Client:
    interface: str
    socket: socket
    session: Session
    outgoing: bytearray = field(default_factory=bytearray)
    waits_to_send: bool = False
    _on_the_way: deque[tuple[float, bytes]] = field(default_factory=deque)

    def send_later(self, data: bytes, arrival_s: float) -> None:
        """Send when the controller's time has come, and not before what was sent before: TCP keeps the order."""
        last_s = self._on_the_way[-1][0] if self._on_the_way else arrival_s
        self._on_the_way.append((max(arrival_s, last_s), data))

    def let_arrive(self, time_s: float) -> None:
        while self._on_the_way and self._on_the_way[0][0] <= time_s:
            self.outgoing += self._on_the_way.popleft()[1]

    def flush(self) -> bool:
        """Give the socket what it takes; whether something is left."""
        try:
            sent = self.socket.send(self.outgoing) if self.outgoing else 0
        except BlockingIOError:
            sent = 0
        del self.outgoing[:sent]
        return bool(self.outgoing)


_MAX_CATCH_UP_S = 0.01
"""Lateness beyond this is not made up for, but time stood still: in a burst of ticks no client could send commands, and
lines would end and watchdogs bark for want of them."""


class FreeRunning:
    skips_packages = True

    def __init__(self, pace: float, now_s: Callable[[], float]) -> None:
        """With `pace` of the controller's seconds in a real one."""
        self._pace = pace
        self._now_s = now_s
        self._start_s, self._start_tick = now_s(), 0

    def due_in_s(self, controller: Controller) -> float:
        return max(0.0, self._due_s(controller, controller.tick + 1) - self._now_s())

    def ticks_due(self, controller: Controller) -> int:
        """All whose deadline is over; where that is long ago, one, and the grid begins anew."""
        now_s = self._now_s()
        late_s = now_s - self._due_s(controller, controller.tick + 1)
        if late_s < 0:
            return 0
        if late_s > _MAX_CATCH_UP_S:
            self._start_s, self._start_tick = now_s, controller.tick + 1
            return 1
        return 1 + math.floor(late_s * self._pace / controller.model.period_s)

    def _due_s(self, controller: Controller, tick: int) -> float:
        return self._start_s + (tick - self._start_tick) * controller.model.period_s / self._pace


class LockStep:
    skips_packages = False

    def due_in_s(self, controller: Controller) -> float | None:
        return 0.0 if self.ticks_due(controller) else None

    def ticks_due(self, controller: Controller) -> int:
        return max(0, int(register_number(controller, LOCKSTEP_GRANT)) - controller.tick)


Timing: TypeAlias = FreeRunning | LockStep


_BACKLOG_BYTES = 200_000
"""A client that leaves so much unread misses packages, as with a real controller."""
_MOST_CLIENTS = 200
"""More are turned away: select() takes files with numbers below 1024."""
_TICKS_AT_ONCE = 250
"""After which clients are listened to again, where many ticks are granted or late."""


@dataclass(frozen=True)
class Ports:
    """Where the interfaces listen; 0 is any free port."""

    rtde: int
    realtime: int
    dashboard: int
    admin: int


class Server:
    def __init__(self, controller: Controller, timing: Timing, address: str, ports: Ports) -> None:
        if not address.strip():  # the system would take it for all of this machine's interfaces
            raise InputError(f"--address is {quote(address)}: give an address of this machine, such as 127.0.0.1.")
        self._faults = StreamFaults()
        self._random = Random(controller.settings.seed)
        self._controller = controller
        self._timing = timing
        self._selector = SelectSelector()  # which waits more finely than in whole milliseconds
        self._clients: list[Client] = []
        self._finished = False
        owners = InputOwners()
        self._listeners: dict[str, socket] = {}
        sessions: dict[str, Callable[[], Session]] = {
            "rtde": lambda: RtdeSession(controller, owners),
            "realtime": lambda: RealtimeSession(controller),
            "dashboard": lambda: DashboardSession(controller),
            "admin": lambda: FaultSession(controller, owners, self._faults, self.drop),
        }
        for interface, session in sessions.items():
            host = _loopback(address) if interface == "admin" else address
            self._listen(interface, host, getattr(ports, interface), session)

    @property
    def ports(self) -> Ports:
        return Ports(**{name: self.listens_at(name)[1] for name in self._listeners})

    def listens_at(self, interface: str) -> tuple[str, int]:
        address, port = self._listeners[interface].getsockname()
        return address, port

    def serve(self, until_ends: TextIO | None = None) -> None:
        """Serve until a stream ends, where one is given: then the parent process is gone."""
        if until_ends is not None:
            self._selector.register(until_ends, EVENT_READ, lambda: setattr(self, "_finished", not until_ends.read(1)))
        while not self._finished:
            self.step()

    def step(self) -> None:
        for key, events in self._selector.select(self._timing.due_in_s(self._controller)):
            if not isinstance(client := key.data, Client):
                client()
                continue
            if events & EVENT_WRITE:
                self._flush(client)
            if events & EVENT_READ:
                self._read(client)
        ticks = min(self._timing.ticks_due(self._controller), _TICKS_AT_ONCE)
        for _ in range(ticks):
            self._tick()
        if ticks:
            for client in list(self._clients):
                self._flush(client)

    def close(self) -> None:
        for client in list(self._clients):
            self._remove(client)
        for listener in self._listeners.values():
            listener.close()
        self._selector.close()

    def drop(self, interfaces: tuple[str, ...]) -> None:
        for client in [each for each in self._clients if each.interface in interfaces]:
            self._remove(client)

    def _listen(self, interface: str, address: str, port: int, session: Callable[[], Session]) -> None:
        listener = self._listeners[interface] = socket(AF_INET, SOCK_STREAM)
        listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        try:
            listener.bind((address, port))
            listener.listen()
        except (OSError, OverflowError) as error:
            self.close()
            why = getattr(error, "strerror", None) or str(error)
            remedy = "give another port, or an address of this machine such as 127.0.0.2"
            raise InputError(f"A simulated controller cannot listen on {address}:{port}: {why}; {remedy}.") from None
        listener.setblocking(False)
        self._selector.register(listener, EVENT_READ, lambda: self._accept(interface, session))

    def _accept(self, interface: str, session: Callable[[], Session]) -> None:
        try:
            connection, _ = self._listeners[interface].accept()
        except OSError:
            return  # it has left again
        if len(self._clients) >= _MOST_CLIENTS:
            connection.close()
            return
        connection.setblocking(False)
        connection.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        client = Client(interface, connection, session())
        self._clients.append(client)
        self._selector.register(connection, EVENT_READ, client)
        self._send(client, client.session.greeting)

    def _read(self, client: Client) -> None:
        try:
            data = client.socket.recv(1 << 16)
            replies = client.session.receive(data)
        except BlockingIOError:
            return
        except (OSError, WireError):
            data, replies = b"", b""
        self._send(client, replies)
        if not data or client.session.wants_to_leave:
            self._remove(client)

    def _send(self, client: Client, data: bytes) -> None:
        client.outgoing += data
        self._flush(client)

    def _flush(self, client: Client) -> None:
        if client not in self._clients:
            return
        try:
            waits = client.flush()
        except OSError:
            self._remove(client)
            return
        if waits is not client.waits_to_send:
            client.waits_to_send = waits
            self._selector.modify(client.socket, EVENT_READ | (EVENT_WRITE if waits else 0), client)

    def _remove(self, client: Client) -> None:
        if client in self._clients:
            self._clients.remove(client)
            self._selector.unregister(client.socket)
            client.socket.close()
            client.session.close()

    def _tick(self) -> None:
        self._controller.advance()
        time_s = self._controller.time_s
        frozen = time_s < self._faults.frozen_until_s
        for client in self._clients:
            data = client.session.stream()
            full = self._timing.skips_packages and len(client.outgoing) > _BACKLOG_BYTES
            if data and not frozen and not full:
                client.send_later(data, time_s + self._faults.delay_s + self._random.uniform(0, self._faults.jitter_s))
            client.let_arrive(time_s)


def _loopback(address: str) -> str:
    """Where faults may be asked for: this machine alone, wherever the arm is."""
    try:
        return address if ip_address(address).is_loopback else "127.0.0.1"
    except ValueError:  # a name
        return "127.0.0.1"
