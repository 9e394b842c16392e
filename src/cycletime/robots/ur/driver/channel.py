"""Shared memory between an agent and its driver: orders one way, reports the other, and a bell that the driver rings.

A mailbox has one writer. Its messages go to two places in turn, each with a number and a checksum, so that a reader who
meets a half-written one takes the one before; also where the writer was killed in the middle. The checksum makes this
independent of the order in which a processor's cores see each other's writes. Neither memory nor bell has a name in the
system: both are handed over as open files when the driver is started, and gone with the last process that has them.
"""

from __future__ import annotations

import mmap
import os
import select
import struct
import zlib
from dataclasses import dataclass, fields
from enum import IntEnum

from cycletime.robots.ur.safety import Override
from cycletime.robots.ur.types import (
    COMMAND_NUMBERS,
    JOINTS,
    ArmState,
    Command,
    RobotMode,
    RuntimeState,
    SafetyMode,
    pack_command,
    unpack_command,
)


class Phase(IntEnum):
    STARTING = 0
    DRIVING = 1
    HELD = 2
    """The controller has stopped the arm, and it is to be released."""
    SILENT = 3
    """The connection stands, but no state comes: a stop was sent to the arm."""
    RECONNECTING = 4
    ENDED = 5
    """The driver has stopped the arm and is gone, for the reason in its report."""


@dataclass(frozen=True)
class DriverReport:
    """The driver's report, with every package of the controller and when its phase changes."""

    phase: Phase
    received_s: float = 0.0
    """When the state came, by the driver's clock."""
    period_s: float = 0.0
    packages: int = 0
    missed: int = 0
    """Packages that the controller left out, or that were overtaken by newer ones."""
    sent: int = 0
    overridden: int = 0
    """Commands that the supervisor did not pass on as they came."""
    override: Override = Override.NONE
    """Why the newest was not; none if it was."""
    order: int = 0
    """The number of the order that was ruled on last."""
    protective_stops: int = 0
    connections: int = 0
    """Since the start: all but the last were lost."""
    state: ArmState | None = None
    text: str = ""
    """Why the phase is what it is, in a sentence; empty while the arm is driven."""


@dataclass(frozen=True)
class Order:
    number: int
    """Counted from 1; the same order may be left again, with a newer sign of life."""
    sent_s: float
    """When it was ordered, by the clock of both."""
    alive_s: float
    """When the agent last asked for a state or ordered something."""
    command: Command | None = None


_ORDER = struct.Struct(f"=Qddb{COMMAND_NUMBERS}d")
_STATE = struct.Struct(f"=d{4 * JOINTS}dd3i")
_REPORT = struct.Struct("=idd4QiQQQ?")
_REPORT_FIELDS = tuple(each.name for each in fields(DriverReport) if each.name not in ("state", "text"))
"""In the order of `_REPORT`, before whether there is a state."""


def encode_order(order: Order) -> bytes:
    kind, numbers = pack_command(order.command)
    return _ORDER.pack(order.number, order.sent_s, order.alive_s, kind, *numbers)


def decode_order(data: bytes) -> Order:
    number, sent_s, alive_s, kind, *numbers = _ORDER.unpack(data)
    return Order(number, sent_s, alive_s, unpack_command(kind, numbers))


def encode_report(report: DriverReport) -> bytes:
    state, packed = report.state, b""
    if state is not None:
        joints = (*state.q, *state.qd, *state.target_q, *state.target_qd)
        modes = (state.robot_mode, state.safety_mode, state.runtime_state)
        packed = _STATE.pack(state.time_s, *joints, state.speed_scaling, *modes)
    head = _REPORT.pack(*(getattr(report, name) for name in _REPORT_FIELDS), state is not None)
    return head + packed + report.text.encode()


