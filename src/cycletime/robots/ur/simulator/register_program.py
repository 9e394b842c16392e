"""RTDE's registers, and ur_rtde's control script, which takes its commands from them.

The script stands in place of a URScript interpreter; the numbers are those of ur_rtde 1.6. Its `speedJ` and `servoJ` go
on until they are stopped, also when the client is gone, unless the client has set a watchdog.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

import numpy as np

from cycletime.robots.ur.arm import Arm, RunningLine, Vector
from cycletime.robots.ur.simulator.safety import refusal_reason
from cycletime.robots.ur.types import Command, MoveJ, ServoJ, SpeedJ, StopJ
from cycletime.robots.ur.wire.rtde import Value
from cycletime.robots.ur.wire.script import Program

REGISTER_COUNT = 48
_NUMBERED = {"int": "INT32", "double": "DOUBLE"}


def register_types(direction: str) -> dict[str, str]:
    """The names of all registers of a direction, 'input' or 'output', with their types."""
    types = {
        f"{direction}_{kind}_register_{number}": of
        for kind, of in _NUMBERED.items()
        for number in range(REGISTER_COUNT)
    }
    bits = {f"{direction}_bit_registers0_to_31": "UINT32", f"{direction}_bit_registers32_to_63": "UINT32"}
    return types | bits | {f"{direction}_bit_register_{number}": "BOOL" for number in range(64, 128)}


INPUT_TYPES = register_types("input") | {
    "speed_slider_mask": "UINT32",
    "speed_slider_fraction": "DOUBLE",
    "standard_digital_output_mask": "UINT8",
    "standard_digital_output": "UINT8",
    "configurable_digital_output_mask": "UINT8",
    "configurable_digital_output": "UINT8",
    "tool_digital_output_mask": "UINT8",
    "tool_digital_output": "UINT8",
    "standard_analog_output_mask": "UINT8",
    "standard_analog_output_type": "UINT8",
    "standard_analog_output_0": "DOUBLE",
    "standard_analog_output_1": "DOUBLE",
    "external_force_torque": "VECTOR6D",
}
"""All that a client may write; what is not a register is taken and has no effect."""
OUTPUT_TYPES = register_types("output")


class Registers:
    """Values by name; each is zero until it is written, and keeps what was written last."""

    def __init__(self) -> None:
        self._values: dict[str, Value] = {}

    def __getitem__(self, name: str) -> Value:
        return self._values.get(name, 0)

    def __setitem__(self, name: str, value: Value) -> None:
        self._values[name] = value

    def number(self, name: str) -> float:
        value = self._values.get(name, 0)
        return 0.0 if isinstance(value, tuple) else value

    def whole(self, number: int) -> int:
        return int(self.number(f"input_int_register_{number}"))

    def doubles(self, start: int, end: int) -> tuple[float, ...]:
        return tuple(float(self.number(f"input_double_register_{number}")) for number in range(start, end))

    def tell_int(self, number: int, value: int) -> None:
        self._values[f"output_int_register_{number}"] = value

    def tell_doubles(self, values: tuple[float, ...]) -> None:
        """Write the first output registers for numbers."""
        self._values |= {f"output_double_register_{number}": value for number, value in enumerate(values)}


_NAME, _BANNER = "rtde_control", "RTDE Control Script Loaded"
_READY, _DONE = 1, 2
_COMMAND, _ASYNC = 0, 1
_ANSWER, _PROGRESS = 1, 2
"""Output registers with an answer, and how far an asynchronous move has come."""
_STEADY = 1e-3
"""rad/s, below which an arm is said to be steady."""
_REISSUED_S = 1.0
"""How long one speedj or servoj of the program would last; it is given anew in each period."""


class _Request(IntEnum):
    IDLE = 0
    MOVE_J = 1
    SPEED_J = 9
    SERVO_J = 11
    SPEED_STOP = 15
    SERVO_STOP = 16
    PROTECTIVE_STOP = 31
    STOP_L = 33
    STOP_J = 34
    SET_WATCHDOG = 35
    FORWARD_KINEMATICS = 43
    IS_STEADY = 47
    STOP_SCRIPT = 255


class RegisterProgram:
    """The program while it runs."""

    def __init__(self, registers: Registers, tick: int, pose_at: Callable[[Vector], tuple[float, ...]]) -> None:
        self.ended: str | None = None
        self.asks_for_stop = False
        self._followed: Command | None = None
        self._waits_for: Command | None = None
        self._done = False
        self._watchdog_hz = 0.0
        self._fed_tick = tick
        self._pose_at = pose_at
        registers.tell_int(_COMMAND, _READY)
        registers.tell_int(_PROGRESS, -1)

    @staticmethod
    def is_meant_by(program: Program) -> bool:
        """Whether a program is ur_rtde's, by its name and what it says first."""
        return program.name == _NAME and _BANNER in program.text

    def feed_watchdog(self, tick: int) -> None:
        """A package has arrived that carries the command register, and with it the watchdog's food."""
        self._fed_tick = tick

    def step(self, registers: Registers, arm: Arm, period_s: float) -> Arm:
        self._check_watchdog(arm.tick, period_s)
        asked = registers.whole(_COMMAND)
        if asked in (_Request.SPEED_J, _Request.SERVO_J):
            self._followed = self._accepted(_continuous_command(asked, registers))
            registers.tell_int(_COMMAND, _READY)
        elif asked == _Request.IDLE:
            self._done, self._waits_for = False, None
            registers.tell_int(_COMMAND, _READY)
        elif not self._done:
            arm = self._once(asked, registers, arm)
        if self._followed is not None:
            return arm._replace(program=RunningLine(self._followed))
        if arm.program is None:
            registers.tell_int(_PROGRESS, -1)
        return arm

    def _once(self, asked: int, registers: Registers, arm: Arm) -> Arm:
        """A command that is done once; moves and stops are done when the arm stands."""
        if self._waits_for is None:
            begun = self._begun(asked, registers, arm)
            moves = None if begun is None else self._accepted(begun)
            if moves is not None:
                self._followed = None
                arm = arm._replace(program=RunningLine(moves))
                if not registers.whole(_ASYNC) or asked in (_Request.SPEED_STOP, _Request.SERVO_STOP):
                    self._waits_for = moves
                    return arm
                registers.tell_int(_PROGRESS, 0)
        elif arm.program is not None:
            return arm
        self._done = True
        registers.tell_int(_COMMAND, _DONE)
        return arm

    def _begun(self, asked: int, registers: Registers, arm: Arm) -> Command | None:
        """Do what a command asks for at once; the motion that it begins, if any."""
        match asked:
            case _Request.MOVE_J:
                speed, acceleration = registers.doubles(6, 8)
                return MoveJ(registers.doubles(0, 6), acceleration, speed)
            case _Request.SPEED_STOP | _Request.SERVO_STOP | _Request.STOP_J | _Request.STOP_L:
                return StopJ(registers.doubles(0, 1)[0])
            case _Request.SET_WATCHDOG:
                (self._watchdog_hz,) = registers.doubles(0, 1)
            case _Request.FORWARD_KINEMATICS:
                registers.tell_doubles(self._pose_at(arm.q))
            case _Request.IS_STEADY:
                registers.tell_int(_ANSWER, int(np.abs(arm.qd).max() < _STEADY))
            case _Request.PROTECTIVE_STOP:
                self.asks_for_stop = True
            case _Request.STOP_SCRIPT:
                self.ended = "The program was stopped by its client."
            case _:
                self.ended = f"ur_rtde's command {asked} is not simulated; the program has ended."
        return None

    def _accepted(self, command: Command) -> Command | None:
        """A command, unless it ends the program as a wrong argument does."""
        if why := refusal_reason(command):
            self.ended = f"Refused: {why}; the program has ended."
            return None
        return command

    def _check_watchdog(self, tick: int, period_s: float) -> None:
        if self._watchdog_hz > 0 and (tick - self._fed_tick) * period_s > 1 / self._watchdog_hz:
            self.ended = f"The watchdog saw no command for {1 / self._watchdog_hz:g} s; the program has ended."


def _continuous_command(asked: int, registers: Registers) -> Command:
    if asked == _Request.SPEED_J:
        (acceleration,) = registers.doubles(6, 7)
        return SpeedJ(registers.doubles(0, 6), acceleration, _REISSUED_S)
    lookahead_s, gain = registers.doubles(9, 11)
    return ServoJ(registers.doubles(0, 6), _REISSUED_S, lookahead_s, gain)
