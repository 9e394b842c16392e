"""What a driver is started with, as text that fits a command line."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from math import pi
from typing import Any, Literal, TypeAlias, get_args

from cycletime.errors import InputError
from cycletime.robots.clock import WallClock
from cycletime.robots.ur import reacher
from cycletime.robots.ur.connection import Address
from cycletime.robots.ur.driver.driver import DriverTimeouts
from cycletime.robots.ur.link import StandardLink
from cycletime.robots.ur.safety.limits import ArmLimits
from cycletime.robots.ur.safety.stops import StopRules
from cycletime.robots.ur.types import RobotLink
from cycletime.robots.ur.ur_rtde_link import UrRtdeLink

LinkName: TypeAlias = Literal["standard", "ur_rtde"]
"""The standard library alone, or the package ur_rtde."""

REACHER_LIMITS = ArmLimits(
    low=(-2 * pi, *reacher.JOINTS_LOW, -2 * pi, -2 * pi, -2 * pi),
    high=(2 * pi, *reacher.JOINTS_HIGH, 2 * pi, 2 * pi, 2 * pi),
    box_low=reacher.BOX_LOW,
    box_high=reacher.BOX_HIGH,
    speed=reacher.SPEED_MAX,
    joint_margin=reacher.JOINT_MARGIN,
    box_margin=reacher.BOX_MARGIN_M,
)
"""Those of UR-Reacher-2, in the frame of `reacher.tip`."""


@dataclass(frozen=True)
class DriverSettings:
    """Which arm a driver drives, by which rules."""

    address: Address
    """Where its controller is."""
    limits: ArmLimits = REACHER_LIMITS
    """What the supervisor keeps."""
    stops: StopRules = field(default_factory=StopRules)
    """How protective stops are met."""
    timeouts: DriverTimeouts = field(default_factory=DriverTimeouts)
    """How long what may last."""
    link: LinkName = "standard"
    """What speaks with the controller."""
    pace: float = 1.0
    """Seconds of a simulated controller in a real one."""

    def __post_init__(self) -> None:
        """Refuse what no driver could use.

        Raises:
            InputError: if there is no such link, or the pace is no positive number.
        """
        if self.link not in get_args(LinkName):
            raise InputError(f"{self.link!r} is no link: give one of {', '.join(get_args(LinkName))}.")
        WallClock(self.pace)

    def make_link(self) -> RobotLink:
        """What speaks with the controller, not connected yet.

        Raises:
            NotInstalledError: if its package is missing.
        """
        return UrRtdeLink(self.address) if self.link == "ur_rtde" else StandardLink(self.address)

    def as_text(self) -> str:
        """All of it, as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> DriverSettings:
        """What `as_text` wrote."""
        parts = json.loads(text)
        limits: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in parts["limits"].items()
        }
        return cls(
            Address(**parts["address"]),
            ArmLimits(**limits),
            StopRules(**parts["stops"]),
            DriverTimeouts(**parts["timeouts"]),
            parts["link"],
            parts["pace"],
        )
