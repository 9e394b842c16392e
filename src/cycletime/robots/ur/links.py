"""Links to a controller: the standard one, and one to a simulated controller in lock-step.

A line of `speedj` has a time after which it ends, so an arm whose client is gone stops by itself. In lock-step the
controller's time passes by one tick whenever a state is received, and a command goes with the next grant: what is
simulated does not depend on when anything is computed.
"""

from __future__ import annotations

from typing import TypeVar

from cycletime.errors import quote
from cycletime.robots.ur.rtde_client import Address, Connection, Countdown, RtdeClient
from cycletime.robots.ur.types import ArmState, Command, LinkError, StateTimeoutError, WireError
from cycletime.robots.ur.wire.dashboard import GREETING, LineParser, encode_line
from cycletime.robots.ur.wire.rtde import LOCKSTEP_INPUTS, lockstep_values
from cycletime.robots.ur.wire.script import script_line

_TIMEOUT_S = 2.0
"""For a connection, or a reply."""

_C = TypeVar("_C")


class StandardLink:
    def __init__(self, address: Address, timeout_s: float = _TIMEOUT_S) -> None:
        self._address, self._timeout_s = address, timeout_s
        self._states: RtdeClient | None = None
        self._scripts: Connection | None = None
        self._dashboard: Connection | None = None

    @property
    def period_s(self) -> float:
        return connected(self._states).period_s

    @property
    def version(self) -> str:
        return connected(self._states).version

    def connect(self) -> None:
        self.close()
        try:
            self._begin()
        except WireError as error:
            self.close()
            raise LinkError(
                f"What answers at {self._address.host} does not speak as a UR controller: {error}"
            ) from None
        except LinkError:
            self.close()
            raise

    def receive(self, timeout_s: float) -> ArmState:
        try:
            state = self._wait_for_state(timeout_s)
            if self._scripts is not None:
                self._scripts.drain()  # the real-time interface streams states as well, which nobody reads
        except WireError as error:
            raise LinkError(f"The controller at {self._address.host} sent what cannot be read: {error}") from None
        return state

    def send(self, command: Command) -> None:
        line = script_line(command)
        connected(self._scripts).send(line.encode("ascii") + b"\n")

    def dashboard(self, line: str) -> str:
        """Ask the dashboard; its connection is made when it is first needed, and again where it was lost."""
        if self._dashboard is not None:
            try:
                self._dashboard.drain()  # a reply that came too late answers no later question
                return self._ask(self._dashboard, line)
            except LinkError:
                self._close_dashboard()
        self._dashboard = self._open(self._address.dashboard, "dashboard")
        try:
            greeting = self._read_line(self._dashboard)
            if not greeting.startswith(GREETING.split(":")[0]):
                raise LinkError(
                    f"What answers at port {self._address.dashboard} is no dashboard: it says {quote(greeting)}."
                )
            return self._ask(self._dashboard, line)
        except LinkError:
            self._close_dashboard()
            raise

    def close(self) -> None:
        for connection in (self._states, self._scripts):
            if connection is not None:
                connection.close()
        self._states = self._scripts = None
        self._close_dashboard()

    def _open(self, port: int, what: str) -> Connection:
        return Connection(self._address.host, port, what, self._timeout_s)

    def _begin(self) -> None:
        self._scripts = self._open(self._address.realtime, "real-time interface")
        self._states = self._begin_states()

    def _wait_for_state(self, timeout_s: float) -> ArmState:
        client, countdown = connected(self._states), Countdown(timeout_s)
        while (state := client.newest(countdown.left_s())) is None:
            if not countdown.left_s():
                raise StateTimeoutError(f"The controller at {self._address.host} sent no state for {timeout_s:g} s.")
        return state

    def _begin_states(self, inputs: tuple[str, ...] = ()) -> RtdeClient:
        try:
            rtde = self._open(self._address.rtde, "RTDE interface")
        except LinkError as error:
            raise LinkError(f"{error} States come by RTDE alone, from software 3.4 on.") from None
        try:
            return RtdeClient(rtde, self._timeout_s, inputs)
        except Exception:
            rtde.close()
            raise

    def _ask(self, dashboard: Connection, line: str) -> str:
        dashboard.send(encode_line(line))
        return self._read_line(dashboard)

    def _read_line(self, dashboard: Connection) -> str:
        parser, countdown = LineParser(), Countdown(self._timeout_s)
        while countdown.left_s():
            if lines := parser.feed(dashboard.read(countdown.left_s())):
                return lines[0]
        raise LinkError(f"The dashboard at {self._address.host} did not reply within {self._timeout_s:g} s.")

    def _close_dashboard(self) -> None:
        if self._dashboard is not None:
            self._dashboard.close()
        self._dashboard = None


def connected(connection: _C | None) -> _C:
    if connection is None:
        raise LinkError("The link is not connected: call connect() first.")
    return connection


_LOCKSTEP_TIMEOUT_S = 10.0
"""For a connection, or a reply; nothing here is in a hurry."""


class LockstepLink(StandardLink):
    """A simulated controller in lock-step, of which this is the only client that moves it."""

    def __init__(self, address: Address) -> None:
        super().__init__(address, _LOCKSTEP_TIMEOUT_S)
        self._command: Command | None = None
        self._tick = 0

    def _begin(self) -> None:
        self._states = self._begin_states(LOCKSTEP_INPUTS)
        self._tick = round(self._wait_for_state(_LOCKSTEP_TIMEOUT_S).time_s / self.period_s)

    def receive(self, timeout_s: float) -> ArmState:
        """Let one tick pass, with the command that was sent last, if one was; the state at its end."""
        self._tick += 1
        command, self._command = self._command, None
        connected(self._states).write(lockstep_values(self._tick, command))
        # Who asks for one within a second means the arm's time.
        return self._wait_for_state(max(timeout_s, self._timeout_s))

    def send(self, command: Command) -> None:
        """Send a command with the next tick; of several the last counts, as on a controller."""
        self._command = command
