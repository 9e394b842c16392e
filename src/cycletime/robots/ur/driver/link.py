"""The agent's side of a driver: a link like any other, whose other end is a process on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

from cycletime.errors import InputError
from cycletime.processes import self_ending_environment
from cycletime.robots.clock import MonotonicClock, WallClock
from cycletime.robots.ur.driver.channel import DriverReport, Order, Phase, SharedMemory
from cycletime.robots.ur.driver.driver import DriverSettings, RobotStoppedError
from cycletime.robots.ur.links import StandardLink, connected
from cycletime.robots.ur.rtde_client import Countdown
from cycletime.robots.ur.safety import Override
from cycletime.robots.ur.types import ArmState, Command, LinkError, MoveInterruptedError, MoveJ, StateTimeoutError

_CLOSE_TIMEOUT_S = 2.0
"""For a driver to end, beyond the time in which the arm comes to rest."""
_HEARTBEAT_S = 0.05
"""Between signs of life, while a state is waited for."""
_START_TIMEOUT_S = 20.0


class DriverLink:
    """An arm that is driven by a process of its own.

    Asking for a state, and ordering something, are signs of life: without any the driver stops the arm. After a stop,
    by whomever, what was ordered before is void.
    """

    def __init__(self, settings: DriverSettings) -> None:
        self._settings = settings
        self.pace = settings.pace
        self.holds_s = settings.timeouts.order_age_s
        """How long a speed goes on that is not ordered anew."""
        self.sight_s = settings.timeouts.silent_s * max(1.0, self.pace)
        """How long the arm is driven without a state that is believed."""
        self.clock: MonotonicClock = WallClock(settings.pace)
        self._questions = StandardLink(settings.address)
        self._memory: SharedMemory | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._order = Order(0, 0.0, 0.0)
        self.received = DriverReport(Phase.STARTING)

    @property
    def period_s(self) -> float:
        return self.report.period_s

    @property
    def report(self) -> DriverReport:
        return (self._memory and self._memory.report()) or DriverReport(Phase.STARTING)

    def connect(self) -> None:
        self.close()
        self._memory, self.received = SharedMemory(), DriverReport(Phase.STARTING)
        arguments = self._settings.as_text(), *map(str, (*self._memory.files, os.getpid()))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cycletime.robots.ur.driver.process", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=self._memory.files,
            env=self_ending_environment(),  # it stops the arm when the agent is dead
            start_new_session=True,  # Ctrl-C is for the agent, which then closes
        )
        try:
            self.receive(_START_TIMEOUT_S)
        except RobotStoppedError as error:
            self.close()
            raise LinkError(str(error)) from None
        except LinkError:
            self.close()
            raise

    def receive(self, timeout_s: float) -> ArmState:
        memory, countdown = connected(self._memory), Countdown(timeout_s)
        while True:
            self._order = replace(self._order, alive_s=self.clock.now_s())  # a sign of life
            memory.leave_order(self._order)
            left_s, report = countdown.left_s(), self._checked_report()
            if report.packages > self.received.packages and report.state is not None:
                self.received = report
                return report.state
            if not left_s:
                raise StateTimeoutError(report.text or f"The driver sent no state for {timeout_s:g} s.")
            memory.wait_for_bell(min(left_s, _HEARTBEAT_S))

    def send(self, command: Command) -> None:
        """Order something; it holds until it is too old, or something else is ordered."""
        now_s = self.clock.now_s()
        order = Order(self._order.number + 1, now_s, now_s, command)
        connected(self._memory).leave_order(order)
        self._order = order

    def dashboard(self, line: str) -> str:
        return self._questions.dashboard(line)

    def close(self) -> None:
        """Have the driver stop the arm, and wait until it has ended."""
        self._questions.close()
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(self._settings.timeouts.rest_s + _CLOSE_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()  # its last line ends by itself
                self._process.wait()
        if self._memory is not None:
            self._memory.close()
        self._process = self._memory = None

    def _checked_report(self) -> DriverReport:
        status = None if self._process is None else self._process.poll()
        report = self.report  # after the status: who ends leaves a report first
        if report.phase is Phase.ENDED:
            raise RobotStoppedError(report.text or "The driver was asked to end, and has stopped the arm.")
        if status is not None:
            raise LinkError(f"The driver's process has died with status {status}; the arm stops by itself.")
        if report.order == self._order.number and isinstance(self._order.command, MoveJ):
            self._check_move(report.override)
        return report

    def _check_move(self, override: Override) -> None:
        """A speed that was overridden is followed by the next; a move that does not happen would be waited for."""
        if override in (Override.GOAL_OUTSIDE, Override.NOT_A_NUMBER):
            raise InputError(
                f"The arm must not do {self._order.command}: that, or the way there, is outside its limits."
            )
        why = {
            Override.TOO_OLD: f"the agent gave no sign of life for {self._settings.timeouts.move_age_s:g} s",
            Override.BOX: "it would have left the safety box",
            Override.UNSEEN: "the controller could not be heard",
        }
        if override in why:
            kind = MoveInterruptedError if override is Override.UNSEEN else LinkError
            raise kind(f"The driver did not let the arm complete a move, since {why[override]}.")
