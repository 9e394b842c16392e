"""ur_rtde's control script, which takes its commands from RTDE registers, in place of a URScript interpreter.

The numbers are those of ur_rtde 1.6. Its `speedJ` and `servoJ` go on until they are stopped, also when the client is
gone, unless the client has set a watchdog.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

import numpy as np

from cycletime.robots.ur.arm import Arm, RunningLine, Vector
from cycletime.robots.ur.simulator.acceptance import why_refused
from cycletime.robots.ur.simulator.registers import Registers
from cycletime.robots.ur.types import Command, MoveJ, ServoJ, SpeedJ, StopJ
from cycletime.robots.ur.wire.script import Program

_NAME, _BANNER = "rtde_control", "RTDE Control Script Loaded"
_READY, _DONE = 1, 2
"""What the program tells in its first output register."""
_COMMAND, _ASYNC = 0, 1
_ANSWER, _PROGRESS = 1, 2
"""Output registers with an answer, and how far an asynchronous move has come."""
_STEADY = 1e-3
"""rad/s, below which an arm is said to be steady."""
_REISSUED_S = 1.0
"""How long one speedj or servoj of the program would last; it is given anew in each period."""


class _Asked(IntEnum):
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
        """Begin, ready for a command."""
        self.ended: str | None = None
        """Why the program has ended, if it has."""
        self.asks_for_stop = False
        """Whether it has called for a protective stop."""
        self._followed: Command | None = None
        self._waits_for: Command | None = None
        self._done = False
        self._watchdog_hz = 0.0
        self._fed_at = tick
        self._pose_at = pose_at
        registers.tell_int(_COMMAND, _READY)
        registers.tell_int(_PROGRESS, -1)

    @staticmethod
    def is_meant_by(program: Program) -> bool:
        """Whether a program is ur_rtde's, by its name and what it says first."""
        return program.name == _NAME and _BANNER in program.text

    def fed(self, tick: int) -> None:
        """A package has arrived that carries the command register, and with it the watchdog's food."""
        self._fed_at = tick

    def step(self, registers: Registers, arm: Arm, period_s: float) -> Arm:
        """One period of the program: read the command, and move the arm."""
        self._bark(arm.tick, period_s)
        asked = registers.whole(_COMMAND)
        if asked in (_Asked.SPEED_J, _Asked.SERVO_J):
            self._followed = self._accepted(_followed(asked, registers))
            registers.tell_int(_COMMAND, _READY)
        elif asked == _Asked.IDLE:
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
                if not registers.whole(_ASYNC) or asked in (_Asked.SPEED_STOP, _Asked.SERVO_STOP):
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
            case _Asked.MOVE_J:
                speed, acceleration = registers.doubles(6, 8)
                return MoveJ(registers.doubles(0, 6), acceleration, speed)
            case _Asked.SPEED_STOP | _Asked.SERVO_STOP | _Asked.STOP_J | _Asked.STOP_L:
                return StopJ(registers.doubles(0, 1)[0])
            case _Asked.SET_WATCHDOG:
                (self._watchdog_hz,) = registers.doubles(0, 1)
            case _Asked.FORWARD_KINEMATICS:
                registers.tell_doubles(self._pose_at(arm.q))
            case _Asked.IS_STEADY:
                registers.tell_int(_ANSWER, int(np.abs(arm.qd).max() < _STEADY))
            case _Asked.PROTECTIVE_STOP:
                self.asks_for_stop = True
            case _Asked.STOP_SCRIPT:
                self.ended = "The program was stopped by its client."
            case _:
                self.ended = f"ur_rtde's command {asked} is not simulated; the program has ended."
        return None

    def _accepted(self, command: Command) -> Command | None:
        """A command, unless it ends the program as a wrong argument does."""
        if why := why_refused(command):
            self.ended = f"Refused: {why}; the program has ended."
            return None
        return command

    def _bark(self, tick: int, period_s: float) -> None:
        if self._watchdog_hz > 0 and (tick - self._fed_at) * period_s > 1 / self._watchdog_hz:
            self.ended = f"The watchdog saw no command for {1 / self._watchdog_hz:g} s; the program has ended."


def _followed(asked: int, registers: Registers) -> Command:
    if asked == _Asked.SPEED_J:
        (acceleration,) = registers.doubles(6, 7)
        return SpeedJ(registers.doubles(0, 6), acceleration, _REISSUED_S)
    lookahead_s, gain = registers.doubles(9, 11)
    return ServoJ(registers.doubles(0, 6), _REISSUED_S, lookahead_s, gain)
