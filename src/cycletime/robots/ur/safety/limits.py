"""Where an arm may be, and how fast."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cycletime.errors import InputError
from cycletime.robots.ur.types import JOINTS, Joints


@dataclass(frozen=True)
class ArmLimits:
    """What the supervisor keeps."""

    low: Joints
    """Least angles, rad."""
    high: Joints
    """Largest angles, rad."""
    box_low: tuple[float, ...]
    """The box for the tip, metres: its corner of least coordinates."""
    box_high: tuple[float, ...]
    """Its other corner."""
    speed: float = 1.0
    """The most of any joint that an agent may ask for, rad/s."""
    move_speed: float = 1.05
    """The most of the leading joint in moves, such as that of a reset, rad/s."""
    acceleration: float = 5.0
    """The most that a command may ask for, rad/s^2."""
    braking: float = 2.0
    """Deceleration that is counted on, rad/s^2."""
    stop: float = 3.0
    """Deceleration of a stop, rad/s^2: more than what is counted on."""
    reaction_s: float = 0.040
    """From a package of the controller until a command that answers it works."""
    joint_margin: float = 0.001
    """Kept from the bounds of joints, rad."""
    box_margin: float = 0.001
    """Kept from the faces of the box, metres."""

    def __post_init__(self) -> None:
        """Refuse limits that hold nothing back, or everything.

        Raises:
            InputError: if an interval is missing or empty, or a rate is not positive.
        """
        _ask_for_intervals("joints", self.low, self.high, JOINTS)
        _ask_for_intervals("box", self.box_low, self.box_high, 3)
        for name in ("speed", "move_speed", "acceleration", "braking", "stop"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"The limit {name!r} is {getattr(self, name)}: give a positive number.")
        for name in ("reaction_s", "joint_margin", "box_margin"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"The limit {name!r} is {getattr(self, name)}: give zero or a positive number.")
        if self.stop < self.braking:
            raise InputError(
                f"A stop at {self.stop} rad/s^2 is weaker than the {self.braking} that are counted on: give more."
            )


def _ask_for_intervals(what: str, low: tuple[float, ...], high: tuple[float, ...], count: int) -> None:
    if not len(low) == len(high) == count:
        raise InputError(f"The limits of the {what} are {len(low)} and {len(high)} numbers: give {count} of each.")
    for least, largest in zip(low, high, strict=True):
        if not least < largest:
            raise InputError(f"The {what} may be from {least} to {largest}: give a lower and a higher number.")
