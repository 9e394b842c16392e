"""What an arm reports, the commands it takes, and the link between: shared by driver, simulator and environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, TypeAlias

from cycletime.errors import InputError, RunError


class WireError(RunError):
    """Bytes that no peer of this protocol would send: the connection is of no more use."""


JOINTS = 6
"""Base, shoulder, elbow, and three of the wrist."""
Joints: TypeAlias = tuple[float, ...]
"""One number per joint, from the base to the tool: rad, or rad/s."""
STANDING_SPEED = 0.01
"""rad/s: an arm all of whose joints are slower stands."""
CONNECTION_TIMEOUT_S = 10.0
"""Without a state for this long a controller is given up, by driver and environment alike: a lost connection is made
again in less, also where the network has to find it first, and nobody beside an arm should wait for longer. The arm was
stopped long before."""


class LinkError(RunError):
    """The controller cannot be reached, or does not answer as it should: one sentence."""


class StateTimeoutError(LinkError):
    """No state came in time, over a connection that stands."""


class MoveInterruptedError(LinkError):
    """A move was not done, since the controller could not be heard: it may be ordered again."""


class RobotMode(IntEnum):
    """What the arm's power and brakes are doing, as the controller numbers it."""

    NO_CONTROLLER = -1
    DISCONNECTED = 0
    CONFIRM_SAFETY = 1
    BOOTING = 2
    POWER_OFF = 3
    POWER_ON = 4
    IDLE = 5
    BACKDRIVE = 6
    RUNNING = 7
    UPDATING_FIRMWARE = 8

    @classmethod
    def _missing_(cls, value: object) -> RobotMode:
        """An unknown number is a mode in which no arm may be moved."""
        return cls.NO_CONTROLLER


class SafetyMode(IntEnum):
    """What the controller's safety system allows, as it is numbered there; 0 comes from some old firmware."""

    UNKNOWN = 0
    NORMAL = 1
    REDUCED = 2
    PROTECTIVE_STOP = 3
    RECOVERY = 4
    SAFEGUARD_STOP = 5
    SYSTEM_EMERGENCY_STOP = 6
    ROBOT_EMERGENCY_STOP = 7
    VIOLATION = 8
    FAULT = 9
    AUTOMATIC_MODE_SAFEGUARD_STOP = 10
    SYSTEM_THREE_POSITION_ENABLING_STOP = 11

    @classmethod
    def _missing_(cls, value: object) -> SafetyMode:
        """An unknown number is treated as a fault, to be on the safe side."""
        return cls.FAULT

    @property
    def allows_motion(self) -> bool:
        """Whether the arm may be moved; not with an unknown safety mode."""
        return self in (SafetyMode.NORMAL, SafetyMode.REDUCED)

    @property
    def may_pass(self) -> bool:
        """Whether it is a stop after which a run goes on: released, or ended by closing a gate."""
        return self in (SafetyMode.PROTECTIVE_STOP, SafetyMode.SAFEGUARD_STOP, SafetyMode.AUTOMATIC_MODE_SAFEGUARD_STOP)


class RuntimeState(IntEnum):
    STOPPING = 0
    STOPPED = 1
    PLAYING = 2
    PAUSING = 3
    PAUSED = 4
    RESUMING = 5

    @classmethod
    def _missing_(cls, value: object) -> RuntimeState:
        return cls.STOPPED


@dataclass(frozen=True, slots=True)
class ArmState:
    """One package of the controller's stream."""

    time_s: float
    """The controller's own clock."""
    q: Joints
    """Measured angles."""
    qd: Joints
    """Measured speeds."""
    target_q: Joints
    """Angles that the controller is steering to, in this very period."""
    target_qd: Joints
    robot_mode: RobotMode = RobotMode.RUNNING
    safety_mode: SafetyMode = SafetyMode.NORMAL
    runtime_state: RuntimeState = RuntimeState.STOPPED
    """Whether a program, such as a line that was sent, is running."""
    speed_scaling: float = 1.0
    """The fraction of commanded speeds that the controller allows, from the pendant's slider among others."""

    @property
    def stands(self) -> bool:
        return max(map(abs, self.qd)) < STANDING_SPEED


@dataclass(frozen=True, slots=True)
class SpeedJ:
    """Go on at these joint speeds, for a time or until they are reached."""

    qd: Joints
    """rad/s."""
    acceleration: float = 1.4
    """Of the joint that changes its speed the most, rad/s^2."""
    time_s: float = 0.0
    """After which the line ends, and the arm brakes; 0 ends it when the speeds are reached."""


