import pytest

from cycletime.robots.ur.types import Command, MoveJ, SpeedJ, StopJ, WireError, unpack_command
from cycletime.robots.ur.wire.rtde import LOCKSTEP_INPUTS, lockstep_values

Q = (0.1, -0.2, 0.3, 0.4, 0.5, 0.6)


@pytest.mark.parametrize("command", [SpeedJ(Q, 2.0, 0.04), MoveJ(Q, time_s=2.0), StopJ(3.0), None])
def test_a_command_comes_back_from_the_registers(command: Command | None) -> None:
    kind, *values, grant = lockstep_values(17, command)
    assert len(values) + 2 == len(LOCKSTEP_INPUTS)
    assert grant == 17
    assert unpack_command(int(kind), values) == command


def test_an_unknown_command_is_refused() -> None:
    with pytest.raises(WireError, match="no command 9"):
        unpack_command(9, ())
