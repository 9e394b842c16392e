"""An arm and an agent in virtual time, for the driver's loop: nothing waits, and seconds pass with packages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cycletime.robots.ur.arm import Arm, advance, arm_at_rest, halt, receive_command
from cycletime.robots.ur.driver.channel import DriverReport, Order, Phase
from cycletime.robots.ur.driver.driver import Driver, DriverTimeouts
from cycletime.robots.ur.driver.link import DriverLink
from cycletime.robots.ur.freshness import Freshness
from cycletime.robots.ur.reacher_env import URReacher2Env
from cycletime.robots.ur.safety import REACHER_LIMITS, Override, StopHandler, Supervisor
from cycletime.robots.ur.types import (
    ArmState,
    Command,
    Joints,
    LinkError,
    RobotMode,
    SafetyMode,
    SpeedJ,
    StateTimeoutError,
)
from cycletime.ur5 import Q_REF, ArmModel, tip


@dataclass
class VirtualClock:
    """Time that passes when it is waited for."""

    time_s: float = 1000.0

    def now_s(self) -> float:
        return self.time_s

    def sleep_until(self, time_s: float) -> None:
        self.time_s = max(self.time_s, time_s)


@dataclass
class VirtualArm:
    """A controller as a link; its faults are set by who holds it."""

    clock: VirtualClock
    arm: Arm = field(default_factory=lambda: arm_at_rest(Q_REF))
    model: ArmModel = field(default_factory=ArmModel)
    safety_mode: SafetyMode = SafetyMode.NORMAL
    robot_mode: RobotMode = RobotMode.RUNNING
    frozen: bool = False
    reachable: bool = True
    connected: bool = False
    refuses_release: bool = False
    stopped_s: float = 0.0
    commands: list[tuple[float, Command]] = field(default_factory=list)
    questions: list[tuple[float, str]] = field(default_factory=list)
    attempts: int = 0
    period_s: float = 0.008

    def connect(self) -> None:
        self.attempts += 1
        if not self.reachable:
            raise LinkError("The controller does not answer.")
        self.connected = True

    def receive(self, timeout_s: float) -> ArmState:
        if not (self.connected and self.reachable):
            self.connected = False
            raise LinkError("The connection was lost.")
        if self.frozen:
            self.pass_time(timeout_s)
            raise StateTimeoutError("No state came.")
        self.pass_time(self.period_s)
        q, qd, target_q, target_qd = (
            tuple(part.tolist()) for part in (self.arm.q, self.arm.qd, self.arm.target_q, self.arm.target_qd)
        )
        time_s = self.arm.tick * self.period_s
        return ArmState(time_s, q, qd, target_q, target_qd, self.robot_mode, self.safety_mode)

    def pass_time(self, time_s: float) -> None:
        """The arm moves on, whoever listens."""
        for _ in range(round(time_s / self.period_s)):
            self.arm = advance(self.model, self.arm)
        self.clock.time_s += time_s

    def send(self, command: Command) -> None:
        if not (self.connected and self.reachable):
            raise LinkError("The connection was lost.")
        self.commands.append((self.clock.time_s, command))
        if self.safety_mode is SafetyMode.NORMAL:
            self.arm = receive_command(self.arm, command)

    def dashboard(self, line: str) -> str:
        self.questions.append((self.clock.time_s, line))
        if line != "unlock protective stop":
            return "closing safety popup"
        if self.refuses_release or self.clock.time_s - self.stopped_s < 5:
            return "Cannot unlock protective stop until 5s after occurrence. Always inspect cause of protective stop."
        self.safety_mode = SafetyMode.NORMAL
        return "Protective stop releasing"

    def close(self) -> None:
        self.connected = False

    def stop_protectively(self) -> None:
        self.safety_mode, self.stopped_s = SafetyMode.PROTECTIVE_STOP, self.clock.time_s
        self.arm = halt(self.arm, 20.0)

    @property
    def speed(self) -> float:
        """rad/s of the fastest joint."""
        return float(np.abs(self.arm.qd).max())

    def standstill_s(self, most_s: float = 2.0) -> float:
        """How long the arm still moves, if nobody does anything."""
        start_s = moved_s = self.clock.time_s
        while self.clock.time_s < start_s + most_s:
            self.pass_time(self.period_s)
            moved_s = self.clock.time_s if self.speed >= 0.01 else moved_s
        return moved_s - start_s


@dataclass
class VirtualAgent:
    """Orders by a script that is called with each report; it is gone when the script says so."""

    clock: VirtualClock
    script: Callable[[VirtualAgent, DriverReport], bool] = lambda agent, report: False
    """What to do about a report, and whether that is all."""
    reports: list[DriverReport] = field(default_factory=list)
    newest: Order | None = None
    gone: bool = False

    def publish(self, report: DriverReport) -> None:
        self.reports.append(report)
        if not self.gone:
            self.gone = self.script(self, report)

    def order(self) -> Order | None:
        return self.newest

    def agent_is_gone(self) -> bool:
        return self.gone

    def wants(self, command: Command | None) -> None:
        """Order something, or give a sign of life alone."""
        now_s, number = self.clock.now_s(), self.newest.number if self.newest else 0
        if command is None:
            before = self.newest or Order(0, now_s, now_s)
            self.newest = Order(before.number, before.sent_s, now_s, before.command)
        else:
            self.newest = Order(number + 1, now_s, now_s, command)


class Driven(DriverLink):
    """A driver without a process: the arm goes on by itself, and its newest state lies there."""

    def __init__(self, arm: VirtualArm) -> None:
        self._arm, self.clock, self.received = arm, arm.clock, DriverReport(Phase.DRIVING)
        self.came = self.overridden = 0

    period_s = 0.008
    holds_s = 0.2
    sight_s = 0.1
    pace = 1.0

    def connect(self) -> None:
        self._arm.connect()

    def close(self) -> None:
        self._arm.close()

    def send(self, command: Command) -> None:
        self._arm.send(command)

    def drive(self, packages: int) -> None:
        for _ in range(packages):
            self._newest, self.came = self._arm.receive(1.0), self.came + 1
            came_s = self._arm.clock.time_s
        self._report = DriverReport(
            Phase.DRIVING, came_s, 0.008, self.came, overridden=self.overridden, state=self._newest
        )

    def receive(self, timeout_s: float) -> ArmState:
        if timeout_s:
            self.drive(1)
        if self.received.packages == self.came:
            raise StateTimeoutError("None since then.")
        self.received = self._report
        return self._newest


class Supervising(Driven):
    """With its supervisor, which rules on a speed anew with each package."""

    def __init__(self, arm: VirtualArm) -> None:
        super().__init__(arm)
        self._supervisor = Supervisor(REACHER_LIMITS, tip)
        self._speed: SpeedJ | None = None

    def send(self, command: Command) -> None:
        self._speed = command if isinstance(command, SpeedJ) else None
        self._rule(command)

    def drive(self, packages: int) -> None:
        for _ in range(packages):
            super().drive(1)
            if self._speed is not None:
                self._rule(self._speed)

    def _rule(self, command: Command) -> None:
        ruling = self._supervisor.rule(self._newest, command)
        self.overridden += ruling.override is not Override.NONE
        self._arm.send(ruling.command)

    def step(self, env: URReacher2Env, action: NDArray[np.float64]) -> bool:
        """One step of an environment; whether it was the last."""
        env.send(action)
        self.drive(round(env.dt / self.period_s))
        return env.receive()[3]


def make_driver(
    arm: VirtualArm,
    agent: VirtualAgent,
    timeouts: DriverTimeouts | None = None,
    freshness: Freshness | None = None,
) -> Driver:
    return Driver(arm, Supervisor(REACHER_LIMITS, tip), StopHandler(), agent, arm.clock, timeouts, freshness)


def elbow(speed: float) -> Joints:
    return (0.0, 0.0, speed, 0.0, 0.0, 0.0)
