"""Faults on demand: what a test asks of the simulated controller over a port that no real one has.

One command per line, such as `protective stop` or `freeze 0.5` (docs/robot-simulator.md). Seconds are the controller's.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass

from cycletime.errors import InputError, did_you_mean, quote
from cycletime.robots.ur.simulator.controller import Controller, Session
from cycletime.robots.ur.simulator.rtde_session import InputOwners
from cycletime.robots.ur.types import SafetyMode
from cycletime.robots.ur.wire.dashboard import LineParser, encode_line

_INTERFACES = ("rtde", "realtime", "dashboard")


@dataclass
class StreamFaults:
    frozen_until_s: float = 0.0
    """The controller's time until which nothing is streamed."""
    delay_s: float = 0.0
    jitter_s: float = 0.0
    """Up to how much longer, at random."""


class FaultSession(Session):
    def __init__(
        self, controller: Controller, owners: InputOwners, faults: StreamFaults, drop: Callable[[tuple[str, ...]], None]
    ) -> None:
        self._controller = controller
        self._owners = owners
        self._faults, self._drop = faults, drop
        self._parser = LineParser()

    def receive(self, data: bytes) -> bytes:
        return b"".join(encode_line(self._reply(line.strip())) for line in self._parser.feed(data))

    def _reply(self, line: str) -> str:
        try:
            return self._do(line)
        except InputError as error:
            return f"refused: {error}"

    def _do(self, line: str) -> str:
        if line == "state":
            it = self._controller
            modes = {"robot_mode": it.safety.robot_mode, "safety_mode": it.safety.safety_mode}
            return json.dumps(asdict(it.state) | modes | {"tick": it.tick})
        plain, with_value = self._plain(), self._with_value()
        if line in plain:
            plain[line]()
            return "ok"
        for name, act in with_value.items():
            if f"{line} ".startswith(f"{name} "):
                act(_value(name, line))
                return "ok"
        known = [*plain, *with_value, "state"]
        raise InputError(f"There is no fault {quote(line)}: give one of {', '.join(known)}{did_you_mean(line, known)}")

    def _plain(self) -> dict[str, Callable[[], object]]:
        it, safety = self._controller, self._controller.safety
        return {
            "protective stop": lambda: it.stop(SafetyMode.PROTECTIVE_STOP, "a fault was asked for"),
            "emergency stop": lambda: it.stop(SafetyMode.ROBOT_EMERGENCY_STOP, "a fault was asked for"),
            "violation": lambda: it.stop(SafetyMode.VIOLATION, "a fault was asked for"),
            "release emergency stop": safety.release_emergency_stop,
            "remote control on": lambda: setattr(it, "in_remote_control", True),
            "remote control off": lambda: setattr(it, "in_remote_control", False),
            "refuse unlock on": lambda: setattr(safety, "refuses_unlock", True),
            "refuse unlock off": lambda: setattr(safety, "refuses_unlock", False),
            "drop clients": lambda: self._drop(_INTERFACES),
            "quit": lambda: setattr(self, "wants_to_leave", True),
        }

    def _with_value(self) -> dict[str, Callable[[str], object]]:
        it, faults = self._controller, self._faults
        return {
            "freeze": lambda text: setattr(faults, "frozen_until_s", it.time_s + _seconds(text)),
            "delay": lambda text: setattr(faults, "delay_s", _seconds(text)),
            "jitter": lambda text: setattr(faults, "jitter_s", _seconds(text)),
            "in use": lambda name: self._owners.claim((name,), self._owners),
            "free": lambda name: self._owners.give_back((name,)),
            "drop": lambda name: self._drop((_interface(name),)),
            "say": it.say,
        }


def _value(name: str, line: str) -> str:
    value = line.removeprefix(name).strip()
    if not value:
        raise InputError(f"The fault {quote(name)} needs a value after it, as in 'freeze 0.5' or 'drop rtde'.")
    return value


def _interface(name: str) -> str:
    if name not in _INTERFACES:
        raise InputError(f"There is no interface {quote(name)}: give one of {', '.join(_INTERFACES)}.")
    return name


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise InputError(f"{quote(text)} is no time in seconds such as 0.5.")
    return value
