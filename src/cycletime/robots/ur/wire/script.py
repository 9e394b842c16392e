"""URScript as far as it is used: one-line programs that move joints.

Each line that arrives is a program of its own, which replaces the running one; so is each `def ... end` block, which no
simulated controller runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from cycletime.errors import InputError, quote
from cycletime.robots.ur.types import JOINTS, Command, Joints, MoveJ, SpeedJ, StopJ, WireError

_MAX_LINE_BYTES = 1 << 16

Argument: TypeAlias = float | tuple[float, ...] | bool | str


@dataclass(frozen=True)
class Call:
    """A one-line program: one call of a script function."""

    name: str
    positional: tuple[Argument, ...] = ()
    named: dict[str, Argument] = field(default_factory=dict)

    def joints_and(self, joints: str, **defaults: float) -> tuple[Joints, list[float]]:
        """The first argument, a list of six numbers, and the numbers after it."""
        given = self._by_name((joints, *defaults))
        values = given.pop(joints, None)
        if not isinstance(values, tuple) or len(values) != JOINTS:
            raise WireError(f"{self.name}() needs {JOINTS} joint values.")
        return values, self._as_numbers(defaults | given)

    def numbers(self, **defaults: float) -> list[float]:
        """The arguments of a function that takes numbers alone."""
        return self._as_numbers(defaults | self._by_name(tuple(defaults)))

    def _by_name(self, parameters: tuple[str, ...]) -> dict[str, Argument]:
        if len(self.positional) > len(parameters):
            raise WireError(f"{self.name}() takes {len(parameters)} arguments, and was given {len(self.positional)}.")
        given = dict(zip(parameters, self.positional, strict=False))
        if unknown := sorted(set(self.named) - set(parameters)):
            raise WireError(f"{self.name}() has no parameter {unknown[0]!r}.")
        if twice := sorted(set(self.named) & set(given)):
            raise WireError(f"{self.name}() was given {twice[0]!r} twice.")
        return given | self.named

    def _as_numbers(self, given: Mapping[str, Argument]) -> list[float]:
        for name, value in given.items():
            if not isinstance(value, float):
                raise WireError(f"{self.name}() was given {name}={value!r}, which is no number.")
        return [value for value in given.values() if isinstance(value, float)]


def script_line(command: Command) -> str:
    """The one-line program that a command is, without the line's end."""
    match command:
        case SpeedJ(qd, acceleration, time_s):
            ends = f", {_number(time_s)}" if time_s > 0 else ""
            return f"speedj({_joints(qd)}, {_number(acceleration)}{ends})"
        case MoveJ(q, acceleration, speed, time_s):
            pace = f"a={_number(acceleration)}, v={_number(speed)}, t={_number(time_s)}"
            return f"movej({_joints(q)}, {pace})"
        case StopJ(deceleration):
            return f"stopj(a={_number(deceleration)})"


def command_of(call: Call) -> Command:
    """The command that a one-line program is."""
    match call.name:
        case "speedj":
            joints, (a, t) = call.joints_and("qd", a=1.4, t=0.0)
            return SpeedJ(joints, a, t)
        case "movej":  # a line by itself has no corner for the radius r
            joints, (a, v, t, _) = call.joints_and("q", a=1.4, v=1.05, t=0.0, r=0.0)
            return MoveJ(joints, a, v, t)
        case "stopj":
            return StopJ(call.numbers(a=2.0)[0])
    raise WireError(f"{call.name}() is not simulated: speedj, movej and stopj are.")


def _joints(values: Joints) -> str:
    if len(values) != JOINTS:
        raise InputError(f"A command has {len(values)} joint values: an arm has {JOINTS}.")
    return f"[{', '.join(map(_number, values))}]"


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise InputError(f"A command has the value {value}: all must be finite.")
    return repr(float(value))


_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\((.*)\)\s*", re.DOTALL)
_ARGUMENT = re.compile(
    r"""\s*(?:(?P<key>[A-Za-z_]\w*)\s*=\s*)?
    (?:p?\[(?P<list>[^\[\]]*)\] | (?P<text>"[^"]*") | (?P<word>[^\s,\[\]"=]+))\s*(?:,|$)""",
    re.VERBOSE,
)


def parse_call(line: str) -> Call:
    """The call that a line is."""
    whole = _CALL.fullmatch(line)
    if whole is None:
        raise WireError(f"The line {quote(line)} is no call of one function.")
    name, rest = whole[1], whole[2]
    positional: list[Argument] = []
    named: dict[str, Argument] = {}
    start = 0
    while rest[start:].strip():
        found = _ARGUMENT.match(rest, start)
        if found is None or (named and not found["key"]):
            raise WireError(f"The arguments of {quote(line)} cannot be read.")
        value = _argument(found, line)
        if found["key"]:
            named[found["key"]] = value
        else:
            positional.append(value)
        start = found.end()
    return Call(name, tuple(positional), named)


def _argument(found: re.Match[str], line: str) -> Argument:
    if found["text"] is not None:
        return found["text"][1:-1]
    if found["word"] in ("True", "False"):
        return found["word"] == "True"
    try:
        if found["list"] is not None:
            return tuple(float(part) for part in found["list"].split(",")) if found["list"].strip() else ()
        return float(found["word"])
    except ValueError:
        raise WireError(f"The line {quote(line)} has an argument that is no number.") from None


_QUOTED = re.compile(r'"[^"\n]*"')
_HEAD = re.compile(r"\s*(?:def|sec)\s+\w+\s*\(")
_OPENS = re.compile(r"\s*(?:def|sec|thread|while|if|for)\b.*:\s*$")
_ENDS = re.compile(r"\s*end\s*$")


class ScriptParser:
    """Cuts a byte stream into one-line programs and blocks, however TCP has torn or merged them."""

    def __init__(self) -> None:
        self._rest = b""
        self._depth = 0

    def feed(self, data: bytes) -> list[str]:
        """All lines that are complete now, of a block its first; empty lines and comments are left out."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _MAX_LINE_BYTES:
            raise WireError(f"A line has not ended after {_MAX_LINE_BYTES} bytes.")
        found = (self._taken(line.decode("utf-8", "replace").strip()) for line in lines)
        return [each for each in found if each]

    def _taken(self, line: str) -> str:
        bare = _QUOTED.sub('""', line).split("#")[0]
        inside = self._depth > 0
        if inside or _HEAD.match(bare):
            self._depth = max(0, self._depth + bool(_OPENS.match(bare)) - bool(_ENDS.match(bare)))
        return line if bare.strip() and not inside else ""
