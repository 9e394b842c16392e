"""The driver's loop: on each package of the controller, report to the agent, check its command, send one command.

The dead-man chain, each level for itself: an order that grows too old makes the driver stop the arm; a driver that dies
sends no more lines, and each line ends by itself after some milliseconds, whereupon the arm brakes.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from cycletime.errors import RunError
from cycletime.robots.clock import MonotonicClock, WallClock
from cycletime.robots.ur.driver.channel import DriverReport, Order, Phase
from cycletime.robots.ur.freshness import LATE_S, Freshness
from cycletime.robots.ur.rtde_client import Address
from cycletime.robots.ur.safety import REACHER_LIMITS, ArmLimits, Override, StopAction, StopHandler, Supervisor
from cycletime.robots.ur.types import (
    CONNECTION_TIMEOUT_S,
    ArmState,
    Command,
    LinkError,
    MoveJ,
    RobotLink,
    SpeedJ,
    StateTimeoutError,
    StopJ,
)

_REST_PACKAGES = 5
"""In a row: an arm that swings back passes through a stand."""


class RobotStoppedError(RunError):
    """The arm was stopped for good: one sentence says why."""


class StaleStateError(StateTimeoutError):
    """A state came that is not believed."""


@dataclass(frozen=True)
class DriverTimeouts:
    """How long what may last, in seconds of the driver's clock."""

    order_age_s: float = 0.2
    """An order older than this is not executed any more: the arm stops."""
    move_age_s: float = 1.0
    """A move goes on for so long without a sign of life: its path was checked, and an agent that died is noticed."""
    line_s: float = 0.016
    """After which a line ends, if no other came: enough to bridge jitter, and no more."""
    silent_s: float = 0.1
    """Without a state that is believed for this long, a stop is sent to the arm."""
    late_s: float = LATE_S
    """A state that comes later than this is not believed; in real seconds, since machines make it late."""
    lost_s: float = 1.0
    """Without a state for this long, the connection is made again."""
    retry_s: float = 0.5
    give_up_s: float = CONNECTION_TIMEOUT_S
    """Without a state for this long they end, and the run with them."""
    rest_s: float = 3.0
    """How long the arm is watched after its last stop, at most."""


class DriverChannel(Protocol):
    def order(self) -> Order | None: ...

    def publish(self, report: DriverReport) -> None: ...

    def agent_is_gone(self) -> bool:
        """Whether nobody is left to give orders, or a signal asked to end."""


