"""RTDE requests and replies: what is in the payload of each type of frame, for both versions of the protocol.

Functions named `..._request` and `..._reply` make frames; `read_...` take a payload apart.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cycletime.robots.ur.wire.errors import WireError
from cycletime.robots.ur.wire.frames import FrameType, encode_frame
from cycletime.robots.ur.wire.recipes import Recipe, Value, names_in

LONGEST_NAME_LIST = 2048
"""Bytes of names that a controller reads in one request."""


class ControllerVersion(NamedTuple):
    """The version of a controller's software, such as 3.15.8.106339."""

    major: int
    minor: int
    bugfix: int
    build: int

    def __str__(self) -> str:
        """As the dashboard prints it."""
        return ".".join(map(str, self))


@dataclass(frozen=True)
class TextMessage:
    """A line of the controller's log, which may arrive between any two frames."""

    message: str
    source: str
    level: int
    """0 exception, 1 error, 2 warning, 3 information."""


def protocol_version_request(version: int) -> bytes:
    """Ask for a version of the protocol: 2, or 1 from old controllers."""
    return encode_frame(FrameType.PROTOCOL_VERSION, struct.pack(">H", version))


def read_protocol_version_request(payload: bytes) -> int:
    """The version that a client asks for."""
    return int(_fields(">H", payload, "version request")[0])


def controller_version_request() -> bytes:
    """Ask for the version of the controller's software."""
    return encode_frame(FrameType.CONTROLLER_VERSION)


def controller_version_reply(version: ControllerVersion) -> bytes:
    """Tell the version of the controller's software."""
    return encode_frame(FrameType.CONTROLLER_VERSION, struct.pack(">4I", *version))


def read_controller_version(payload: bytes) -> ControllerVersion:
    """The version of the controller's software."""
    return ControllerVersion(*_fields(">4I", payload, "controller version"))


def accepted_reply(kind: FrameType, *, accepted: bool) -> bytes:
    """The reply to a protocol version, a start or a pause."""
    return encode_frame(kind, bytes([accepted]))


def read_accepted(payload: bytes) -> bool:
    """Whether the controller accepted."""
    return bool(_fields(">B", payload, "reply")[0])


def output_recipe_request(names: Sequence[str], frequency_hz: float, version: int = 2) -> bytes:
    """Ask for data packages with these variables; version 1 of the protocol knows no frequency."""
    frequency = struct.pack(">d", frequency_hz) if version > 1 else b""
    return encode_frame(FrameType.OUTPUT_RECIPE, frequency + ",".join(names).encode("ascii"))


def read_output_recipe_request(payload: bytes, version: int = 2) -> tuple[tuple[str, ...], float | None]:
    """The variables that a client asks for, and how often in Hz, where it says so."""
    if version == 1:
        return names_in(payload), None
    return names_in(payload[8:]), float(_fields(">d", payload[:8], "output recipe")[0])


def input_recipe_request(names: Sequence[str]) -> bytes:
    """Ask to write these variables."""
    return encode_frame(FrameType.INPUT_RECIPE, ",".join(names).encode("ascii"))


def read_input_recipe_request(payload: bytes) -> tuple[str, ...]:
    """The variables that a client asks to write."""
    return names_in(payload)


def recipe_reply(kind: FrameType, recipe: Recipe) -> bytes:
    """The reply to either kind of recipe: its number, where it has one, and the types."""
    number = b"" if recipe.id is None else bytes([recipe.id])
    return encode_frame(kind, number + ",".join(recipe.types).encode("ascii"))


def read_recipe_reply(payload: bytes, names: Sequence[str], *, numbered: bool = True) -> Recipe:
    """The recipe that a controller made of a request; output recipes of protocol version 1 have no number.

    Raises:
        WireError: if there is not one type for each name.
    """
    number, text = (payload[0] if payload else 0, payload[1:]) if numbered else (None, payload)
    types = names_in(text)
    if len(types) != len(names):
        raise WireError(f"The controller gave {len(types)} types for {len(names)} variables.")
    return Recipe(number, tuple(names), types)


def start_request() -> bytes:
    """Ask for the data packages to begin."""
    return encode_frame(FrameType.START)


def pause_request() -> bytes:
    """Ask for the data packages to pause, after which recipes may change."""
    return encode_frame(FrameType.PAUSE)


def text_message(text: TextMessage, version: int = 2) -> bytes:
    """A line of the log; version 1 of the protocol has a level and a message alone."""
    message, source = text.message.encode()[:255], text.source.encode()[:255]
    if version == 1:
        return encode_frame(FrameType.TEXT, bytes([text.level]) + message)
    parts = bytes([len(message)]) + message + bytes([len(source)]) + source + bytes([text.level])
    return encode_frame(FrameType.TEXT, parts)


def read_text_message(payload: bytes, version: int = 2) -> TextMessage:
    """The line of the log in a text frame.

    Raises:
        WireError: if it is shorter than it says.
    """
    if version == 1 and payload:
        return TextMessage(payload[1:].decode(errors="replace"), "", payload[0])
    try:
        end = 1 + payload[0]
        after = end + 1 + payload[end]
        message, source, level = payload[1:end], payload[end + 1 : after], payload[after]
    except IndexError:
        raise WireError(f"A text message of {len(payload)} bytes is shorter than it says.") from None
    return TextMessage(message.decode(errors="replace"), source.decode(errors="replace"), level)


def data_package(recipe: Recipe, values: Sequence[Value]) -> bytes:
    """A data package, of either direction."""
    return encode_frame(FrameType.DATA, recipe.pack(values))


def _fields(layout: str, payload: bytes, what: str) -> tuple[int, ...]:
    try:
        return struct.unpack(layout, payload)
    except struct.error:
        raise WireError(
            f"A {what} has {len(payload)} bytes of payload, and should have {struct.calcsize(layout)}."
        ) from None
