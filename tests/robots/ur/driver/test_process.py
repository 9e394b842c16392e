"""The driver's process and the agent's link to it, with a simulated controller; bounds on times are for benchmarks."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace

import pytest

from cycletime.errors import InputError
from cycletime.robots.ur.driver.channel import DriverReport, Phase
from cycletime.robots.ur.driver.driver import DriverSettings, DriverTimeouts, RobotStoppedError
from cycletime.robots.ur.driver.link import DriverLink
from cycletime.robots.ur.rtde_client import Address
from cycletime.robots.ur.simulator.launch import SimulatedController, simulated_controller
from cycletime.robots.ur.types import LinkError, MoveJ, SpeedJ, StateTimeoutError
from cycletime.ur5 import Q_REF
from tests.processes import started
from tests.robots.ur.virtual import elbow

PACE = 20.0
"""Fast, for stops that are released after 5.5 s."""
LONG_S = 60.0
"""Within which everything happens, on however busy a machine."""
PATIENT = DriverTimeouts(move_age_s=LONG_S * PACE, give_up_s=LONG_S * PACE)
"""At this pace a controller is usually given up after half a real second, in which a busy machine may not find it."""


def settings_for(robot: SimulatedController, pace: float = 1.0) -> DriverSettings:
    return DriverSettings(
        Address(robot.address, robot.ports.rtde, robot.ports.realtime, robot.ports.dashboard), pace=pace
    )


@pytest.fixture(scope="module")
def robot() -> Iterator[SimulatedController]:
    with simulated_controller() as running:
        yield running


@pytest.fixture
def link(robot: SimulatedController) -> Iterator[DriverLink]:
    driven = DriverLink(settings_for(robot))
    driven.connect()
    yield driven
    driven.close()


def speed_of(robot: SimulatedController) -> float:
    speeds: list[float] = json.loads(robot.fault("state"))["qd"]
    return max(map(abs, speeds))


def wait_until(what: Callable[[], bool], meanwhile: Callable[[], object] = lambda: time.sleep(0.005)) -> None:
    end_s = time.monotonic() + LONG_S
    while not what():
        assert time.monotonic() < end_s
        meanwhile()


def bring_to_speed(robot: SimulatedController, link: DriverLink) -> None:
    """Elbow forth, and back where a test before has left it far away."""
    speed = -0.3 if link.receive(LONG_S).q[2] > 0 else 0.3

    def drive() -> None:
        link.send(SpeedJ(elbow(speed), 5.0))
        link.receive(LONG_S)

    wait_until(lambda: speed_of(robot) > 0.25, drive)


def test_the_driver_loads_neither_jax_nor_any_other_heavy_package() -> None:
    program = "import sys, cycletime.robots.ur.driver.process; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in ran.stdout.split()}
    assert "numpy" in loaded
    assert not loaded & {"jax", "jaxlib", "torch", "gymnasium", "pyarrow", "scipy", "rich", "tyro"}


def test_an_agent_drives_the_arm_and_leaves_it_standing(robot: SimulatedController, link: DriverLink) -> None:
    bring_to_speed(robot, link)
    times = [link.receive(LONG_S).time_s for _ in range(5)]
    assert times == sorted(set(times))
    assert link.period_s == 0.008
    assert link.report.phase is Phase.DRIVING
    assert link.report.sent > 0
    link.close()
    assert speed_of(robot) < 0.01
    with pytest.raises(LinkError, match="The link is not connected"):
        link.receive(1.0)


def test_orders_outside_the_limits_are_refused_with_the_command(link: DriverLink) -> None:
    link.send(MoveJ((*Q_REF[:2], 3.0, *Q_REF[3:])))
    with pytest.raises(InputError, match=r"The arm must not do MoveJ\(q=.*3\.0.*outside its limits"):
        wait_until(lambda: False, lambda: link.receive(LONG_S))


def test_a_killed_driver_is_noticed_and_the_arm_stops_by_itself(robot: SimulatedController, link: DriverLink) -> None:
    bring_to_speed(robot, link)
    assert link._process is not None
    os.kill(link._process.pid, signal.SIGKILL)
    with pytest.raises(LinkError, match="The driver's process has died with status -9"):
        wait_until(lambda: False, lambda: link.receive(LONG_S))
    wait_until(lambda: speed_of(robot) < 0.01)


def test_a_driver_that_is_asked_to_end_stops_the_arm_first(robot: SimulatedController, link: DriverLink) -> None:
    bring_to_speed(robot, link)
    assert link._process is not None
    os.kill(link._process.pid, signal.SIGTERM)
    with pytest.raises(RobotStoppedError, match="The driver was asked to end, and has stopped the arm"):
        wait_until(lambda: False, lambda: link.receive(LONG_S))
    assert speed_of(robot) < 0.01


AGENT = """
import sys
from cycletime.robots.ur.driver.link import DriverLink
from cycletime.robots.ur.driver.driver import DriverSettings
from cycletime.robots.ur.types import SpeedJ
link = DriverLink(DriverSettings.from_text(sys.argv[1]))
link.connect()
speed = -0.3 if link.receive(60.0).q[2] > 0 else 0.3
print(link._process.pid, flush=True)
while True:
    link.send(SpeedJ((0, 0, speed, 0, 0, 0), 5.0))
    link.receive(60.0)