class Driver:
    def __init__(
        self,
        link: RobotLink,
        supervisor: Supervisor,
        stops: StopHandler,
        channel: DriverChannel,
        clock: MonotonicClock,
        timeouts: DriverTimeouts | None = None,
        freshness: Freshness | None = None,
    ) -> None:
        self._link, self._supervisor, self._stops, self._channel, self._clock = link, supervisor, stops, channel, clock
        self._timeouts = timeouts or DriverTimeouts()
        self._freshness = freshness or Freshness()
        self._report = DriverReport(Phase.STARTING)
        self._last_state_s = 0.0  # when the newest package came
        self._connected_s = 0.0
        self._started_order = 0  # the order whose command was sent last
        self._finished_order = 0  # the last order that is over, or void

    def run(self) -> DriverReport:
        """Drive until the agent is gone, or the arm was stopped for good; the arm stands in the end."""
        reason = ""
        try:
            self._connect()
            self._last_state_s = self._connected_s
            while not self._channel.agent_is_gone():
                self._step()
        except RunError as error:
            reason = str(error)
        finally:
            self._come_to_rest()
            self._publish(phase=Phase.ENDED, text=reason)
        return self._report

    def _step(self) -> None:
        try:
            self._answer(self._receive())
        except StateTimeoutError as error:
            self._handle_silence(error)
        except LinkError as error:
            self._reconnect(error)

    def _receive(self) -> ArmState:
        """A state that is believed; any other is none."""
        state = self._link.receive(self._timeouts.silent_s)
        if why := self._freshness.check(self._clock.now_s(), state):
            raise StaleStateError(why)
        return state

    def _answer(self, state: ArmState) -> None:
        if self._report.state is None or state.time_s != self._report.state.time_s:  # else it was sent before
            self._last_state_s = self._clock.now_s()
        wish = self._stops.see(state, state.time_s)  # the controller refuses a release by its own clock
        self._record_state(state, Phase.DRIVING if wish is StopAction.GO_ON else Phase.HELD)
        match wish:
            case StopAction.GO_ON:
                self._execute_order(state)
            case StopAction.UNLOCK:
                self._ask_for_release()
            case StopAction.ABORT:
                raise RobotStoppedError(self._stops.reason)
            case StopAction.WAIT:
                self._void_orders()

    def _execute_order(self, state: ArmState) -> None:
        order = self._channel.order()
        if order is None or order.command is None or order.number <= self._finished_order:
            return
        if isinstance(order.command, SpeedJ):  # sent anew with each package, for as long as the agent stands by it
            if self._clock.now_s() - order.sent_s > self._timeouts.order_age_s:
                self._end(order, Override.TOO_OLD)
            else:
                self._send_ruled(state, order, replace(order.command, time_s=self._timeouts.line_s))
        elif order.number != self._started_order:
            self._send_ruled(state, order, order.command)
        elif isinstance(order.command, MoveJ):
            if self._clock.now_s() - order.alive_s > self._timeouts.move_age_s:
                self._end(order, Override.TOO_OLD)
            elif self._supervisor.must_stop(state):
                self._end(order, Override.BOX)

    def _send_ruled(self, state: ArmState, order: Order, command: Command) -> None:
        ruling = self._supervisor.rule(state, command)
        self._send(ruling.command)
        self._started_order = order.number
        self._note(order, ruling.override)

    def _end(self, order: Order, why: Override) -> None:
        self._finished_order = order.number
        self._stop()
        self._note(order, why)

    def _note(self, order: Order, override: Override) -> None:
        overridden = self._report.overridden + (override is not Override.NONE)
        self._report = replace(self._report, override=override, overridden=overridden, order=order.number)

    def _stop(self) -> None:
        self._send(StopJ(self._supervisor.limits.stop))

    def _send(self, command: Command) -> None:
        self._link.send(command)
        self._freshness.sent(command)
        self._report = replace(self._report, sent=self._report.sent + 1)

    def _void_orders(self) -> None:
        """What was ordered before a stop is not wanted after it."""
        if order := self._channel.order():
            self._finished_order = max(self._finished_order, order.number)

    def _void_unseen_orders(self) -> bool:
        """Out of sight nothing goes on but a move that has begun: its path was checked; whether all is void."""
        order = self._channel.order()
        if order is None or order.number <= self._finished_order:
            return True
        if isinstance(order.command, MoveJ) and order.number == self._started_order:
            return False
        self._finished_order = order.number
        self._note(order, Override.UNSEEN)
        return True

    def _ask_for_release(self) -> None:
        self._void_orders()
        try:
            self._link.dashboard("close safety popup")
            self._stops.unlock_replied(self._link.dashboard("unlock protective stop"))
        except LinkError as error:
            self._stops.unlock_replied(str(error))

    def _handle_silence(self, error: StateTimeoutError) -> None:
        silence_s = self._clock.now_s() - max(self._last_state_s, self._connected_s)
        if silence_s >= self._timeouts.lost_s:
            self._reconnect(error)
        elif self._report.phase is not Phase.SILENT and silence_s > 0.99 * self._timeouts.silent_s:
            self._publish(phase=Phase.SILENT, text=str(error))
            try:
                if self._void_unseen_orders():
                    self._stop()
            except LinkError as lost:
                self._reconnect(lost)

    def _reconnect(self, error: LinkError) -> None:
        """Try until it works; meanwhile the arm stands, since its last line has ended, or completes a move."""
        self._void_unseen_orders()
        self._publish(phase=Phase.RECONNECTING, text=str(error))
        while not self._channel.agent_is_gone():
            now_s = self._clock.now_s()
            if now_s >= self._last_state_s + self._timeouts.give_up_s:
                raise LinkError(
                    f"The controller was lost and not found again in {self._timeouts.give_up_s:g} s: {error}"
                )
            self._link.close()
            try:
                self._connect()
                return
            except LinkError as again:
                error = again
            self._clock.sleep_until(now_s + self._timeouts.retry_s)

    def _connect(self) -> None:
        self._link.connect()
        self._freshness.restart()
        self._connected_s = self._clock.now_s()
        self._report = replace(self._report, connections=self._report.connections + 1)

    def _come_to_rest(self) -> None:
        until_s = self._clock.now_s() + self._timeouts.rest_s
        try:
            if self._report.packages:
                self._stop()
                stands = 0
                while stands < _REST_PACKAGES and self._clock.now_s() < until_s:
                    with suppress(StaleStateError):
                        state = self._receive()
                        self._record_state(state, self._report.phase)
                        stands = stands + 1 if state.stands else 0
        except RunError:
            pass  # its last line ends by itself
        finally:
            self._link.close()

    def _record_state(self, state: ArmState, phase: Phase) -> None:
        before, missed = self._report.state, 0
        if before is not None:
            missed = max(0, round((state.time_s - before.time_s) / self._link.period_s) - 1)
        self._publish(
            state=state,
            received_s=self._clock.now_s(),
            period_s=self._link.period_s,
            packages=self._report.packages + 1,
            missed=self._report.missed + missed,
            protective_stops=self._stops.count,
            phase=phase,
            text="",
        )

    def _publish(self, **news: object) -> None:
        self._report = replace(self._report, **news)  # type: ignore[arg-type]  # fields of a report
        self._channel.publish(self._report)


@dataclass(frozen=True)
class DriverSettings:
    address: Address
    limits: ArmLimits = REACHER_LIMITS
    timeouts: DriverTimeouts = field(default_factory=DriverTimeouts)
    pace: float = 1.0
    """A simulated controller's seconds in a real one."""

    def __post_init__(self) -> None:
        WallClock(self.pace)

    def as_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> DriverSettings:
        parts = json.loads(text)
        limits: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in parts["limits"].items()
        }
        return cls(Address(**parts["address"]), ArmLimits(**limits), DriverTimeouts(**parts["timeouts"]), parts["pace"])
