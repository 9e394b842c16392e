"""Which arm is moved, as typed: the one at a host, or a simulated one that is started for the purpose."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, cast

from tyro.conf import arg

from cycletime.cli.options import Text
from cycletime.cli.robot.address import STANDARD_PORTS, ControllerPorts, address_of
from cycletime.cli.robot.simulate import pace_of
from cycletime.errors import InputError, RunError, shown

if TYPE_CHECKING:
    from cycletime.robots.real_time_env import Where
    from cycletime.robots.ur.connection import Address
    from cycletime.robots.ur.types import RobotLink
    from cycletime.runs.worlds import RobotKind


class ChosenArm(NamedTuple):
    """An arm that may be moved."""

    kind: RobotKind
    """What it is."""
    make_link: Callable[[], RobotLink]
    """What leads to it; nothing is connected yet."""

    @property
    def where(self) -> Where:
        """Where results come from."""
        return "real robot" if self.kind == "real" else "simulated robot"


@dataclass(frozen=True, kw_only=True)
class ArmOptions:
    """The options of all commands that move an arm."""

    host: Annotated[Text, arg(metavar="HOST", help_behavior_hint="(or --simulate)")] = None
    """The controller's name or number. One that is not on this machine needs --i-am-at-the-robot."""
    i_am_at_the_robot: bool = False
    """Say that you stand beside the arm, with its emergency stop in your hand."""
    ports: ControllerPorts = STANDARD_PORTS
    """The controller's ports, where they are not a real one's."""
    link: Literal["standard", "ur_rtde"] = "standard"
    """What speaks with the controller: the standard library alone, or the package ur_rtde."""
    simulate: bool = False
    """Start a simulated controller, and move its arm."""
    profile: Annotated[Text, arg(metavar="cb3|e", help_behavior_hint="(default: cb3)")] = None
    """Which controller to simulate."""
    pace: Annotated[Text, arg(metavar="X|lockstep", help_behavior_hint="(default: 1)")] = None
    """How many times faster than real time a simulated controller is; in lock-step it waits for the agent."""

    def words(self) -> str:
        """These options, as they are typed."""
        words = ["--simulate"] if self.simulate else ["--host", str(self.host)]
        words += ["--i-am-at-the-robot"] if self.i_am_at_the_robot else []
        words += ["--ports", *self.ports] if self.ports != STANDARD_PORTS else []
        words += ["--link", self.link] if self.link != "standard" else []
        for name in ("profile", "pace"):
            if (value := getattr(self, name)) is not None:
                words += [f"--{name}", value]
        return shlex.join(words)

    @contextmanager
    def arm(self) -> Iterator[ChosenArm]:
        """The arm, for the time of a block.

        Raises:
            InputError: if it is not said which, or it may not be moved.
            RunError: if it is not there, or not ready.
        """
        if self.simulate == (self.host is not None):
            raise InputError("Give either --host with a controller's name or number, or --simulate.")
        pace = pace_of("1" if self.pace is None else self.pace)
        if self.host is not None:
            yield self._at_host(self.host, pace)
            return
        from cycletime.robots.ur.connection import Address
        from cycletime.robots.ur.simulator.launch import simulated

        if self.ports != STANDARD_PORTS:
            raise InputError("--ports is for a controller at --host: one of --simulate listens where there is room.")
        with simulated(self._profile(), pace) as robot:
            ports = robot.ports
            yield self._simulated(Address(robot.address, ports.rtde, ports.realtime, ports.dashboard), pace)

    def _at_host(self, host: str, pace: float | None) -> ChosenArm:
        from cycletime.robots.presence import host_to_move, is_loopback
        from cycletime.robots.ur.inspection import inspect, waits_for_its_client

        if self.profile is not None:
            raise InputError(f"--profile is {shown(self.profile)}: it is for --simulate, and --host is what it is.")
        address = address_of(host_to_move(host, at_the_robot=self.i_am_at_the_robot), self.ports)
        here = is_loopback(address.host)
        if self.pace is not None and not here:
            raise InputError(f"--pace is {shown(self.pace)}: an arm that is not simulated has its own.")
        if missing := inspect(address).missing:
            raise RunError(f"The arm at {host} is not ready: {' '.join(missing)}")
        if not here:
            return ChosenArm("real", self._driven(address, 1.0))
        if (waits := waits_for_its_client(address)) != (pace is None):
            told = "waits for its client, so give" if waits else "does not wait for its client, so leave out"
            raise InputError(f"The controller at {host} {told} --pace lockstep.")
        return self._simulated(address, pace)

    def _simulated(self, address: Address, pace: float | None) -> ChosenArm:
        from cycletime.robots.ur.lockstep_link import LockstepLink

        if pace is None:
            return ChosenArm("lockstep", lambda: LockstepLink(address))
        return ChosenArm("simulated", self._driven(address, pace))

    def _driven(self, address: Address, pace: float) -> Callable[[], RobotLink]:
        from cycletime.robots.ur.driver.link import DriverLink
        from cycletime.robots.ur.driver.settings import DriverSettings

        settings = DriverSettings(address, link=self.link, pace=pace)
        return lambda: DriverLink(settings)

    def _profile(self) -> Literal["cb3", "e"]:
        if self.profile not in (None, "cb3", "e"):
            raise InputError(f"--profile is {shown(self.profile)}: give cb3 or e.")
        return cast('Literal["cb3", "e"]', self.profile or "cb3")
