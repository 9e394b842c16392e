"""Orders and reports survive the way through shared memory."""

import math

import pytest

from cycletime.errors import InputError
from cycletime.robots.ur.driver.channel import (
    DriverReport,
    Order,
    Phase,
    SharedMemory,
    decode_order,
    decode_report,
    encode_order,
    encode_report,
)
from cycletime.robots.ur.safety import Override
from cycletime.robots.ur.types import (
    ArmState,
    Command,
    MoveJ,
    RobotMode,
    RuntimeState,
    SafetyMode,
    SpeedJ,
    StopJ,
)

SIX = (0.1, -0.2, 0.3, -0.4, 0.5, -0.6)
STATE = ArmState(
    12.5,
    SIX,
    SIX[::-1],
    tuple(2 * each for each in SIX),
    tuple(3 * each for each in SIX),
    RobotMode.IDLE,
    SafetyMode.REDUCED,
    RuntimeState.PLAYING,
    0.75,
)


@pytest.mark.parametrize(
    "command",
    [None, SpeedJ(SIX, 2.0, 0.016), MoveJ(SIX, 1.0, 2.0, 3.0), StopJ(3.5)],
)
def test_orders_of_every_kind(command: Command | None) -> None:
    order = Order(7, 1.5, 2.5, command)
    assert decode_order(encode_order(order)) == order


def test_what_is_no_number_reaches_the_supervisor_as_such() -> None:
    command = decode_order(encode_order(Order(1, 0.0, 0.0, SpeedJ((math.nan,) * 6)))).command
    assert isinstance(command, SpeedJ)
    assert all(map(math.isnan, command.qd))


def test_a_command_for_another_arm_is_refused() -> None:
    with pytest.raises(InputError, match="A command has 7 joint values: an arm has 6"):
        encode_order(Order(1, 0.0, 0.0, SpeedJ((0.0,) * 7)))


@pytest.mark.parametrize("state", [None, STATE])
@pytest.mark.parametrize("text", ["", "The controller says 'nö', at once."])
def test_reports_with_and_without_state_and_text(state: ArmState | None, text: str) -> None:
    report = DriverReport(Phase.HELD, 1.5, 0.008, 100, 2, 90, 3, Override.BOX, 12, 1, 2, state, text)
    assert decode_report(encode_report(report)) == report


def test_a_report_rings_the_bell_of_who_waits() -> None:
    ours = SharedMemory()
    theirs = SharedMemory(ours.files)
    assert ours.report() is None
    assert theirs.order() is None
    theirs.publish(DriverReport(Phase.DRIVING, state=STATE))
    ours.wait_for_bell(60.0)
    ours.wait_for_bell(0.0)  # it has not rung again
    assert ours.report() == DriverReport(Phase.DRIVING, state=STATE)
    ours.leave_order(Order(1, 2.0, 3.0, StopJ()))
    assert theirs.order() == Order(1, 2.0, 3.0, StopJ())
    ours.close()
