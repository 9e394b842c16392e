"""Which controller is simulated, and how: a CB3 of 8 ms, or an e-Series of 2 ms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from cycletime.robots.ur.types import Joints
from cycletime.robots.ur.wire.rtde import ControllerVersion
from cycletime.ur5 import UR5, UR5E, Geometry

ProfileName: TypeAlias = Literal["cb3", "e"]


@dataclass(frozen=True)
class ControllerProfile:
    version: ControllerVersion
    date: str
    period_s: float
    remote_control: bool
    """Whether it takes scripts only while it is in remote control."""
    geometry: Geometry
    packet_bytes: int
    """Of the real-time interface."""


PROFILES: dict[ProfileName, ControllerProfile] = {
    "cb3": ControllerProfile(ControllerVersion(3, 15, 8, 106339), "Oct 25 2022", 0.008, False, UR5, 1140),
    "e": ControllerProfile(ControllerVersion(5, 12, 5, 1101319), "Jul 06 2022", 0.002, True, UR5E, 1220),
}


@dataclass(frozen=True)
class TripLimits:
    """What the safety system stops for; by default what the arm itself can do."""

    speed: float = 3.3
    """Of a joint, rad/s."""
    acceleration: float = 50.0
    """That a program asks of a joint, rad/s^2."""
    angle: float = 6.2832
    """Of a joint to either side, rad."""
    floor_m: float | None = None
    """The height below which the tip must not come."""


@dataclass(frozen=True)
class SimulatorSettings:
    profile: ControllerProfile = PROFILES["cb3"]
    latency_ticks: int = 1
    """Ticks that a script line waits, after the one in which it arrives."""
    jitter_ticks: int = 0
    """Up to as many more, at random."""
    noise: bool = False
    seed: int = 0
    """Of noise and jitter."""
    limits: TripLimits = TripLimits()
    start_q: Joints = (1.58724391, -2.4, 1.5, -0.71790582, 1.63685572, 1.00910473)
    """Where the arm stands at first: the pose in which UR-Reacher-2 begins."""
