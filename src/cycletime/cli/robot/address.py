"""Where a controller is, as typed: its host, and its three ports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

from tyro.conf import arg
from tyro.constructors import PrimitiveConstructorSpec

from cycletime.cli.options import Names
from cycletime.errors import InputError, shown
from cycletime.robots.ur.wire.codes import DASHBOARD_PORT, LARGEST_PORT, REALTIME_PORT, RTDE_PORT

if TYPE_CHECKING:
    from cycletime.robots.ur.connection import Address

STANDARD_PORTS = Names(map(str, (RTDE_PORT, REALTIME_PORT, DASHBOARD_PORT)))

ControllerPorts: TypeAlias = Annotated[
    Names,
    PrimitiveConstructorSpec(3, "RTDE REALTIME DASHBOARD", Names, lambda x: True, list),
    arg(help_behavior_hint=f"(default: {' '.join(STANDARD_PORTS)})"),
]


def address_of(host: str, ports: Names) -> Address:
    """The address that was typed.

    Raises:
        InputError: if it is none.
    """
    from cycletime.robots.ur.connection import Address

    for word in ports:
        if not word.isdecimal():
            raise InputError(f"--ports has {shown(word)}: a port is a number from 1 to {LARGEST_PORT}.")
    return Address(host, *map(int, ports))
