"""The link by the package ur_rtde (extra `ur-rtde`): its program on the controller takes the commands.

That program goes on with a speed for ever once it was told, so a client that dies would leave the arm moving. Its
watchdog is therefore set before the first motion, and again with each upload of the program: without a command or a
kick for a tenth of a second the controller stops the arm. States and the dashboard come as in the standard link.

The program reads its commands from registers, which outlive it: one that is uploaded after a stop would go on with the
speed from before. The package empties them when it connects, so it is connected anew for each upload.
"""

from __future__ import annotations

from typing import Any, assert_never

from cycletime.errors import InputError
from cycletime.extras import require_extras
from cycletime.robots.ur.links import StandardLink
from cycletime.robots.ur.rtde_client import Address
from cycletime.robots.ur.types import ArmState, Command, LinkError, MoveJ, ServoJ, SpeedJ, StopJ

_WATCHDOG_HZ = 10.0


class UrRtdeLink:
    """One controller at its standard ports."""

    def __init__(self, address: Address) -> None:
        """Say where it is; nothing is connected yet."""
        with require_extras("The link 'ur_rtde'"):
            import rtde_control
        if address != Address(address.host):
            raise InputError(f"The link 'ur_rtde' speaks to the standard ports alone, and not to {address}.")
        self._connect_control = rtde_control.RTDEControlInterface
        self._host = address.host
        self._standard = StandardLink(address)
        self._control: Any = None
        self._last: Command | None = None

    @property
    def period_s(self) -> float:
        """The time between two states."""
        return self._standard.period_s

    def connect(self) -> None:
        """Begin the stream of states, have the package upload its program, and set its watchdog."""
        self.close()
        try:
            self._standard.connect()
            self._upload()
        except LinkError:
            self.close()
            raise

    def receive(self, timeout_s: float) -> ArmState:
        """The newest state that was not received before; the watchdog hears that someone is there."""
        state = self._standard.receive(timeout_s)
        if self._last is None or isinstance(self._last, MoveJ | StopJ):  # the others are sent with every state
            self._call("kickWatchdog")
        return state

    def send(self, command: Command) -> None:
        """Give a command to the program on the controller, which is uploaded again where a stop has ended it.

        A stop returns when the arm stands; an upload takes about a second.
        """
        if not self._call("isProgramRunning"):
            if isinstance(command, StopJ):
                return  # nothing moves the arm
            self._control.disconnect()
            self._upload()
        match command:
            case SpeedJ():
                self._do("speedJ", list(command.qd), command.acceleration, command.time_s)
            case ServoJ():
                self._do("servoJ", list(command.q), 0.0, 0.0, command.time_s, command.lookahead_s, command.gain)
            case MoveJ():
                self._do("moveJ", list(command.q), *_speed_and_acceleration(command, self._standard), True)
            case StopJ():
                self._stop(command.deceleration)
            case _:
                assert_never(command)
        self._last = command

    def dashboard(self, line: str) -> str:
        """Ask the dashboard."""
        return self._standard.dashboard(line)

    def close(self) -> None:
        """End all connections, and the program on the controller."""
        if self._control is not None:
            control, self._control = self._control, None
            try:
                control.stopScript()
                control.disconnect()
            except RuntimeError:
                pass  # the controller is not there any more
        self._last = None
        self._standard.close()

    def _stop(self, deceleration: float) -> None:
        """End the thread that keeps a speed up, where there is one."""
        match self._last:
            case SpeedJ():
                self._do("speedStop", deceleration)
            case ServoJ():
                self._do("servoStop", deceleration)
            case _:
                self._call("stopJ", deceleration, True)

    def _upload(self) -> None:
        """Connect the package, which empties the registers and starts its program, and set the watchdog."""
        try:
            self._control = self._connect_control(self._host)
        except RuntimeError as error:
            raise LinkError(f"ur_rtde cannot connect: {error}.") from None
        self._do("setWatchdog", _WATCHDOG_HZ)
        self._last = None

    def _do(self, name: str, *values: Any) -> None:  # noqa: ANN401 - whatever the package's method takes
        if not self._call(name, *values):
            raise LinkError(f"The controller did not take {name}{values} from ur_rtde.")

    def _call(self, name: str, *values: Any) -> Any:  # noqa: ANN401 - as above
        if self._control is None:
            raise LinkError("The link is not connected: call connect() first.")
        try:
            return getattr(self._control, name)(*values)
        except RuntimeError as error:
            raise LinkError(f"ur_rtde's {name} failed: {error}.") from None


def _speed_and_acceleration(command: MoveJ, link: StandardLink) -> tuple[float, float]:
    """Of a move's leading joint; the package takes no time, which is met by a ramp in its first and last quarter."""
    if command.time_s <= 0:
        return command.speed, command.acceleration
    now = link.receive(1.0).target_q
    distance = max(abs(goal - start) for goal, start in zip(command.q, now, strict=True))
    speed = max(distance / (0.75 * command.time_s), 1e-3)
    return speed, 4 * speed / command.time_s