def decode_report(data: bytes) -> DriverReport:
    *values, has_state = _REPORT.unpack_from(data)
    head = dict(zip(_REPORT_FIELDS, values, strict=True))
    head |= {"phase": Phase(head["phase"]), "override": Override(head["override"])}
    rest = data[_REPORT.size :]
    state = _decode_state(rest) if has_state else None
    return DriverReport(**head, state=state, text=rest[_STATE.size if has_state else 0 :].decode())


def _decode_state(data: bytes) -> ArmState:
    time_s, *joints, speed_scaling, robot, safety, runtime = _STATE.unpack_from(data)
    q, qd, target_q, target_qd = (tuple(joints[start : start + JOINTS]) for start in range(0, 4 * JOINTS, JOINTS))
    modes = RobotMode(robot), SafetyMode(safety), RuntimeState(runtime)
    return ArmState(time_s, q, qd, target_q, target_qd, *modes, speed_scaling)


_HEAD = struct.Struct("=QII")  # number, length, checksum
_TRIES = 100
"""A writer would have to write twice during each of so many reads: none does."""


class Mailbox:
    def __init__(self, memory: memoryview) -> None:
        """Use this memory, zeros at first, which the other side has as well."""
        half = len(memory) >> 1
        self._places = (memory[:half], memory[half : 2 * half])
        self._room = half - _HEAD.size
        newest = self.read()
        self._number = newest[0] if newest else 0

    def write(self, message: bytes) -> None:
        if len(message) > self._room:
            raise ValueError(f"A message of {len(message)} bytes does not fit into {self._room}.")
        self._number += 1
        place, number = self._places[self._number & 1], self._number
        place[_HEAD.size : _HEAD.size + len(message)] = message
        _HEAD.pack_into(place, 0, number, len(message), _checksum(number, message))

    def read(self) -> tuple[int, bytes] | None:
        """The newest message and its number, counted from 1; None before the first."""
        for _ in range(_TRIES):
            whole = [found for place in self._places if (found := _read_place(place)) is not None]
            if whole:
                return max(whole)
            if not any(any(place[: _HEAD.size]) for place in self._places):
                return None
        return None


def _read_place(place: memoryview) -> tuple[int, bytes] | None:
    number, length, checksum = _HEAD.unpack_from(place, 0)
    if not number or length > len(place) - _HEAD.size:
        return None
    message = bytes(place[_HEAD.size : _HEAD.size + length])
    return (number, message) if _checksum(number, message) == checksum else None


def _checksum(number: int, message: bytes) -> int:
    return zlib.crc32(message, number & 0xFFFFFFFF)


_MAILBOX_BYTES = 4096


class SharedMemory:
    def __init__(self, files: tuple[int, int] | None = None) -> None:
        """Make it, or open what a process was started with: the files of the memory and of the bell."""
        if files is None:
            memory, bell = os.memfd_create("cycletime-robot"), os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            os.ftruncate(memory, 2 * _MAILBOX_BYTES)
        else:
            memory, bell = files
        self.files = (memory, bell)
        self._map = mmap.mmap(memory, 2 * _MAILBOX_BYTES)
        view = memoryview(self._map)
        self._orders, self._reports = Mailbox(view[:_MAILBOX_BYTES]), Mailbox(view[_MAILBOX_BYTES:])

    def leave_order(self, order: Order) -> None:
        self._orders.write(encode_order(order))

    def order(self) -> Order | None:
        newest = self._orders.read()
        return decode_order(newest[1]) if newest else None

    def publish(self, report: DriverReport) -> None:
        self._reports.write(encode_report(report))
        os.eventfd_write(self.files[1], 1)

    def report(self) -> DriverReport | None:
        newest = self._reports.read()
        return decode_report(newest[1]) if newest else None

    def wait_for_bell(self, timeout_s: float) -> None:
        """Return when the bell rings, or has rung since the last time, or when the time is over."""
        bell = select.poll()
        bell.register(self.files[1], select.POLLIN)
        if bell.poll(1000 * timeout_s):
            os.eventfd_read(self.files[1])

    def close(self) -> None:
        """Give the files back; what is mapped goes with this object."""
        for file in self.files:
            os.close(file)
