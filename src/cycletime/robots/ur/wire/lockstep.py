"""Lock-step: one RTDE package carries a command and how far a simulated controller may advance.

A controller in lock-step stands until such a package arrives; it then takes the command, as if a script line had
arrived, advances tick by tick to the grant, and sends one data package for each tick. No real controller reads these
registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from cycletime.robots.ur.types import JOINTS, Command, MoveJ, ServoJ, SpeedJ, StopJ, numbers_of
from cycletime.robots.ur.wire.errors import WireError

COMMAND = "input_int_register_46"
"""Which command the package carries; 0 is none."""
GRANT = "input_int_register_47"
"""The number of the last tick that the controller may do; ticks are counted from the controller's start."""
VALUES = tuple(f"input_double_register_{number}" for number in range(24, 34))
"""The command's own numbers: six for the joints, where it has them, and then its others."""
INPUTS = (COMMAND, *VALUES, GRANT)
"""The input recipe of lock-step."""


_NO_COMMAND = 0
_KINDS: tuple[type[Command], ...] = (SpeedJ, MoveJ, StopJ, ServoJ)
"""Numbered from 1; the values of a package are the fields of its command, one after the other."""


def lockstep_values(grant: int, command: Command | None = None) -> tuple[float | int, ...]:
    """The values of a package, in the order of `INPUTS`."""
    if command is None:
        return (_NO_COMMAND, *(0.0,) * len(VALUES), grant)
    numbers = numbers_of(command)
    return (1 + _KINDS.index(type(command)), *numbers, *(0.0,) * (len(VALUES) - len(numbers)), grant)


def lockstep_command(kind: int, values: Sequence[float]) -> Command | None:
    """The command that a package carries, if any.

    Raises:
        WireError: if no command has this number.
    """
    if kind == _NO_COMMAND:
        return None
    if not 0 < kind <= len(_KINDS):
        raise WireError(f"{COMMAND} is {kind}: the commands of lock-step are numbered from 1 to {len(_KINDS)}.")
    command = _KINDS[kind - 1]
    if command is StopJ:
        return StopJ(values[0])
    return command(tuple(values[:JOINTS]), *values[JOINTS : JOINTS + len(command.__slots__) - 1])  # type: ignore[arg-type]
