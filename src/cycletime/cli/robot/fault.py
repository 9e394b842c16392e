"""`cycletime robot fault`: make a simulated controller stop, freeze or lose its connections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from cycletime.cli.options import Whole
from cycletime.errors import InputError, RunError, printable
from cycletime.robots.ur.wire.codes import LARGEST_PORT


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
        """Ask, and print the reply."""
        from cycletime.robots.ur.simulator.launch import ask_for_fault

        if not self.words:
            raise InputError("No fault is named: give one such as protective stop.")
        if not 0 < self.port <= LARGEST_PORT:
            raise InputError(f"--port is {self.port}: a port is a number from 1 to {LARGEST_PORT}.")
        try:
            print(printable(ask_for_fault(self.address, self.port, " ".join(self.words))))
        except OSError as error:
            raise RunError(
                f"No simulated controller answers at {self.address}:{self.port}: {error.strerror or error}."
            ) from None
        return 0
