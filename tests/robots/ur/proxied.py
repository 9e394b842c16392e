"""A simulated controller behind a proxy that spoils its states, in lock-step with the driver: time passes by ticks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from cycletime.robots.ur.driver.channel import DriverReport
from cycletime.robots.ur.driver.driver import Driver
from cycletime.robots.ur.safety import REACHER_LIMITS, StopHandler, Supervisor
from cycletime.robots.ur.simulator.controller import Controller
from cycletime.robots.ur.simulator.profile import PROFILES, ProfileName, SimulatorSettings
from cycletime.robots.ur.types import ArmState, Command, Joints, SpeedJ, StateTimeoutError
from cycletime.ur5 import BOX_HIGH, BOX_LOW, Q_REF, tip
from tests.robots.ur.virtual import VirtualAgent, VirtualClock

Fault: TypeAlias = Callable[[list[ArmState]], Iterable[ArmState]]
"""From all states so far to those that arrive now."""


def repeat(states: list[ArmState]) -> list[ArmState]:
    return [states[0]]


def freeze(states: list[ArmState]) -> list[ArmState]:
    """All but the clock."""
    return [replace(states[0], time_s=states[-1].time_s)]


def freeze_angles(states: list[ArmState]) -> list[ArmState]:
    """All but clock and speeds."""
    return [replace(states[-1], q=states[0].q, target_q=states[0].target_q)]


def freeze_measured(states: list[ArmState]) -> list[ArmState]:
    return [replace(states[-1], q=states[0].q, qd=states[0].qd)]


def delay(ticks: int) -> Fault:
    return lambda states: states[-1 - ticks : len(states) - ticks or None] if len(states) > ticks else []


def slow(ticks: int) -> Fault:
    """Each arrives later than the one before, by a tick in so many."""
    return lambda states: [states[len(states) - 1 - len(states) // ticks]]


def reorder(block: int) -> Fault:
    """So many come together, the newest first."""
    return lambda states: reversed(states[-block:]) if len(states) % block == 0 else []


def duplicate(copies: int) -> Fault:
    return lambda states: [states[-1]] * copies


def drop(kept: int, of: int) -> Fault:
    return lambda states: states[-1:] if len(states) % of < kept else []


@dataclass
class ProxiedController:
    """A link whose states pass the proxy from a time on."""

    fault: Fault
    from_s: float = 0.0
    profile: ProfileName = "cb3"
    start_q: Joints = Q_REF
    clock: VirtualClock = field(default_factory=VirtualClock)
    noise: bool = False
    jitter_ticks: int = 0

    def __post_init__(self) -> None:
        settings = SimulatorSettings(
            PROFILES[self.profile], start_q=self.start_q, noise=self.noise, jitter_ticks=self.jitter_ticks
        )
        self.controller = Controller(settings)
        self.period_s = settings.profile.period_s
        self._spoiled: list[ArmState] = []
        self._arriving: deque[ArmState] = deque()
        self.outside_m = -np.inf
        self.fastest = 0.0

    def connect(self) -> None:
        self._arriving.clear()

    def receive(self, timeout_s: float) -> ArmState:
        until_s = self.clock.time_s + timeout_s
        while not self._arriving:
            if self.clock.time_s >= until_s:
                raise StateTimeoutError("No state came.")
            self.tick()
        return self._arriving.popleft()

    def tick(self) -> None:
        self.controller.advance()
        self.clock.time_s += self.period_s
        where = tip(self.controller.arm.q)
        self.outside_m = max(self.outside_m, float(np.max([BOX_LOW - where, where - BOX_HIGH])))
        self.fastest = max(self.fastest, float(np.abs(self.controller.arm.qd).max()))
        if self.controller.time_s <= self.from_s:
            self._arriving.append(self.controller.state)
        else:
            self._spoiled.append(self.controller.state)
            self._arriving.extend(self.fault(self._spoiled))

    def send(self, command: Command) -> None:
        self.controller.run(command)

    def dashboard(self, line: str) -> str:
        return line

    def close(self) -> None:
        self._arriving.clear()


def drive_to_the_edge(
    link: ProxiedController, order: SpeedJ | Callable[[], SpeedJ], most_s: float = 6.0
) -> DriverReport:
    """An agent that orders the same until the end, or anew each 40 ms, without looking; the last report."""
    end_s = link.clock.time_s + most_s
    every = round(0.04 / link.period_s)

    def script(agent: VirtualAgent, report: DriverReport) -> bool:
        if isinstance(order, SpeedJ):
            agent.wants(order)
        elif report.packages % every == 1:
            agent.wants(order())
        return link.clock.time_s >= end_s

    agent = VirtualAgent(link.clock, script)
    driver = Driver(link, Supervisor(REACHER_LIMITS, tip), StopHandler(), agent, link.clock)
    return driver.run()
