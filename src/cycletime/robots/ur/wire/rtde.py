"""RTDE (port 30004): frames, recipes, requests and replies of version 2 of the protocol, and lock-step.

Functions named `..._request` and `..._reply` make frames; `read_...` take a payload apart. In lock-step one package
carries a command and how far a simulated controller may advance: it stands until such a package arrives, takes the
command as if a script line had arrived, advances tick by tick to the grant, and sends one data package per tick. No
real controller reads these registers.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple, TypeAlias

from cycletime.robots.ur.types import COMMAND_NUMBERS, Command, WireError, pack_command

_HEADER = struct.Struct(">HB")
_MAX_FRAME_BYTES = 0xFFFF


class FrameType(IntEnum):
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
    size = _HEADER.size + len(payload)
    if size > _MAX_FRAME_BYTES:
        raise WireError(f"An RTDE frame of {size} bytes is too long: at most {_MAX_FRAME_BYTES} fit.")
    return _HEADER.pack(size, kind) + payload


class FrameParser:
    """Cuts a byte stream into frames, however TCP has torn or merged them."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
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


Value: TypeAlias = float | int | bool | tuple[float, ...] | tuple[int, ...]
"""One variable: a number, or a tuple of three or six."""

NOT_FOUND, IN_USE = "NOT_FOUND", "IN_USE"
"""What stands in place of a type for a variable that the controller does not have, or that another client writes."""

_FORMATS = {
    "BOOL": "?",
    "UINT8": "B",
    "UINT32": "I",
    "UINT64": "Q",
    "INT32": "i",
    "DOUBLE": "d",
    "VECTOR3D": "3d",
    "VECTOR6D": "6d",
    "VECTOR6INT32": "6i",
    "VECTOR6UINT32": "6I",
}


def split_names(text: bytes) -> tuple[str, ...]:
    """The names or types of a comma-joined list, whose last comma may be followed by none."""
    return tuple(name.strip() for name in text.decode("ascii", "replace").split(",") if name.strip())


@dataclass(frozen=True)
class Recipe:
    id: int
    """Its number, the first byte of the package."""
    names: tuple[str, ...]
    types: tuple[str, ...]

    def refused(self, why: str) -> tuple[str, ...]:
        """The variables that have no type for a reason: `NOT_FOUND` or `IN_USE`."""
        return tuple(name for name, kind in zip(self.names, self.types, strict=True) if kind == why)

    def pack(self, values: Sequence[Value]) -> bytes:
        numbers = chain.from_iterable(value if isinstance(value, tuple) else (value,) for value in values)
        try:
            return self._layout.pack(self.id, *numbers)
        except struct.error as error:
            raise WireError(f"{len(values)} values do not fit the recipe {','.join(self.types)}: {error}.") from None

    def unpack(self, payload: bytes) -> dict[str, Value]:
        if len(payload) != self._layout.size:
            raise WireError(f"A data package has {len(payload)} bytes, and its recipe {self._layout.size}.")
        recipe, *flat = self._layout.unpack(payload)
        if recipe != self.id:
            raise WireError(f"A data package is of recipe {recipe}, and not of {self.id}.")
        lengths, numbers = zip(self.names, self._lengths, strict=True), iter(flat)
        return {name: next(numbers) if length == 1 else tuple(islice(numbers, length)) for name, length in lengths}

    @cached_property
    def _layout(self) -> struct.Struct:
        if unknown := [kind for kind in self.types if kind not in _FORMATS]:
            raise WireError(f"A recipe has the type {unknown[0]!r}: known are {', '.join(_FORMATS)}.")
        return struct.Struct(">B" + "".join(_FORMATS[kind] for kind in self.types))

    @cached_property
    def _lengths(self) -> tuple[int, ...]:
        return tuple(int(_FORMATS[kind][0]) if _FORMATS[kind][0].isdigit() else 1 for kind in self.types)


