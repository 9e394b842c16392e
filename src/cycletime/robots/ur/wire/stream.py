"""The real-time interface (port 30003): a packet of doubles in each control period, whose length tells the version.

The offsets of what is used are the same in every version; so only the length and a prefix are read.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from cycletime.robots.ur.types import WireError
from cycletime.robots.ur.wire.rtde import ControllerVersion

_LENGTH = struct.Struct(">i")
_SHORTEST, _LONGEST = 756, 65536
_HAS_MODES = 1044
"""The length of the first version, 3.0, that tells modes."""
_HAS_PROGRAM = 1060
_TIME, _TARGET, _ACTUAL, _ROBOT_MODE, _SAFETY_MODE, _SPEED_SCALING, _PROGRAM = 4, 12, 252, 756, 812, 940, 1052
_LENGTHS = {(3, 0): 1044, (3, 2): 1060, (3, 5): 1108, (3, 10): 1116, (3, 14): 1140, (5, 0): 1108, (5, 1): 1116}
_LENGTHS |= {(5, 4): 1140, (5, 10): 1220}


@dataclass(frozen=True)
class StreamPacket:
    """What is read from, or written to, one packet."""

    time_s: float
    target_q: tuple[float, ...]
    target_qd: tuple[float, ...]
    actual_q: tuple[float, ...]
    actual_qd: tuple[float, ...]
    robot_mode: int | None = None
    """None where the controller is too old to tell."""
    safety_mode: int | None = None
    speed_scaling: float | None = None
    program_state: int | None = None
    """The runtime state, from version 3.2 on."""


def packet_length(version: ControllerVersion) -> int:
    """How many bytes a packet has in a version of the controller's software."""
    return _LENGTHS[max(known for known in _LENGTHS if known <= version[:2])]


def encode_packet(packet: StreamPacket, length: int) -> bytes:
    """A packet of a length, with zeros in place of all that is not simulated."""
    data = bytearray(length)
    _LENGTH.pack_into(data, 0, length)
    struct.pack_into(">d", data, _TIME, packet.time_s)
    struct.pack_into(">12d", data, _TARGET, *packet.target_q, *packet.target_qd)
    struct.pack_into(">12d", data, _ACTUAL, *packet.actual_q, *packet.actual_qd)
    told = {_ROBOT_MODE: packet.robot_mode, _SAFETY_MODE: packet.safety_mode, _SPEED_SCALING: packet.speed_scaling}
    for offset, value in (told | {_PROGRAM: packet.program_state}).items():
        if value is not None and offset + 8 <= length:
            struct.pack_into(">d", data, offset, value)
    return bytes(data)


def decode_packet(data: bytes) -> StreamPacket:
    """What one packet of any version tells."""
    target, actual = struct.unpack_from(">12d", data, _TARGET), struct.unpack_from(">12d", data, _ACTUAL)
    modern = len(data) >= _HAS_MODES
    return StreamPacket(
        time_s=_double(data, _TIME),
        target_q=target[:6],
        target_qd=target[6:],
        actual_q=actual[:6],
        actual_qd=actual[6:],
        robot_mode=int(_double(data, _ROBOT_MODE)) if modern else None,
        safety_mode=int(_double(data, _SAFETY_MODE)) if modern else None,
        speed_scaling=_double(data, _SPEED_SCALING) if modern else None,
        program_state=int(_double(data, _PROGRAM)) if len(data) >= _HAS_PROGRAM else None,
    )


class PacketParser:
    """Cuts a byte stream into packets, of whatever length they say they have."""

    def __init__(self) -> None:
        """Begin with an empty buffer, as on a new connection."""
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[StreamPacket]:
        """All packets that are complete now."""
        self._buffer += data
        packets, start = [], 0
        while len(self._buffer) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, start)
            if not _SHORTEST <= length <= _LONGEST:
                raise WireError(f"A packet of the real-time interface says that it has {length} bytes.")
            if len(self._buffer) - start < length:
                break
            packets.append(decode_packet(bytes(self._buffer[start : start + length])))
            start += length
        del self._buffer[:start]
        return packets


def _double(data: bytes, offset: int) -> float:
    return float(struct.unpack_from(">d", data, offset)[0])
