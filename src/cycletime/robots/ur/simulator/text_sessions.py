"""The real-time interface and the dashboard, as one client each meets them.

The real-time interface (port 30003) takes script lines, and streams a packet of doubles in each control period.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from cycletime.robots.ur.simulator.controller import Controller, Session
from cycletime.robots.ur.types import ArmState
from cycletime.robots.ur.wire.dashboard import GREETING, UNLOCK, LineParser, encode_line
from cycletime.robots.ur.wire.script import ScriptParser

_TIME, _TARGET, _ACTUAL, _ROBOT_MODE, _SAFETY_MODE, _SPEED_SCALING, _PROGRAM = 4, 12, 252, 756, 812, 940, 1052


def encode_packet(state: ArmState, length: int) -> bytes:
    """A packet of the real-time interface, with zeros in place of all that is not simulated."""
    data = bytearray(length)
    struct.pack_into(">i", data, 0, length)
    struct.pack_into(">d", data, _TIME, state.time_s)
    struct.pack_into(">12d", data, _TARGET, *state.target_q, *state.target_qd)
    struct.pack_into(">12d", data, _ACTUAL, *state.q, *state.qd)
    modes = {_ROBOT_MODE: state.robot_mode, _SAFETY_MODE: state.safety_mode, _SPEED_SCALING: state.speed_scaling}
    for offset, value in (modes | {_PROGRAM: state.runtime_state}).items():
        struct.pack_into(">d", data, offset, value)
    return bytes(data)


class RealtimeSession(Session):
    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._parser = ScriptParser()

    def receive(self, data: bytes) -> bytes:
        for line in self._parser.feed(data):
            self._controller.run_line(line)
        return b""

    def stream(self) -> bytes:
        return encode_packet(self._controller.state, self._controller.settings.profile.packet_bytes)


_NEEDS_REMOTE_CONTROL = {
    UNLOCK,
    "play",
    "power on",
    "power off",
    "brake release",
    "restart safety",
    "close safety popup",
}


class DashboardSession(Session):
    greeting = encode_line(GREETING)

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._parser = LineParser()

    def receive(self, data: bytes) -> bytes:
        return b"".join(encode_line(self.reply(line.strip())) for line in self._parser.feed(data))

    def reply(self, line: str) -> str:
        """The reply to one command; capitals do not matter."""
        command = line.lower()
        answers = self._answers()
        if command not in answers:
            return f"could not understand: '{line}'"
        is_remote = self._controller.in_remote_control or not self._controller.settings.profile.remote_control
        if command in _NEEDS_REMOTE_CONTROL and not is_remote:
            return (
                f"Command is not allowed due to safety reasons: '{line}'. Set robot to remote control mode to execute."
            )
        return answers[command]()

    def _answers(self) -> dict[str, Callable[[], str]]:
        it, safety, profile = self._controller, self._controller.safety, self._controller.settings.profile
        answers: dict[str, Callable[[], str]] = {
            "robotmode": lambda: f"Robotmode: {safety.robot_mode.name}",
            "safetymode": lambda: f"Safetymode: {safety.safety_mode.name}",
            "polyscopeversion": lambda: f"URSoftware {profile.version} ({profile.date})",
            "running": lambda: f"Program running: {str(it.runs_line).lower()}",
            "programstate": lambda: f"{'PLAYING' if it.runs_line else 'STOPPED'} <unnamed>",
            "play": lambda: "Failed to execute: play",  # no program is loaded
            "stop": lambda: _run_and_reply(it.end_line, "Stopped"),
            "pause": lambda: "Failed to execute: pause",
            UNLOCK: lambda: safety.unlock(it.time_s),
            "close safety popup": lambda: "closing safety popup",
            "close popup": lambda: "closing popup",
            "power on": lambda: _run_and_reply(safety.power_on, "Powering on"),
            "power off": lambda: _run_and_reply(it.power_off, "Powering off"),
            "brake release": lambda: _run_and_reply(safety.release_brakes, "Brake releasing"),
            "restart safety": lambda: _run_and_reply(safety.restart, "Restarting safety"),
            "get robot model": lambda: "UR5",
            "quit": lambda: _run_and_reply(lambda: setattr(self, "wants_to_leave", True), "Disconnected"),
        }
        if profile.remote_control:  # what came with the e-Series
            answers |= {
                "safetystatus": lambda: f"Safetystatus: {safety.safety_mode.name}",
                "is in remote control": lambda: str(it.in_remote_control).lower(),
                "get serial number": lambda: "20195500001",
            }
        return answers


def _run_and_reply(act: Callable[[], object], reply: str) -> str:
    act()
    return reply
