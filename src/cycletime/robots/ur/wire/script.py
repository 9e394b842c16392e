"""URScript as far as it is used: one-line programs that move joints.

Each line that arrives is a program of its own, which replaces the running one; so is each `def ... end` block, which no
simulated controller runs.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable

from cycletime.errors import InputError, quote
from cycletime.robots.ur.types import JOINTS, Command, Joints, MoveJ, SpeedJ, StopJ, WireError
from cycletime.robots.ur.wire.dashboard import LineParser

_MAX_CALL_CHARACTERS = 1000
"""More than a line has that moves joints, and too few to nest deeply."""


def script_line(command: Command) -> str:
    match command:
        case SpeedJ(qd, acceleration, time_s):
            ends = f", {_number(time_s)}" if time_s > 0 else ""
            return f"speedj({_joints(qd)}, {_number(acceleration)}{ends})"
        case MoveJ(q, acceleration, speed, time_s):
            pace = f"a={_number(acceleration)}, v={_number(speed)}, t={_number(time_s)}"
            return f"movej({_joints(q)}, {pace})"
        case StopJ(deceleration):
            return f"stopj(a={_number(deceleration)})"


def _joints(values: Joints) -> str:
    if len(values) != JOINTS:
        raise InputError(f"A command has {len(values)} joint values: an arm has {JOINTS}.")
    return f"[{', '.join(map(_number, values))}]"


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise InputError(f"A command has the value {value}: all must be finite.")
    return repr(float(value))


def speedj(qd: object, a: object = 1.4, t: object = 0.0) -> SpeedJ:
    return SpeedJ(_read_joints(qd), *map(_read_number, (a, t)))


def movej(q: object, a: object = 1.4, v: object = 1.05, t: object = 0.0, r: object = 0.0) -> MoveJ:
    _read_number(r)  # of a corner, which a line by itself does not have
    return MoveJ(_read_joints(q), *map(_read_number, (a, v, t)))


def stopj(a: object = 2.0) -> StopJ:
    return StopJ(_read_number(a))


_FUNCTIONS: dict[str, Callable[..., Command]] = {"speedj": speedj, "movej": movej, "stopj": stopj}


def command_of(line: str) -> Command:
    """The command that a one-line program is: a call, which Python would write in the same way."""
    try:
        call = ast.parse(line.strip(), mode="eval").body if len(line) <= _MAX_CALL_CHARACTERS else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError("no call")
        positional = [ast.literal_eval(each) for each in call.args]
        named = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise WireError(f"The line {quote(line)} is no call of one function with numbers.") from None
    if call.func.id not in _FUNCTIONS:
        raise WireError(f"{call.func.id}() is not simulated: {', '.join(_FUNCTIONS)} are.")
    try:
        return _FUNCTIONS[call.func.id](*positional, **named)
    except TypeError as error:
        raise WireError(f"{error}.") from None


def _read_joints(values: object) -> Joints:
    if not isinstance(values, list) or len(values) != JOINTS:
        raise WireError(f"{quote(values)} is no list of {JOINTS} joint values.")
    return tuple(map(_read_number, values))


def _read_number(value: object) -> float:
    if type(value) not in (int, float) or not math.isfinite(number := float(f"{value}")):
        raise WireError(f"{quote(value)} is no number.")
    return number


_QUOTED = re.compile(r'"[^"\n]*"')
_HEAD = re.compile(r"\s*(?:def|sec)\s+\w+\s*\(")
_OPENS = re.compile(r"\s*(?:def|sec|thread|while|if|for)\b.*:\s*$")
_ENDS = re.compile(r"\s*end\s*$")


class ScriptParser:
    """Cuts a byte stream into one-line programs and blocks, however TCP has torn or merged them."""

    def __init__(self) -> None:
        self._lines = LineParser()
        self._depth = 0

    def feed(self, data: bytes) -> list[str]:
        """All lines that are complete now, of a block its first; empty lines and comments are left out."""
        taken = []
        for line in self._lines.feed(data):
            bare = _QUOTED.sub('""', line.strip()).split("#")[0]
            inside = self._depth > 0
            if inside or _HEAD.match(bare):
                self._depth = max(0, self._depth + bool(_OPENS.match(bare)) - bool(_ENDS.match(bare)))
            if bare.strip() and not inside:
                taken.append(line.strip())
        return taken
