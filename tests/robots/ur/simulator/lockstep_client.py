"""A client that moves a controller in lock-step, with nothing but sockets and wire formats."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from cycletime.robots.ur.simulator.launch import SimulatedController
from cycletime.robots.ur.types import Command
from cycletime.robots.ur.wire import rtde
from cycletime.robots.ur.wire.rtde import LOCKSTEP_INPUTS, Frame, FrameParser, FrameType, Recipe, Value, lockstep_values

NAMES = ("timestamp", "actual_q", "actual_qd", "target_q", "target_qd", "safety_mode", "robot_mode", "runtime_state")
_TIMEOUT_S = 60.0


class LockstepClient:
    """One that has done its handshake."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._parser = FrameParser()
        self._frames: list[Frame] = []
        self._ask(rtde.protocol_version_request(2), FrameType.PROTOCOL_VERSION)
        self._output = self._recipe(rtde.output_recipe_request(NAMES, 125.0), FrameType.OUTPUT_RECIPE, NAMES)
        self._input = self._recipe(rtde.input_recipe_request(LOCKSTEP_INPUTS), FrameType.INPUT_RECIPE, LOCKSTEP_INPUTS)
        self._ask(rtde.encode_frame(FrameType.START), FrameType.START)
        self._next(FrameType.DATA)

    def advance(self, to_tick: int, ticks: int, command: Command | None = None) -> list[dict[str, Value]]:
        """Grant so many ticks, up to one; what the controller tells of each."""
        self._socket.sendall(rtde.data_package(self._input, lockstep_values(to_tick, command)))
        return [self._output.unpack(self._next(FrameType.DATA).payload) for _ in range(ticks)]

    def _recipe(self, request: bytes, kind: FrameType, names: tuple[str, ...]) -> Recipe:
        return rtde.read_recipe_reply(self._ask(request, kind).payload, names)

    def _ask(self, request: bytes, kind: FrameType) -> Frame:
        self._socket.sendall(request)
        return self._next(kind)

    def _next(self, kind: FrameType) -> Frame:
        while True:
            while not self._frames:
                self._frames = self._parser.feed(self._socket.recv(1 << 16))
            frame = self._frames.pop(0)
            if frame.kind == kind:
                return frame


@contextmanager
def lockstep_client(controller: SimulatedController) -> Iterator[LockstepClient]:
    """A client of a simulated controller that runs."""
    with socket.create_connection((controller.address, controller.ports.rtde), timeout=_TIMEOUT_S) as connection:
        yield LockstepClient(connection)
