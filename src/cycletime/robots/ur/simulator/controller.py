"""The whole robot without a network: arm, registers and safety system, one tick after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from math import acos, pi, sin

import numpy as np

from cycletime.robots.ur import arm as arms
from cycletime.robots.ur.arm import Vector
from cycletime.robots.ur.simulator.profile import SimulatorSettings
from cycletime.robots.ur.simulator.simulated_safety import SafetySystem, refusal_reason, violation_reason
from cycletime.robots.ur.types import ArmState, Command, Joints, RobotMode, RuntimeState, SafetyMode, WireError
from cycletime.robots.ur.wire.rtde import Value
from cycletime.robots.ur.wire.script import command_of
from cycletime.ur5 import ArmModel, forward

_SMALL = 1e-6
"""An angle so near to 0 or to half a turn that its axis cannot be had from differences."""


def rotation_vector(rotation: Vector) -> tuple[float, ...]:
    """The axis of a rotation, as long as its angle is large."""
    angle = acos(min(1.0, max(-1.0, (float(np.trace(rotation)) - 1) / 2)))
    if angle < _SMALL:
        return (0.0, 0.0, 0.0)
    if angle > pi - _SMALL:  # R = 2 a a' - 1, of which the longest column is the axis
        columns = (rotation + np.eye(3)) / 2
        longest = columns[:, int(np.argmax(np.diag(columns)))]
        return tuple(map(float, angle * longest / np.linalg.norm(longest)))
    across = (rotation[2, 1] - rotation[1, 2], rotation[0, 2] - rotation[2, 0], rotation[1, 0] - rotation[0, 1])
    return tuple(float(each) * angle / (2 * sin(angle)) for each in across)


_STOP_DECELERATION = 20.0
"""rad/s^2, of a protective or an emergency stop."""
_ANGLE_NOISE, _SPEED_NOISE = 5e-5, 2e-3
"""Standard deviations of what encoders tell, rad and rad/s."""
_LOG_LINES = 1000


class Controller:
    def __init__(
        self, settings: SimulatorSettings | None = None, tell: Callable[[str], None] = lambda text: None
    ) -> None:
        self.settings = settings or SimulatorSettings()
        self.model = ArmModel(period_s=self.settings.profile.period_s)
        self.arm = arms.arm_at_rest(self.settings.start_q)
        self.safety = SafetySystem()
        self.registers: dict[str, Value] = {}
        """Of RTDE, by name; what was not written is zero."""
        self.in_remote_control = True
        self._has_refused = False
        self.log: deque[tuple[int, str, int]] = deque(maxlen=_LOG_LINES)
        """Number, line and level: 0 exception, 1 error, 2 warning, 3 information."""
        self._messages_logged = 0
        self._print = tell
        self._random = np.random.default_rng(self.settings.seed)
        self.state = self._measured()

    @property
    def tick(self) -> int:
        return self.arm.tick

    @property
    def time_s(self) -> float:
        return self.arm.tick * self.model.period_s

    @property
    def runs_line(self) -> bool:
        return self.safety.allows_motion and (self.arm.program is not None or bool(self.arm.pending))

    def pose_at(self, q: arms.Vector) -> tuple[float, ...]:
        """Where the flange is with these angles, in the base's frame: x, y, z and a rotation vector."""
        pose = forward(q, self.settings.profile.geometry)
        return (*map(float, pose[:3, 3]), *rotation_vector(pose[:3, :3]))

    def advance(self) -> None:
        before = self.arm
        self.arm = arms.advance(self.model, before)
        if self.safety.safety_mode <= SafetyMode.REDUCED:
            limits = self.settings.limits
            tip_m = 0.0 if limits.floor_m is None else self.pose_at(self.arm.q)[2]
            why = violation_reason(limits, before, self.arm, self.model.period_s, tip_m)
            if why is not None:
                self.stop(SafetyMode.PROTECTIVE_STOP, why)
        self.state = self._measured()

    def run_line(self, line: str) -> None:
        if self._takes_scripts(line):
            try:
                self.run(command_of(line))
            except WireError as error:
                self.say(str(error), level=1)

    def run_command(self, command: Command) -> None:
        if self._takes_scripts("a command of lock-step"):
            self.run(command)

    def run(self, command: Command) -> None:
        if not self.safety.allows_motion:
            return
        if why := refusal_reason(command):
            self.say(f"Refused: {why}.", level=1)
            return
        jitter = int(self._random.integers(self.settings.jitter_ticks + 1)) if self.settings.jitter_ticks else 0
        self.arm = arms.receive_command(self.arm, command, self.settings.latency_ticks + jitter)

    def end_line(self) -> None:
        self.arm = self.arm._replace(program=None, pending=())

    def stop(self, mode: SafetyMode, why: str) -> None:
        self.arm = arms.halt(self.arm, _STOP_DECELERATION)
        self.safety.stop(mode, self.time_s)
        self.say(f"{mode.name}: {why}", level=1)

    def power_off(self) -> None:
        self.arm = arms.halt(self.arm, _STOP_DECELERATION)
        self.safety.robot_mode = RobotMode.POWER_OFF

    def say(self, message: str, level: int = 3) -> None:
        """Write a line into the log, which RTDE's clients get as a text message."""
        self._messages_logged += 1
        self._print(f"{self.time_s:.3f} s: {message}")
        self.log.append((self._messages_logged, message, level))

    def _takes_scripts(self, what: str) -> bool:
        """Whether scripts are accepted at all; of many refused ones, only the first is logged."""
        refuses = self.settings.profile.remote_control and not self.in_remote_control
        if refuses and not self._has_refused:
            self.say(f"The controller is not in remote control: {what} was not run, nor is what follows.", level=2)
        self._has_refused = refuses
        return self.safety.allows_motion and not refuses

    def _measured(self) -> ArmState:
        q, qd = self.arm.q, self.arm.qd
        if self.settings.noise:
            q, qd = q + self._random.normal(0, _ANGLE_NOISE, 6), qd + self._random.normal(0, _SPEED_NOISE, 6)
        return ArmState(
            time_s=self.time_s,
            q=_tuple(q),
            qd=_tuple(qd),
            target_q=_tuple(self.arm.target_q),
            target_qd=_tuple(self.arm.target_qd),
            robot_mode=self.safety.robot_mode,
            safety_mode=self.safety.safety_mode,
            runtime_state=RuntimeState.PLAYING if self.runs_line else RuntimeState.STOPPED,
        )


def _tuple(values: arms.Vector) -> Joints:
    return tuple(values.tolist())


class Session(ABC):
    greeting = b""
    wants_to_leave = False

    @abstractmethod
    def receive(self, data: bytes) -> bytes:
        """Take what the client sends; the replies."""

    def stream(self) -> bytes:
        return b""

    def close(self) -> None:  # noqa: B027 - most have nothing to do
        """The client is gone; what it asked for goes on."""
