"""Memory that two processes share, in which each always finds the other's newest whole message, and neither waits.

A box has one writer. Its messages go to two places in turn, each with a number and a checksum, so that a reader who
meets a half-written one takes the one before; also where the writer was killed in the middle. The checksum makes this
independent of the order in which a processor's cores see each other's writes.
"""

from __future__ import annotations

import struct
import zlib

_HEAD = struct.Struct("=QII")  # number, length, checksum
_TRIES = 100
"""A writer would have to write twice during each of so many reads: none does."""


class Mailbox:
    """The newest message from one process to others."""

    def __init__(self, memory: memoryview) -> None:
        """Use this memory, zeros at first, which the other side has as well."""
        half = len(memory) >> 1
        self._places = (memory[:half], memory[half : 2 * half])
        self._room = half - _HEAD.size
        newest = self.read()
        self._number = newest[0] if newest else 0

    def write(self, message: bytes) -> None:
        """Leave a message; the one before stays whole until this one is.

        Raises:
            ValueError: if it does not fit.
        """
        if len(message) > self._room:
            raise ValueError(f"A message of {len(message)} bytes does not fit into {self._room}.")
        self._number += 1
        place, number = self._places[self._number & 1], self._number
        place[_HEAD.size : _HEAD.size + len(message)] = message
        _HEAD.pack_into(place, 0, number, len(message), _checksum(number, message))

    def read(self) -> tuple[int, bytes] | None:
        """The newest message and its number, counted from 1; None before the first."""
        for _ in range(_TRIES):
            whole = [found for place in self._places if (found := _whole(place)) is not None]
            if whole:
                return max(whole)
            if not any(any(place[: _HEAD.size]) for place in self._places):
                return None
        return None


def _whole(place: memoryview) -> tuple[int, bytes] | None:
    number, length, checksum = _HEAD.unpack_from(place, 0)
    if not number or length > len(place) - _HEAD.size:
        return None
    message = bytes(place[_HEAD.size : _HEAD.size + length])
    return (number, message) if _checksum(number, message) == checksum else None


def _checksum(number: int, message: bytes) -> int:
    return zlib.crc32(message, number & 0xFFFFFFFF)
