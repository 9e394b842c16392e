"""RTDE recipes: which variables a data package carries, in which order, and as which types."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from cycletime.robots.ur.wire.errors import WireError

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


def names_in(text: bytes) -> tuple[str, ...]:
    """The names or types of a comma-joined list, whose last comma may be followed by none."""
    return tuple(name.strip() for name in text.decode("ascii", "replace").split(",") if name.strip())


@dataclass(frozen=True)
class Recipe:
    """The layout of one kind of data package."""

    id: int | None
    """Its number, the first byte of the package; None in protocol version 1, whose packages have no number."""
    names: tuple[str, ...]
    """The variables, in order."""
    types: tuple[str, ...]
    """The type of each, as the controller named it."""

    def refused(self, why: str) -> tuple[str, ...]:
        """The variables that have no type for a reason: `NOT_FOUND` or `IN_USE`."""
        return tuple(name for name, kind in zip(self.names, self.types, strict=True) if kind == why)

    def pack(self, values: Sequence[Value]) -> bytes:
        """The payload of a data package with these values, one for each name.

        Raises:
            WireError: if they do not fit the recipe's types.
        """
        flat: list[float | int] = [] if self.id is None else [self.id]
        for value in values:
            if isinstance(value, tuple):
                flat.extend(value)
            else:
                flat.append(value)
        try:
            return self._layout.pack(*flat)
        except struct.error as error:
            raise WireError(f"{len(values)} values do not fit the recipe {','.join(self.types)}: {error}.") from None

    def unpack(self, payload: bytes) -> dict[str, Value]:
        """The values in a data package's payload, by name.

        Raises:
            WireError: if the payload has another size or another recipe's number.
        """
        if len(payload) != self._layout.size:
            raise WireError(f"A data package has {len(payload)} bytes, and its recipe {self._layout.size}.")
        flat = self._layout.unpack(payload)
        if self.id is not None and flat[0] != self.id:
            raise WireError(f"A data package is of recipe {flat[0]}, and not of {self.id}.")
        values: dict[str, Value] = {}
        start = 0 if self.id is None else 1
        for name, length in zip(self.names, self._lengths, strict=True):
            values[name] = flat[start] if length == 1 else flat[start : start + length]
            start += length
        return values

    @cached_property
    def _layout(self) -> struct.Struct:
        known = [_FORMATS.get(kind) for kind in self.types]
        if None in known:
            wrong = self.types[known.index(None)]
            raise WireError(f"A recipe has the type {wrong!r}: known are {', '.join(_FORMATS)}.")
        return struct.Struct(">" + ("" if self.id is None else "B") + "".join(each for each in known if each))

    @cached_property
    def _lengths(self) -> tuple[int, ...]:
        return tuple(int(_FORMATS[kind][0]) if _FORMATS[kind][0].isdigit() else 1 for kind in self.types)
