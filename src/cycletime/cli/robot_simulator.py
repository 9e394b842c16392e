"""`cycletime robot simulate` and `robot fault`: a simulated controller that speaks the language of real ones."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from tyro.conf import Positional, arg

from cycletime.cli.options import NameList, Whole, name_list
from cycletime.errors import InputError, RunError, printable, quote
from cycletime.robots.ur.rtde_client import DASHBOARD_PORT, LARGEST_PORT, REALTIME_PORT, RTDE_PORT

if TYPE_CHECKING:
    from cycletime.robots.ur.rtde_client import Address

STANDARD_PORTS = NameList(map(str, (RTDE_PORT, REALTIME_PORT, DASHBOARD_PORT)))

ControllerPorts: TypeAlias = Annotated[
    NameList,
    name_list("RTDE REALTIME DASHBOARD", 3),
    arg(help_behavior_hint=f"(default: {' '.join(STANDARD_PORTS)})"),
]


def parse_address(host: str, ports: NameList) -> Address:
    from cycletime.robots.ur.rtde_client import Address

    return Address(host, *_parse_ports(ports, lowest=1))


def _parse_ports(words: NameList, lowest: int) -> list[int]:
    for word in words:
        if not word.isdecimal() or int(word) > LARGEST_PORT:
            raise InputError(f"--ports has {quote(word)}: a port is a number from {lowest} to {LARGEST_PORT}.")
    return list(map(int, words))


_STANDARD_SIMULATOR_PORTS = NameList((*STANDARD_PORTS, "30020"))


@dataclass(frozen=True, kw_only=True)
class SimulateRobot:
    """Simulate the controller of a UR5 until Ctrl-C: RTDE, the real-time interface, the dashboard, and faults.

    For example: cycletime robot simulate --address 127.0.0.2 --pace 20
    """

    address: str = "127.0.0.1"
    """Where to listen; several run side by side on 127.0.0.2, 127.0.0.3 and so on."""
    profile: Literal["cb3", "e"] = "cb3"
    """A CB3 controller, with 125 ticks a second, or one of the e-Series, with 500."""
    pace: Annotated[str, arg(metavar="X|lockstep")] = "1"
    """How many times faster than real time; in lock-step, time passes as a client grants it."""
    ports: Annotated[
        NameList,
        name_list("RTDE REALTIME DASHBOARD ADMIN", 4),
        arg(help_behavior_hint=f"(default: {' '.join(_STANDARD_SIMULATOR_PORTS)})"),
    ] = _STANDARD_SIMULATOR_PORTS
    """Ports, by default a real controller's; 0 is any that is free. The last, for faults, is on loopback only."""

    def run(self) -> int:
        from cycletime.robots.ur.simulator.launch import open_server, serve
        from cycletime.robots.ur.simulator.profile import PROFILES, SimulatorSettings
        from cycletime.robots.ur.simulator.server import Ports

        ports, pace = Ports(*_parse_ports(self.ports, lowest=0)), parse_pace(self.pace)
        server = open_server(SimulatorSettings(PROFILES[self.profile]), pace, self.address, ports, print_line)
        where = ", ".join(f"{name} {port}" for name, port in asdict(server.ports).items())
        print_line(f"A simulated {self.profile} controller listens on {self.address}: {where}. Ctrl-C ends it.")
        try:
            serve(server, pace)
        except KeyboardInterrupt:
            print_line("The simulated controller has ended.")
        finally:
            server.close()
        return 0


def parse_pace(text: str) -> float | None:
    """How many of a controller's seconds pass in a real one; None is lock-step."""
    if text == "lockstep":
        return None
    try:
        pace = float(text)
    except ValueError:
        pace = math.nan
    if not 0 < pace < math.inf:
        raise InputError(f"--pace is {quote(text)}: give a number such as 1 or 20, or lockstep.")
    return pace


def print_line(text: str) -> None:
    """Print at once, since what happens is watched as it happens."""
    print(printable(text), flush=True)


@dataclass(frozen=True, kw_only=True)
class RobotFault:
    """Ask a simulated controller for a fault.

    For example: cycletime robot fault protective stop
    """

    words: Annotated[Positional[tuple[str, ...]], arg(metavar="FAULT", help_behavior_hint="(required)")]
    """protective stop, emergency stop, freeze 0.5, drop rtde, state, ..."""
    address: str = "127.0.0.1"
    """Where the simulated controller listens."""
    port: Whole = 30020
    """Its port for faults, the last of --ports."""

    def run(self) -> int:
        from cycletime.robots.ur.simulator.launch import request_fault

        if not self.words:
            raise InputError("No fault is named: give one such as protective stop.")
        if not 0 < self.port <= LARGEST_PORT:
            raise InputError(f"--port is {self.port}: a port is a number from 1 to {LARGEST_PORT}.")
        try:
            print(printable(request_fault(self.address, self.port, " ".join(self.words))))
        except OSError as error:
            raise RunError(
                f"No simulated controller answers at {self.address}:{self.port}: {error.strerror or error}."
            ) from None
        return 0
