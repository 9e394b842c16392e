"""Permission to move an arm: on this machine always, elsewhere only for an operator who says to stand beside it.

A host is resolved once, here, and what is connected to later is the number that was looked at: a name that answers
differently the next time leads nowhere else.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv6Address, ip_address

from cycletime.errors import InputError, quote


def resolve_addresses(host: str) -> Sequence[str]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def check_operator(
    host: str, *, at_the_robot: bool, resolve: Callable[[str], Sequence[str]] = resolve_addresses
) -> str:
    """The address to connect to, if an arm may be moved there: on this machine, or with an operator beside it."""
    try:
        numbers = resolve(host)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "it is no name"
        raise InputError(f"{quote(host)} is no host: {why}; give a controller's name or number.") from None
    if not at_the_robot and not all(map(is_loopback, numbers)):
        elsewhere = next(number for number in numbers if not is_loopback(number))
        told = quote(host) if host == elsewhere else f"{quote(host)} ({elsewhere})"
        raise InputError(
            f"--host {told} is not this machine, so that an arm may move there: read the checklist in "
            "docs/robot-checklist.md, stand beside the arm with its emergency stop in your hand, and give "
            "--i-am-at-the-robot."
        )
    return numbers[0]


def is_loopback(number: str) -> bool:
    """Whether a number is this machine's own, which no other can have."""
    address = ip_address(number.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback
