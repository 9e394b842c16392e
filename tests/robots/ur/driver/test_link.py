"""The agent's side of a driver, with reports that a test leaves in its place."""

from collections.abc import Iterator

import pytest

from cycletime.errors import InputError
from cycletime.robots.ur.driver.channel import DriverReport, Phase, SharedMemory
from cycletime.robots.ur.driver.driver import DriverSettings, RobotStoppedError
from cycletime.robots.ur.driver.link import DriverLink
from cycletime.robots.ur.reacher_env import MOVE_TO_START
from cycletime.robots.ur.rtde_client import Address
from cycletime.robots.ur.safety import Override
from cycletime.robots.ur.types import ArmState, LinkError, MoveInterruptedError, SpeedJ, StateTimeoutError

ZEROS = (0.0,) * 6
STATE = ArmState(1.0, ZEROS, ZEROS, ZEROS, ZEROS)


@pytest.fixture
def driver() -> SharedMemory:
    """What the driver's process would have."""
    return SharedMemory()


@pytest.fixture
def link(driver: SharedMemory) -> Iterator[DriverLink]:
    made = DriverLink(DriverSettings(Address("robot")))
    made._memory = driver  # as if a process had been started
    yield made
    made.close()


def test_a_state_is_received_once_and_the_newest_counts(driver: SharedMemory, link: DriverLink) -> None:
    for packages in (1, 2, 3):
        driver.publish(DriverReport(Phase.DRIVING, period_s=0.002, packages=packages, state=STATE))
    assert (link.receive(10.0), link.period_s) == (STATE, 0.002)
    with pytest.raises(StateTimeoutError, match=r"The driver sent no state for 0\.01 s"):
        link.receive(0.01)


def test_asking_is_a_sign_of_life_and_changes_no_order(driver: SharedMemory, link: DriverLink) -> None:
    driver.publish(DriverReport(Phase.DRIVING, packages=1, state=STATE))
    link.send(SpeedJ(ZEROS))
    ordered = driver.order()
    link.receive(10.0)
    asked = driver.order()
    assert ordered is not None
    assert asked is not None
    assert (asked.number, asked.command, asked.sent_s) == (ordered.number, ordered.command, ordered.sent_s)
    assert asked.alive_s > ordered.alive_s


def test_silence_is_explained_by_the_driver(driver: SharedMemory, link: DriverLink) -> None:
    driver.publish(DriverReport(Phase.RECONNECTING, text="The connection was lost."))
    with pytest.raises(StateTimeoutError, match=r"^The connection was lost\.$"):
        link.receive(0.01)


def test_the_end_is_final(driver: SharedMemory, link: DriverLink) -> None:
    driver.publish(DriverReport(Phase.ENDED, packages=5, state=STATE, text="An emergency stop."))
    with pytest.raises(RobotStoppedError, match=r"^An emergency stop\.$"):
        link.receive(10.0)


@pytest.mark.parametrize(
    ("override", "error", "says"),
    [
        (Override.GOAL_OUTSIDE, InputError, r"The arm must not do MoveJ\(.*outside its limits"),
        (Override.NOT_A_NUMBER, InputError, r"The arm must not do MoveJ"),
        (Override.TOO_OLD, LinkError, "complete a move, since the agent gave no sign of life for 1 s"),
        (Override.BOX, LinkError, "complete a move, since it would have left the safety box"),
        (Override.UNSEEN, MoveInterruptedError, "complete a move, since the controller could not be heard"),
    ],
)
def test_a_move_that_will_not_be_completed_is_not_waited_for(
    driver: SharedMemory, link: DriverLink, override: Override, error: type[Exception], says: str
) -> None:
    link.send(MOVE_TO_START)
    driver.publish(DriverReport(Phase.DRIVING, packages=1, state=STATE, override=override, order=1))
    with pytest.raises(error, match=says):
        link.receive(10.0)
    link.send(MOVE_TO_START)  # a new order, which nobody has ruled on
    assert link.receive(10.0) == STATE


@pytest.mark.parametrize("override", list(Override))
def test_overridden_speeds_are_no_errors(driver: SharedMemory, link: DriverLink, override: Override) -> None:
    link.send(SpeedJ(ZEROS))
    driver.publish(DriverReport(Phase.DRIVING, packages=1, state=STATE, override=override, order=1))
    assert link.receive(10.0) == STATE
    assert link.report.override is override