@dataclass(frozen=True, slots=True)
class MoveJ:
    """Move to these angles on a straight line of joint space, and stand there."""

    q: Joints
    """rad."""
    acceleration: float = 1.4
    """Of the leading joint, rad/s^2."""
    speed: float = 1.05
    """Of the leading joint, rad/s."""
    time_s: float = 0.0
    """Where it is positive, the whole move takes this long, whatever speed and acceleration say."""


@dataclass(frozen=True, slots=True)
class StopJ:
    deceleration: float = 2.0
    """Of the fastest joint, rad/s^2."""


Command: TypeAlias = SpeedJ | MoveJ | StopJ
"""The commands of an arm; each is one script line, which replaces the running one."""


def joints_of(command: Command) -> Joints:
    """The speeds or angles that a command gives the joints; none for a stop."""
    if isinstance(command, StopJ):
        return ()
    return command.qd if isinstance(command, SpeedJ) else command.q


def numbers_of(command: Command) -> list[float]:
    """All numbers of a command, in the order of its fields: `dataclasses.astuple`, in a tenth of its time."""
    names = command.__slots__ if isinstance(command, StopJ) else command.__slots__[1:]
    return [*joints_of(command), *(getattr(command, name) for name in names)]


_COMMANDS: tuple[type[Command], ...] = (SpeedJ, MoveJ, StopJ)
COMMAND_NUMBERS = JOINTS + 3
"""The most numbers that a command has: those of `MoveJ`."""


def pack_command(command: Command | None) -> tuple[int, list[float]]:
    """A command as its kind, counted from 1, and its numbers, filled up with zeros; 0 is no command."""
    if command is None:
        return 0, [0.0] * COMMAND_NUMBERS
    joints = joints_of(command)
    if len(joints) != JOINTS and not isinstance(command, StopJ):
        raise InputError(f"A command has {len(joints)} joint values: an arm has {JOINTS}.")
    numbers = numbers_of(command)
    return 1 + _COMMANDS.index(type(command)), numbers + [0.0] * (COMMAND_NUMBERS - len(numbers))


def unpack_command(kind: int, numbers: Sequence[float]) -> Command | None:
    if kind == 0:
        return None
    if not 0 < kind <= len(_COMMANDS):
        raise WireError(f"There is no command {kind}: they are numbered from 1 to {len(_COMMANDS)}.")
    command = _COMMANDS[kind - 1]
    if command is StopJ:
        return StopJ(numbers[0])
    return command(tuple(numbers[:JOINTS]), *numbers[JOINTS : JOINTS + len(command.__slots__) - 1])  # type: ignore[arg-type]


class RobotLink(Protocol):
    """A way to one controller: its state comes in with every period, commands go out, the dashboard is asked."""

    @property
    def period_s(self) -> float:
        """The time between two states: 8 ms with CB controllers, 2 ms with the e-Series."""

    def connect(self) -> None:
        """Begin the stream of states."""

    def receive(self, timeout_s: float) -> ArmState:
        """Wait for a state that was not received before; the newest, where several came."""

    def send(self, command: Command) -> None:
        """Send one command, without waiting for its effect."""

    def dashboard(self, line: str) -> str:
        """Ask the dashboard, and return its reply without the line's end."""

    def close(self) -> None:
        """End the connection; closing twice is fine."""


_SAFETY_BITS = {
    SafetyMode.NORMAL: (0,),
    SafetyMode.REDUCED: (1,),
    SafetyMode.PROTECTIVE_STOP: (2, 10),
    SafetyMode.RECOVERY: (3,),
    SafetyMode.SAFEGUARD_STOP: (4, 10),
    SafetyMode.SYSTEM_EMERGENCY_STOP: (5, 7, 10),
    SafetyMode.ROBOT_EMERGENCY_STOP: (6, 7, 10),
    SafetyMode.VIOLATION: (8, 10),
    SafetyMode.FAULT: (9, 10),
}


def safety_status_bits(mode: SafetyMode) -> int:
    """RTDE's `safety_status_bits` in a safety mode; bit 10, 'stopped due to safety', may stand alone."""
    return sum(1 << bit for bit in _SAFETY_BITS.get(mode, (10,)))


def robot_status_bits(mode: RobotMode, *, program_running: bool) -> int:
    """RTDE's `robot_status_bits`: bit 0 is 'power is on', bit 1 'program is running'."""
    return int(mode >= RobotMode.POWER_ON) | int(program_running) << 1
