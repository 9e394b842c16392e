"""What a controller says about itself, and what somebody has to do at its teach pendant before an arm can be driven.

Questions alone are asked: no script is sent, and nothing moves.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from cycletime import ur5
from cycletime.errors import quote
from cycletime.robots.ur.links import StandardLink
from cycletime.robots.ur.rtde_client import Address
from cycletime.robots.ur.types import (
    CONNECTION_TIMEOUT_S,
    ArmState,
    LinkError,
    RobotMode,
    RuntimeState,
    SafetyMode,
    StateTimeoutError,
)

_START_SCREEN = "on the teach pendant's screen for starting the robot"
_POWER_REMEDIES = {
    RobotMode.NO_CONTROLLER: "The controller does not reach its arm, or is in a mode that is not known: restart it.",
    RobotMode.DISCONNECTED: "The controller does not reach its arm: look after the cable between them.",
    RobotMode.CONFIRM_SAFETY: "The controller waits for its safety settings to be confirmed on the teach pendant.",
    RobotMode.BOOTING: "The arm is still starting: wait, and check again.",
    RobotMode.POWER_OFF: f"The arm has no power: press ON, and then START, {_START_SCREEN}.",
    RobotMode.POWER_ON: f"The arm's brakes are on: press START {_START_SCREEN}.",
    RobotMode.IDLE: f"The arm's brakes are on: press START {_START_SCREEN}.",
    RobotMode.BACKDRIVE: "The arm is being moved by hand: leave freedrive.",
    RobotMode.UPDATING_FIRMWARE: "The arm's firmware is being updated: wait, and check again.",
}
_RESTART_SAFETY = "then restart the safety system on the teach pendant"
_SAFETY_REMEDIES = {
    SafetyMode.UNKNOWN: "The controller does not tell its safety mode: it needs software from 3.0 on.",
    SafetyMode.PROTECTIVE_STOP: (
        "The arm is in a protective stop: look for what it ran into, then enable it on the teach pendant."
    ),
    SafetyMode.RECOVERY: "The arm is beyond its safety limits: move it back by hand (freedrive).",
    SafetyMode.SAFEGUARD_STOP: "The arm is in a safeguard stop: close the gate, and reset it.",
    SafetyMode.SYSTEM_EMERGENCY_STOP: "An emergency stop of the cell is pressed: release it, then start the robot.",
    SafetyMode.ROBOT_EMERGENCY_STOP: (
        "The emergency stop is pressed: make sure that all is well, turn the button back, and start the robot again."
    ),
    SafetyMode.VIOLATION: f"A safety limit was violated: look for the reason in the log, {_RESTART_SAFETY}.",
    SafetyMode.FAULT: f"The safety system has a fault: look for the reason in the log, {_RESTART_SAFETY}.",
    SafetyMode.AUTOMATIC_MODE_SAFEGUARD_STOP: "The arm is in a safeguard stop: close the gate, and reset it.",
    SafetyMode.SYSTEM_THREE_POSITION_ENABLING_STOP: "The enabling switch is not held in its middle position.",
}
_LOCAL_CONTROL = (
    "The controller is in local control and takes no scripts: enable remote control in the teach pendant's settings "
    "(System, Remote Control), and choose it at the top right of its screen."
)
_UNKNOWN_COMMAND = "could not understand"
"""How the dashboard begins its reply to what its version does not know."""
_FULL_SPEED = 0.995
_NEXT_STATE_S = 1.0
"""For the next state, of which others send more than a hundred in this time."""


@dataclass(frozen=True)
class Inspection:
    facts: tuple[tuple[str, str], ...]
    missing: tuple[str, ...]
    """What has to be done before the arm can be driven, a sentence each; none if it can."""


def inspect(address: Address) -> Inspection:
    with closing(StandardLink(address)) as link:
        link.connect()
        state, version, rate_hz = link.receive(CONNECTION_TIMEOUT_S), link.version, 1 / link.period_s
        answers, unheard = _ask_dashboard(link)
    facts = (
        ("software", f"{version}, {rate_hz:g} states a second"),
        ("arm", answers.get("get robot model", "not told")),
        ("robot mode", state.robot_mode.name),
        ("safety mode", state.safety_mode.name),
        ("remote control", _remote_control(answers.get("is in remote control"), version)),
        ("speed slider", f"{state.speed_scaling:.0%}"),
        ("flange", "x {:.3f}, y {:.3f}, z {:.3f} m".format(*_flange_position(state))),
    )
    return Inspection(facts, (*_problems(state, answers), *unheard))


def is_in_lockstep(address: Address) -> bool:
    """Whether no state follows the first: in lock-step a controller advances only by its client's grants."""
    with closing(StandardLink(address)) as link:
        try:
            link.connect()
            link.receive(CONNECTION_TIMEOUT_S)
            link.receive(_NEXT_STATE_S)
        except StateTimeoutError:
            return True
    return False


def _ask_dashboard(link: StandardLink) -> tuple[dict[str, str], tuple[str, ...]]:
    questions = ("get robot model", "is in remote control")
    try:
        replies = {question: link.dashboard(question).strip() for question in questions}
    except LinkError as error:
        return {}, (f"{error} Without it no protective stop can be released: look after firewalls and its settings.",)
    return {question: reply for question, reply in replies.items() if not reply.startswith(_UNKNOWN_COMMAND)}, ()


def _remote_control(reply: str | None, version: str) -> str:
    """Controllers before the e-Series always take scripts, and have no such mode."""
    if reply is None:
        return "not told" if version.startswith("5") else "not needed"
    return "on" if reply == "true" else "off"


def _problems(state: ArmState, answers: dict[str, str]) -> list[str]:
    model = answers.get("get robot model", "UR5")
    inside = ur5.in_box(_flange_position(state)) and ur5.within(
        state.q[ur5.MOVED_JOINTS], ur5.JOINTS_LOW, ur5.JOINTS_HIGH
    )
    is_safe = state.safety_mode.allows_motion
    found = {
        _SAFETY_REMEDIES.get(state.safety_mode, ""): not is_safe,
        _POWER_REMEDIES.get(state.robot_mode, ""): is_safe and state.robot_mode is not RobotMode.RUNNING,
        _LOCAL_CONTROL: answers.get("is in remote control") == "false",
        "A program runs on the controller: stop it, since two cannot drive one arm.": (
            state.runtime_state is not RuntimeState.STOPPED
        ),
        f"The speed slider is at {state.speed_scaling:.0%}: set it to 100 %, or the arm does less than it is told.": (
            state.speed_scaling < _FULL_SPEED
        ),
        f"The arm is a {quote(model)}: the task's geometry and limits are those of a UR5.": not model.startswith("UR5"),
        "The arm is outside of the task's safety box or joint bounds: move it inside by hand (freedrive).": not inside,
    }
    return [sentence for sentence, applies in found.items() if applies]


def _flange_position(state: ArmState) -> tuple[float, ...]:
    return tuple(ur5.tip(state.q).tolist())
