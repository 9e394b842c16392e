"""The dashboard as one client meets it: a greeting, then a line for each line."""

from __future__ import annotations

from collections.abc import Callable

from cycletime.robots.ur.simulator.controller import Controller
from cycletime.robots.ur.wire.dashboard import GREETING, UNLOCK, LineParser, encode_line

_NEEDS_REMOTE_CONTROL = {
    UNLOCK,
    "play",
    "power on",
    "power off",
    "brake release",
    "restart safety",
    "close safety popup",
}


class DashboardSession:
    """One client of port 29999."""

    greeting = encode_line(GREETING)

    def __init__(self, controller: Controller) -> None:
        """A client has connected."""
        self._controller = controller
        self._parser = LineParser()
        self.wants_to_leave = False
        """Whether the client has said so."""

    def receive(self, data: bytes) -> bytes:
        """What the client sends, and the replies to it."""
        return b"".join(encode_line(self.reply(line.strip())) for line in self._parser.feed(data))

    def stream(self) -> bytes:
        """Nothing is sent unasked."""
        return b""

    def close(self) -> None:
        """The client is gone."""

    def reply(self, line: str) -> str:
        """The reply to one command; capitals do not matter."""
        command = line.lower()
        answers = self._answers()
        if command not in answers:
            return f"could not understand: '{line}'"
        if command in _NEEDS_REMOTE_CONTROL and not self._is_remote():
            return (
                f"Command is not allowed due to safety reasons: '{line}'. Set robot to remote control mode to execute."
            )
        return answers[command]()

    def _is_remote(self) -> bool:
        return self._controller.in_remote_control or not self._controller.settings.profile.remote_control

    def _answers(self) -> dict[str, Callable[[], str]]:
        it, safety, profile = self._controller, self._controller.safety, self._controller.settings.profile
        answers: dict[str, Callable[[], str]] = {
            "robotmode": lambda: f"Robotmode: {safety.robot_mode.name}",
            "safetymode": lambda: f"Safetymode: {safety.safety_mode.name}",
            "polyscopeversion": lambda: f"URSoftware {profile.version} ({profile.date})",
            "running": lambda: f"Program running: {_word(it.runs_program)}",
            "programstate": lambda: f"{'PLAYING' if it.runs_program else 'STOPPED'} <unnamed>",
            "play": lambda: "Failed to execute: play",  # no program is loaded
            "stop": self._stop,
            "pause": lambda: "Failed to execute: pause",
            UNLOCK: lambda: safety.unlock(it.time_s),
            "close safety popup": lambda: "closing safety popup",
            "close popup": lambda: "closing popup",
            "power on": lambda: _done(safety.power_on, "Powering on"),
            "power off": lambda: _done(it.power_off, "Powering off"),
            "brake release": lambda: _done(safety.release_brakes, "Brake releasing"),
            "restart safety": lambda: _done(safety.restart, "Restarting safety"),
            "get robot model": lambda: "UR5",
            "quit": self._quit,
        }
        if profile.remote_control:  # what came with the e-Series
            answers |= {
                "safetystatus": lambda: f"Safetystatus: {safety.safety_mode.name}",
                "is in remote control": lambda: _word(it.in_remote_control),
                "get serial number": lambda: "20195500001",
            }
        return answers

    def _stop(self) -> str:
        self._controller.end_program()
        return "Stopped"

    def _quit(self) -> str:
        self.wants_to_leave = True
        return "Disconnected"


def _word(truth: bool) -> str:
    return "true" if truth else "false"


def _done(act: Callable[[], object], reply: str) -> str:
    act()
    return reply
