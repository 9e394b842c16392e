"""`cycletime robot check`: whether an arm can be driven, and what is missing at its teach pendant; nothing moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import arg

from cycletime.cli.robot.address import STANDARD_PORTS, ControllerPorts, address_of
from cycletime.errors import printable


@dataclass(frozen=True, kw_only=True)
class CheckRobot:
    """Ask a controller for its versions and modes, and say what is missing before its arm can be driven.

    Nothing moves. The exit status is 0 if the arm is ready. For example: cycletime robot check --host 192.168.1.10
    """

    host: Annotated[str, arg(metavar="HOST")]
    """The controller's name or number."""
    ports: ControllerPorts = STANDARD_PORTS
    """Its ports, where they are not a real controller's."""

    def run(self) -> int:
        """Ask, and print what was found."""
        from cycletime.robots.ur.inspection import inspect

        found = inspect(address_of(self.host, self.ports))
        for name, value in found.facts:
            print(printable(f"{name:<16}{value}"))
        for sentence in found.missing:
            print(printable(f"missing: {sentence}"))
        print("Not ready; nothing was moved." if found.missing else "Ready; nothing was moved.")
        return 1 if found.missing else 0