MAX_NAME_LIST_BYTES = 2048
"""Bytes of names that a controller reads in one request."""


class ControllerVersion(NamedTuple):
    """The version of a controller's software, such as 3.15.8.106339."""

    major: int
    minor: int
    bugfix: int
    build: int

    def __str__(self) -> str:
        return ".".join(map(str, self))


PROTOCOL_VERSION = 2


def protocol_version_request(version: int = PROTOCOL_VERSION) -> bytes:
    return encode_frame(FrameType.PROTOCOL_VERSION, struct.pack(">H", version))


def read_protocol_version_request(payload: bytes) -> int:
    return int(_fields(">H", payload, "version request")[0])


def controller_version_reply(version: ControllerVersion) -> bytes:
    return encode_frame(FrameType.CONTROLLER_VERSION, struct.pack(">4I", *version))


def read_controller_version(payload: bytes) -> ControllerVersion:
    return ControllerVersion(*_fields(">4I", payload, "controller version"))


def accepted_reply(kind: FrameType, *, accepted: bool) -> bytes:
    """The reply to a protocol version, a start or a pause."""
    return encode_frame(kind, bytes([accepted]))


def read_accepted(payload: bytes) -> bool:
    return bool(_fields(">B", payload, "reply")[0])


def output_recipe_request(names: Sequence[str], frequency_hz: float) -> bytes:
    return encode_frame(FrameType.OUTPUT_RECIPE, struct.pack(">d", frequency_hz) + ",".join(names).encode("ascii"))


def read_output_recipe_request(payload: bytes) -> tuple[tuple[str, ...], float]:
    """The variables that a client asks for, and how often in Hz."""
    return split_names(payload[8:]), float(_fields(">d", payload[:8], "output recipe")[0])


def input_recipe_request(names: Sequence[str]) -> bytes:
    return encode_frame(FrameType.INPUT_RECIPE, ",".join(names).encode("ascii"))


def recipe_reply(kind: FrameType, recipe: Recipe) -> bytes:
    """The reply to either kind of recipe: its number, and the types."""
    return encode_frame(kind, bytes([recipe.id]) + ",".join(recipe.types).encode("ascii"))


def read_recipe_reply(payload: bytes, names: Sequence[str]) -> Recipe:
    types = split_names(payload[1:])
    if not payload or len(types) != len(names):
        raise WireError(f"The controller gave {len(types)} types for {len(names)} variables.")
    return Recipe(payload[0], tuple(names), types)


def text_message(message: str, source: str, level: int) -> bytes:
    """A line of the controller's log, which may arrive between any two frames."""
    texts = (text.encode()[:255] for text in (message, source))
    return encode_frame(FrameType.TEXT, b"".join(bytes([len(text)]) + text for text in texts) + bytes([level]))


def data_package(recipe: Recipe, values: Sequence[Value]) -> bytes:
    return encode_frame(FrameType.DATA, recipe.pack(values))


def _fields(layout: str, payload: bytes, what: str) -> tuple[int, ...]:
    try:
        return struct.unpack(layout, payload)
    except struct.error:
        raise WireError(
            f"A {what} has {len(payload)} bytes of payload, and should have {struct.calcsize(layout)}."
        ) from None


LOCKSTEP_COMMAND = "input_int_register_46"
"""Which command the package carries; 0 is none."""
LOCKSTEP_GRANT = "input_int_register_47"
"""The number of the last tick that the controller may do; ticks are counted from the controller's start."""
LOCKSTEP_VALUES = tuple(f"input_double_register_{number}" for number in range(24, 24 + COMMAND_NUMBERS))
LOCKSTEP_INPUTS = (LOCKSTEP_COMMAND, *LOCKSTEP_VALUES, LOCKSTEP_GRANT)


def lockstep_values(grant: int, command: Command | None = None) -> tuple[float | int, ...]:
    kind, numbers = pack_command(command)
    return (kind, *numbers, grant)
