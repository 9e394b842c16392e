"""The link to a simulated controller in lock-step: its time passes by one tick whenever a state is received.

A command goes with the next grant, so that what is simulated does not depend on when anything is computed, and is the
same each time to the last bit.
"""

from __future__ import annotations

from cycletime.robots.ur.connection import Address, Connection, Countdown
from cycletime.robots.ur.link import StandardLink
from cycletime.robots.ur.states import RtdeStates
from cycletime.robots.ur.types import ArmState, Command, LinkError, SilentError
from cycletime.robots.ur.wire.errors import WireError
from cycletime.robots.ur.wire.lockstep import INPUTS, lockstep_values

_TIMEOUT_S = 10.0
"""For a connection, or a reply; nothing here is in a hurry."""


class LockstepLink:
    """A simulated controller in lock-step, of which this is the only client that moves it."""

    def __init__(self, address: Address, patience_s: float = _TIMEOUT_S) -> None:
        """Say where it is; nothing is connected yet.

        Args:
            address: Of the controller.
            patience_s: How long a state is waited for at least. No time passes meanwhile, and on a busy machine the
                controller may have to wait for its turn: who asks for a state within a second means the arm's time.
        """
        self._address = address
        self._patience_s = patience_s
        self._standard = StandardLink(address)
        self._states: RtdeStates | None = None
        self._command: Command | None = None
        self._tick = 0

    @property
    def period_s(self) -> float:
        """The time between two states."""
        return self._connected.period_s

    def connect(self) -> None:
        """Agree on the registers of lock-step, and learn which tick it is.

        Raises:
            LinkError: if nothing is there, something else answers, or another client moves the controller.
        """
        self.close()
        connection = Connection(self._address.host, self._address.rtde, "RTDE interface", _TIMEOUT_S)
        try:
            self._states = RtdeStates.begin(connection, _TIMEOUT_S, INPUTS)
            self._tick = round(self._next(_TIMEOUT_S).time_s / self.period_s)
        except WireError as error:
            connection.close()
            raise LinkError(f"What answers at {self._address.host} does not speak RTDE: {error}") from None
        except LinkError:
            connection.close()
            raise

    def receive(self, timeout_s: float) -> ArmState:
        """Let one tick pass, with the command that was sent last, if one was; the state at its end.

        Raises:
            SilentError: if no state comes in time.
            LinkError: if the connection is lost.
        """
        self._tick += 1
        command, self._command = self._command, None
        self._connected.write(lockstep_values(self._tick, command))
        return self._next(max(timeout_s, self._patience_s))

    def send(self, command: Command) -> None:
        """Send a command with the next tick; of several the last counts, as on a controller."""
        self._command = command

    def dashboard(self, line: str) -> str:
        """Ask the dashboard.

        Raises:
            LinkError: if there is no reply.
        """
        return self._standard.dashboard(line)

    def close(self) -> None:
        """End all connections."""
        if self._states is not None:
            self._states.close()
        self._states = None
        self._standard.close()

    @property
    def _connected(self) -> RtdeStates:
        if self._states is None:
            raise LinkError("The link is not connected: call connect() first.")
        return self._states

    def _next(self, timeout_s: float) -> ArmState:
        countdown = Countdown(timeout_s)
        while (state := self._connected.newest(countdown.left_s())) is None:
            if not countdown.left_s():
                raise SilentError(f"The controller at {self._address.host} sent no state for {timeout_s:g} s.")
        return state
