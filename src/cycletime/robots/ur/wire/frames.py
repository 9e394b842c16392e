"""RTDE frames: a 16-bit size, a type, a payload, all big-endian; and how to find them in what TCP delivers."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from cycletime.robots.ur.wire.errors import WireError

_HEADER = struct.Struct(">HB")
_LARGEST = 0xFFFF


class FrameType(IntEnum):
    """The types of RTDE frames; each is an ASCII letter."""

    PROTOCOL_VERSION = ord("V")
    CONTROLLER_VERSION = ord("v")
    OUTPUT_RECIPE = ord("O")
    INPUT_RECIPE = ord("I")
    START = ord("S")
    PAUSE = ord("P")
    DATA = ord("U")
    TEXT = ord("M")


class Frame(NamedTuple):
    """One RTDE frame; `kind` is a `FrameType`, or another number where a newer peer sends something unknown."""

    kind: int
    payload: bytes


def encode_frame(kind: FrameType, payload: bytes = b"") -> bytes:
    """The bytes of one frame.

    Raises:
        WireError: if the payload is too long for the 16-bit size.
    """
    size = _HEADER.size + len(payload)
    if size > _LARGEST:
        raise WireError(f"An RTDE frame of {size} bytes is too long: at most {_LARGEST} fit.")
    return _HEADER.pack(size, kind) + payload


class FrameParser:
    """Cuts a byte stream into frames, however TCP has torn or merged them."""

    def __init__(self) -> None:
        """Begin with an empty buffer, as on a new connection."""
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """All frames that are complete now.

        Raises:
            WireError: if a frame's size is less than its header, after which nothing can be found any more.
        """
        self._buffer += data
        frames, start = [], 0
        while len(self._buffer) - start >= _HEADER.size:
            size, kind = _HEADER.unpack_from(self._buffer, start)
            if size < _HEADER.size:
                raise WireError(f"An RTDE frame says that it has {size} bytes: at least {_HEADER.size} are its header.")
            if len(self._buffer) - start < size:
                break
            frames.append(Frame(kind, bytes(self._buffer[start + _HEADER.size : start + size])))
            start += size
        del self._buffer[:start]
        return frames
