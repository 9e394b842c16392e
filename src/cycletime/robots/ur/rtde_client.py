"""TCP connections to a controller, and the client that negotiates RTDE and receives the newest state."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cycletime.errors import InputError
from cycletime.robots.ur.types import ArmState, LinkError, RobotMode, RuntimeState, SafetyMode
from cycletime.robots.ur.wire import rtde

DASHBOARD_PORT, REALTIME_PORT, RTDE_PORT = 29999, 30003, 30004
LARGEST_PORT = 65535
_READ_BYTES = 1 << 16


@dataclass(frozen=True)
class Address:
    host: str
    rtde: int = RTDE_PORT
    realtime: int = REALTIME_PORT
    dashboard: int = DASHBOARD_PORT

    def __post_init__(self) -> None:
        if not self.host.strip():
            raise InputError(f"{self.host!r} is no host: give a controller's name or number, such as 192.168.1.10.")
        for port in (self.rtde, self.realtime, self.dashboard):
            if not 0 < port <= LARGEST_PORT:
                raise InputError(f"{port} is no port: give one from 1 to {LARGEST_PORT}.")


class Connection:
    def __init__(self, host: str, port: int, what: str, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self.where = f"{what} of the controller at {host}:{port}"
        try:
            self._socket = socket.create_connection((host, port), timeout_s)
        except OSError as error:
            raise LinkError(f"The {self.where} does not answer: {error.strerror or error}.") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes) -> None:
        try:
            self._socket.settimeout(self._timeout_s)
            self._socket.sendall(data)
        except OSError as error:
            raise LinkError(f"The {self.where} was lost: {error}.") from None

    def read(self, timeout_s: float) -> bytes:
        """What has come, or comes within a time; nothing if nothing does."""
        try:
            self._socket.settimeout(max(0.0, timeout_s))
            data = self._socket.recv(_READ_BYTES)
        except (TimeoutError, BlockingIOError):
            return b""
        except OSError as error:
            raise LinkError(f"The {self.where} was lost: {error}.") from None
        if not data:
            raise LinkError(f"The {self.where} has closed the connection.")
        return data

    def drain(self) -> None:
        """Throw away what has come, so that the controller's buffers for it do not fill."""
        while len(self.read(0.0)) == _READ_BYTES:
            pass

    def close(self) -> None:
        self._socket.close()


class Countdown:
    def __init__(self, time_s: float) -> None:
        self._until_s = time.monotonic() + time_s

    def left_s(self) -> float:
        return max(0.0, self._until_s - time.monotonic())


_FIELDS = {"timestamp": "time_s", "actual_q": "q", "actual_qd": "qd"}
"""Of a state, where a variable has another name."""
_MODES = {"safety_mode": SafetyMode, "robot_mode": RobotMode, "runtime_state": RuntimeState}
_OUTPUTS = (*_FIELDS, "target_q", "target_qd", *_MODES, "speed_scaling")
_MAX_RATE_HZ = {"CB": 125.0, "e-Series": 500.0}


class RtdeClient:
    def __init__(self, connection: Connection, timeout_s: float, inputs: tuple[str, ...] = ()) -> None:
        """Negotiate and start; `inputs` are what will be written, if anything."""
        self._connection, self._timeout_s = connection, timeout_s
        self._parser = rtde.FrameParser()
        self._waiting: list[rtde.Frame] = []
        if not rtde.read_accepted(self._ask(rtde.protocol_version_request())):
            raise LinkError(
                f"The controller does not speak version {rtde.PROTOCOL_VERSION} of RTDE: update its software."
            )
        version = rtde.read_controller_version(self._ask(rtde.encode_frame(rtde.FrameType.CONTROLLER_VERSION)))
        frequency_hz = _MAX_RATE_HZ["e-Series" if version.major >= 5 else "CB"]
        self.version, self.period_s = str(version), 1 / frequency_hz
        reply = self._ask(rtde.output_recipe_request(_OUTPUTS, frequency_hz))
        self._recipe = self._agreed(reply, _OUTPUTS, "does not tell {}: it needs 3.4 or later.")
        self._inputs = rtde.Recipe(0, (), ())
        if inputs:
            reply = self._ask(rtde.input_recipe_request(inputs))
            self._inputs = self._agreed(reply, inputs, "has no {}.")
        if not rtde.read_accepted(self._ask(rtde.encode_frame(rtde.FrameType.START))):
            raise LinkError(f"The controller (version {version}) refuses to send states by RTDE.")

    def newest(self, timeout_s: float) -> ArmState | None:
        frames, self._waiting = self._waiting or self._parser.feed(self._connection.read(timeout_s)), []
        recipe = bytes([self._recipe.id])  # what else comes are texts of the log
        ours = [frame for frame in frames if frame.kind == rtde.FrameType.DATA and frame.payload[:1] == recipe]
        return _arm_state(self._recipe.unpack(ours[-1].payload)) if ours else None

    def write(self, values: Sequence[rtde.Value]) -> None:
        self._connection.send(rtde.data_package(self._inputs, values))

    def close(self) -> None:
        self._connection.close()

    def _agreed(self, reply: bytes, names: tuple[str, ...], lacks: str) -> rtde.Recipe:
        """The recipe of these variables; `lacks` tells of those that there are not."""
        recipe = rtde.read_recipe_reply(reply, names)
        if in_use := recipe.refused(rtde.IN_USE):
            raise LinkError(f"Another client of the controller writes {', '.join(in_use)}: end that one first.")
        if missing := recipe.refused(rtde.NOT_FOUND):
            raise LinkError(f"The controller (version {self.version}) {lacks.format(', '.join(missing))}")
        return recipe

    def _ask(self, request: bytes) -> bytes:
        """The payload of the reply; texts of the controller's log, and states that still come, may lie between."""
        (asked,) = rtde.FrameParser().feed(request)
        self._connection.send(request)
        countdown = Countdown(self._timeout_s)
        while countdown.left_s():
            frames = self._parser.feed(self._connection.read(countdown.left_s()))
            for place, frame in enumerate(frames):
                if frame.kind == asked.kind:  # as every reply is
                    self._waiting = frames[place + 1 :]
                    return frame.payload
        request_name = f"the request {rtde.FrameType(asked.kind).name} within {self._timeout_s:g} s"
        raise LinkError(
            f"The {self._connection.where} does not reply to {request_name}: look whether that is its port."
        )


def _arm_state(values: Mapping[str, Any]) -> ArmState:
    modes = {name: kind(values[name]) for name, kind in _MODES.items()}
    return ArmState(**{_FIELDS.get(name, name): value for name, value in {**values, **modes}.items()})
