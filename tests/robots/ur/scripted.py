"""Small servers on loopback that say what a test wants a controller to say, in the pieces that it wants."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import TypeAlias

from cycletime.robots.ur.rtde_client import Address
from cycletime.robots.ur.types import RobotMode, SafetyMode
from cycletime.robots.ur.wire import rtde as messages
from cycletime.robots.ur.wire.rtde import ControllerVersion, Frame, FrameParser, FrameType, Recipe, Value

Talk: TypeAlias = Callable[[socket.socket], object]
"""What is said to one client, until that ends."""
TYPES = {"timestamp": "DOUBLE", "speed_scaling": "DOUBLE", "safety_mode": "INT32", "robot_mode": "INT32"}
TYPES |= {"runtime_state": "UINT32"}
TYPES |= dict.fromkeys(("actual_q", "actual_qd", "target_q", "target_qd"), "VECTOR6D")


@contextmanager
def serving(*talks: Talk) -> Iterator[int]:
    """A port whose connections are answered by these talks, one after the other; each ends its connection."""
    connections: list[socket.socket] = []

    def serve() -> None:
        for talk in talks:
            with suppress(OSError):  # the client left, or the test is over
                connections.append(listener.accept()[0])
                talk(connections[-1])
                connections[-1].shutdown(socket.SHUT_RDWR)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            while thread.is_alive():  # it may be about to accept one more
                for each in (listener, *connections):
                    with suppress(OSError):
                        each.shutdown(socket.SHUT_RDWR)  # which wakes who waits for it
                thread.join(0.01)
            for each in connections:
                each.close()


def until_closed(connection: socket.socket) -> bytes:
    """All that a client sends until it leaves."""
    received = b""
    while data := connection.recv(4096):
        received += data
    return received


@dataclass
class ScriptedRtde:
    """An RTDE interface with the faults of a test."""

    packages: tuple[float, ...] = (1.0,)
    """The times of the packages that it sends after its start."""
    version: ControllerVersion = field(default_factory=lambda: ControllerVersion(3, 15, 8, 106339))
    protocols: tuple[int, ...] = (2,)
    missing: tuple[str, ...] = ()
    starts: bool = True
    chunk: int = 1 << 16
    """Bytes that are sent at a time."""
    talkative: bool = False
    """Whether a line of the log comes before every reply, and a stray package."""
    cut: int = 0
    """Bytes of the last package that are sent only when the client has sent something more."""
    stays: bool = True
    """Whether it waits for the client to leave."""
    frequencies_hz: list[float | None] = field(default_factory=list)
    """That clients have asked for."""

    def __call__(self, connection: socket.socket) -> None:
        """Talk to one client."""
        parser, state = FrameParser(), _Negotiated()
        while data := connection.recv(4096):
            for frame in parser.feed(data):
                reply = self._reply(frame, state)
                if frame.kind == FrameType.START:
                    stream = b"".join(self._package(state, time_s) for time_s in self.packages)
                    self._send(connection, reply + stream[: len(stream) - self.cut])
                    if not self.stays:
                        return
                    if self.cut:
                        connection.recv(1)
                        self._send(connection, stream[len(stream) - self.cut :])
                else:
                    self._send(connection, reply)

    def _send(self, connection: socket.socket, data: bytes) -> None:
        for start in range(0, len(data), self.chunk):
            connection.sendall(data[start : start + self.chunk])

    def _reply(self, frame: Frame, state: _Negotiated) -> bytes:
        before = b""
        if self.talkative:
            before = messages.text_message("unasked", "log", 3) + b"\x00\x05U\x63\x00"
        match frame.kind:
            case FrameType.PROTOCOL_VERSION:
                (asked,) = struct.unpack(">H", frame.payload)
                return before + messages.accepted_reply(FrameType.PROTOCOL_VERSION, accepted=asked in self.protocols)
            case FrameType.CONTROLLER_VERSION:
                return before + messages.controller_version_reply(self.version)
            case FrameType.OUTPUT_RECIPE:
                names, frequency_hz = messages.read_output_recipe_request(frame.payload)
                self.frequencies_hz.append(frequency_hz)
                types = tuple("NOT_FOUND" if name in self.missing else TYPES[name] for name in names)
                state.recipe = Recipe(7, names, types)
                return before + messages.recipe_reply(FrameType.OUTPUT_RECIPE, state.recipe)
            case _:
                return before + messages.accepted_reply(FrameType.START, accepted=self.starts)

    def _package(self, state: _Negotiated, time_s: float) -> bytes:
        values: dict[str, Value] = {
            "timestamp": time_s,
            "actual_q": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6),
            "actual_qd": (1.0,) * 6,
            "target_q": (2.0,) * 6,
            "target_qd": (3.0,) * 6,
            "safety_mode": SafetyMode.REDUCED,
            "robot_mode": RobotMode.RUNNING,
            "runtime_state": 2,
            "speed_scaling": 0.5,
        }
        return messages.data_package(state.recipe, [values[name] for name in state.recipe.names])


@dataclass
class _Negotiated:
    recipe: Recipe = field(default_factory=lambda: Recipe(0, (), ()))


@dataclass
class Realtime:
    """A real-time interface that streams some bytes, and keeps what it is sent."""

    stream: bytes = b""
    chunk: int = 1 << 16
    received: bytes = b""
    lines: Condition = field(default_factory=Condition)

    def __call__(self, connection: socket.socket) -> None:
        """Talk to one client."""
        for start in range(0, len(self.stream), self.chunk):
            connection.sendall(self.stream[start : start + self.chunk])
        while data := connection.recv(4096):
            with self.lines:
                self.received += data
                self.lines.notify_all()

    def wait_for(self, count: int) -> list[bytes]:
        """So many lines, once they have come."""
        with self.lines:
            assert self.lines.wait_for(lambda: self.received.count(b"\n") >= count, 60.0)
            return self.received.splitlines()


@contextmanager
def scripted(*rtde: Talk, realtime: Realtime | None = None, connections: int = 1) -> Iterator[Address]:
    """A controller with these talks on its RTDE interface, one for each connection, and no dashboard."""
    with serving(*rtde) as rtde_port, serving(*[realtime or Realtime()] * connections) as realtime_port:
        yield Address("127.0.0.1", rtde_port, realtime_port, 9)
