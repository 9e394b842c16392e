"""What an agent and its driver leave for each other: orders one way, reports the other, as bytes for shared memory."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from cycletime.errors import InputError
from cycletime.robots.ur.safety.supervisor import Override
from cycletime.robots.ur.types import (
    JOINTS,
    ArmState,
    Command,
    MoveJ,
    RobotMode,
    RuntimeState,
    SafetyMode,
    ServoJ,
    SpeedJ,
    StopJ,
    joints_of,
    numbers_of,
)


class Phase(IntEnum):
    """What a driver is doing."""

    STARTING = 0
    """It is about to connect."""
    DRIVING = 1
    """The arm does what it is ordered, within the limits."""
    HELD = 2
    """The controller has stopped the arm, and it is to be released."""
    SILENT = 3
    """The connection stands, but no state comes: the arm was told to stop."""
    RECONNECTING = 4
    """The connection is lost, and made again."""
    ENDED = 5
    """The driver has stopped the arm and is gone, for the reason in its report."""


@dataclass(frozen=True)
class DriverReport:
    """What a driver tells with every package of the controller, and when its phase changes."""

    phase: Phase
    """What it is doing."""
    received_s: float = 0.0
    """When the state came, by the driver's clock."""
    period_s: float = 0.0
    """The time between two states."""
    packages: int = 0
    """Packages received since the start."""
    missed: int = 0
    """Packages that the controller left out, or that were overtaken by newer ones."""
    sent: int = 0
    """Commands sent to the controller."""
    overridden: int = 0
    """Commands that the supervisor did not pass on as they came."""
    override: Override = Override.NONE
    """Why the newest was not; none if it was."""
    order: int = 0
    """The number of the order that was ruled on last."""
    protective_stops: int = 0
    """Since the start."""
    connections: int = 0
    """Made since the start: those before the last were lost."""
    state: ArmState | None = None
    """The newest state, once there is one."""
    text: str = ""
    """Why the phase is what it is, in a sentence; empty while the arm is driven."""


@dataclass(frozen=True)
class Order:
    """What an agent wants, and a sign of its life."""

    number: int
    """Counted from 1; the same order may be left again, with a newer sign of life."""
    sent_s: float
    """When it was ordered, by the clock of both."""
    alive_s: float
    """When the agent last asked for a state or ordered something."""
    command: Command | None = None
    """What the arm is to do; None before the first command."""


_KINDS = (SpeedJ, ServoJ, MoveJ, StopJ)
_ORDER = struct.Struct(f"=Qddb{JOINTS + 4}d")
_STATE = struct.Struct(f"=d{4 * JOINTS}dd3i")
_REPORT = struct.Struct("=idd4QiQQQ?")


def encode_order(order: Order) -> bytes:
    """The bytes of an order.

    Raises:
        InputError: if a command has not one number for each joint.
    """
    kind, numbers = -1, []
    if order.command is not None:
        kind = _KINDS.index(type(order.command))
        numbers = _checked(order.command)
    padded = numbers + [0.0] * (JOINTS + 4 - len(numbers))
    return _ORDER.pack(order.number, order.sent_s, order.alive_s, kind, *padded)


def decode_order(data: bytes) -> Order:
    """The order that bytes are."""
    number, sent_s, alive_s, kind, *numbers = _ORDER.unpack(data)
    return Order(number, sent_s, alive_s, None if kind < 0 else _command(_KINDS[kind], numbers))


def _command(kind: type[Command], numbers: list[float]) -> Command:
    if kind is StopJ:
        return StopJ(numbers[0])
    joints, rest = tuple(numbers[:JOINTS]), numbers[JOINTS:]
    if kind is SpeedJ:
        return SpeedJ(joints, *rest[:2])
    return ServoJ(joints, *rest[:3]) if kind is ServoJ else MoveJ(joints, *rest)


def _checked(command: Command) -> list[float]:
    joints = joints_of(command)
    if len(joints) != JOINTS and not isinstance(command, StopJ):
        raise InputError(f"A command has {len(joints)} joint values: an arm has {JOINTS}.")
    return numbers_of(command)


def encode_report(report: DriverReport) -> bytes:
    """The bytes of a report."""
    head = _REPORT.pack(
        report.phase,
        report.received_s,
        report.period_s,
        report.packages,
        report.missed,
        report.sent,
        report.overridden,
        report.override,
        report.order,
        report.protective_stops,
        report.connections,
        report.state is not None,
    )
    return head + (b"" if report.state is None else _encode_state(report.state)) + report.text.encode()


def decode_report(data: bytes) -> DriverReport:
    """The report that bytes are."""
    phase, received_s, period_s, *counts, has_state = _REPORT.unpack_from(data)
    packages, missed, sent, overridden, override, order, stops, connections = counts
    rest = data[_REPORT.size :]
    state = _decode_state(rest) if has_state else None
    text = rest[_STATE.size if has_state else 0 :].decode()
    return DriverReport(
        Phase(phase),
        received_s,
        period_s,
        packages,
        missed,
        sent,
        overridden,
        Override(override),
        order,
        stops,
        connections,
        state,
        text,
    )


def _encode_state(state: ArmState) -> bytes:
    joints = (*state.q, *state.qd, *state.target_q, *state.target_qd)
    modes = (state.robot_mode, state.safety_mode, state.runtime_state)
    return _STATE.pack(state.time_s, *joints, state.speed_scaling, *modes)


def _decode_state(data: bytes) -> ArmState:
    time_s, *joints, speed_scaling, robot, safety, runtime = _STATE.unpack_from(data)
    q, qd, target_q, target_qd = (tuple(joints[start : start + JOINTS]) for start in range(0, 4 * JOINTS, JOINTS))
    return ArmState(
        time_s,
        q,
        qd,
        target_q,
        target_qd,
        RobotMode(robot),
        SafetyMode(safety),
        RuntimeState(runtime),
        speed_scaling,
    )