"""


def test_when_the_agent_is_killed_the_driver_stops_the_arm_and_ends(robot: SimulatedController) -> None:
    words = [sys.executable, "-c", AGENT, settings_for(robot).as_text()]
    with started(words, stderr=None) as agent:
        assert agent.stdout is not None
        driver = int(agent.stdout.readline())
        wait_until(lambda: speed_of(robot) > 0.25)
        agent.kill()
        wait_until(lambda: speed_of(robot) < 0.01)
        wait_until(lambda: not is_running(driver))


def is_running(process: int) -> bool:
    """Whether it is there, and no zombie that nobody asked about."""
    try:
        with open(f"/proc/{process}/stat") as stat:  # noqa: PTH123 - no path of files
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_where_there_is_no_controller_the_sentence_says_so() -> None:
    link = DriverLink(DriverSettings(Address("127.0.0.1", 9, 9, 9)))
    with pytest.raises(LinkError, match=r"The real-time interface of the controller at 127\.0\.0\.1:9 does not answer"):
        link.connect()


def receive_if_any(link: DriverLink) -> None:
    with suppress(StateTimeoutError):
        link.receive(0.02)


def test_stops_and_losses_on_a_network_are_survived_until_a_person_intervenes() -> None:
    """One fault after the other, on one controller that is 20 times as fast."""
    with (
        simulated_controller(pace=PACE) as robot,
        closing(DriverLink(replace(settings_for(robot, PACE), timeouts=PATIENT))) as link,
    ):
        link.connect()

        def wait_for(what: Callable[[DriverReport], bool]) -> None:
            wait_until(lambda: what(link.report) and link.report.phase is Phase.DRIVING, lambda: receive_if_any(link))

        robot.fault("freeze 10")
        wait_for(lambda report: report.connections >= 2)
        before = link.report.connections
        robot.fault("drop clients")
        wait_for(lambda report: report.connections > before)
        robot.fault("protective stop")
        wait_for(lambda report: report.protective_stops == 1)
        robot.fault("emergency stop")
        says = "safety mode is ROBOT_EMERGENCY_STOP: see to it at the teach pendant"
        with pytest.raises(RobotStoppedError, match=says):
            wait_until(lambda: False, lambda: receive_if_any(link))


def test_settings_survive_the_command_line_and_wrong_ones_are_refused() -> None:
    settings = DriverSettings(Address("robot", 1, 2, 3), pace=2.5)
    assert DriverSettings.from_text(settings.as_text()) == settings
    with pytest.raises(InputError, match="0 is no pace"):
        DriverSettings(Address("robot"), pace=0)
