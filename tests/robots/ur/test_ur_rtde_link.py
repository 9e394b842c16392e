"""The link by ur_rtde: what it asks of that package, with one that takes notes; and the package itself, where it is."""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from cycletime.errors import InputError, NotInstalledError
from cycletime.robots.ur import ur_rtde_link
from cycletime.robots.ur.driver.driver import DriverSettings
from cycletime.robots.ur.driver.link import DriverLink
from cycletime.robots.ur.links import StandardLink
from cycletime.robots.ur.rtde_client import Address
from cycletime.robots.ur.simulator.launch import SimulatedController, simulated_controller
from cycletime.robots.ur.simulator.server import Ports
from cycletime.robots.ur.types import Command, LinkError, MoveJ, SafetyMode, ServoJ, SpeedJ, StopJ
from cycletime.robots.ur.ur_rtde_link import UrRtdeLink
from cycletime.ur5 import Q_REF
from tests.robots.ur.virtual import VirtualArm, VirtualClock, elbow


class Control:
    """ur_rtde's interface for commands, which takes notes."""

    calls: list[tuple[object, ...]]
    running = True
    takes = True

    def __init__(self, host: str) -> None:
        if host == "nowhere":
            raise RuntimeError("Timeout connecting to UR dashboard server.")
        self.calls = [("connected", host)]
        made.append(self)

    def __getattr__(self, name: str):  # type: ignore[no-untyped-def]  # noqa: ANN204 - any method of the package
        def call(*values: object) -> bool:
            self.calls.append((name, *values))
            return self.running if name == "isProgramRunning" else self.takes

        return call

    def told(self) -> list[tuple[object, ...]]:
        """All calls but questions, since the last time."""
        calls, self.calls = self.calls, []
        return [call for call in calls if call[0] != "isProgramRunning"]


made: list[Control] = []


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> None:
    made.clear()
    monkeypatch.setitem(sys.modules, "rtde_control", SimpleNamespace(RTDEControlInterface=Control))
    monkeypatch.setattr(ur_rtde_link, "StandardLink", lambda address: VirtualArm(VirtualClock()))


@pytest.fixture
def link(noted: None) -> UrRtdeLink:
    connected = UrRtdeLink(Address("robot"))
    connected.connect()
    return connected


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rtde_control", None)
    says = r"The link 'ur_rtde' needs ur_rtde, which is not installed: pip install 'cycletime\[ur-rtde\]'"
    with pytest.raises(NotInstalledError, match=says):
        UrRtdeLink(Address("robot"))
    with pytest.raises(NotInstalledError, match=says):
        DriverLink(DriverSettings(Address("robot"), link="ur_rtde"))


def test_other_ports_are_refused(noted: None) -> None:
    with pytest.raises(InputError, match=r"speaks to the standard ports alone, and not to Address\(.*rtde=1"):
        UrRtdeLink(Address("robot", 1))


def test_who_is_not_there_is_named(noted: None) -> None:
    with pytest.raises(LinkError, match="ur_rtde cannot connect: Timeout connecting to UR dashboard server"):
        UrRtdeLink(Address("nowhere")).connect()


def test_the_watchdog_is_set_before_any_motion_and_after_each_upload(link: UrRtdeLink) -> None:
    link.send(SpeedJ(elbow(0.3), 2.0, 0.016))
    assert made[0].told() == [
        ("connected", "robot"),
        ("setWatchdog", 10.0),
        ("speedJ", list(elbow(0.3)), 2.0, 0.016),
    ]
    made[0].running = False  # a protective stop has ended the program
    link.send(StopJ(3.0))
    assert made[0].told() == []  # there is nothing to stop
    link.send(SpeedJ(elbow(0.1), 2.0, 0.016))
    assert made[0].told() == [("disconnect",)]  # registers are emptied where the package connects
    assert [name for name, *_ in made[1].told()] == ["connected", "setWatchdog", "speedJ"]


def test_a_program_that_cannot_be_uploaded_again_is_told(link: UrRtdeLink, monkeypatch: pytest.MonkeyPatch) -> None:
    made[0].running = False

    def refuse(host: str) -> None:
        raise RuntimeError("Failed to start control script, before timeout of 5 seconds")

    monkeypatch.setattr(link, "_connect_control", refuse)
    with pytest.raises(LinkError, match="ur_rtde cannot connect: Failed to start control script"):
        link.send(SpeedJ(elbow(0.1), 2.0, 0.016))


@pytest.mark.parametrize(
    ("command", "stop"),
    [
        (SpeedJ(elbow(0.3), 2.0, 0.016), ("speedStop", 3.0)),
        (ServoJ(Q_REF, 0.008, 0.1, 300.0), ("servoStop", 3.0)),
        (MoveJ(Q_REF), ("stopJ", 3.0, True)),
    ],
)
def test_a_stop_ends_what_goes_on(link: UrRtdeLink, command: Command, stop: tuple[object, ...]) -> None:
    link.send(command)
    made[0].told()
    link.send(StopJ(3.0))
    assert made[0].told() == [stop]


def test_the_watchdog_is_kicked_while_no_command_does_it(link: UrRtdeLink) -> None:
    made[0].told()
    link.receive(1.0)
    assert made[0].told() == [("kickWatchdog",)]
    link.send(SpeedJ(elbow(0.3), 2.0, 0.016))
    link.receive(1.0)
    assert made[0].told() == [("speedJ", list(elbow(0.3)), 2.0, 0.016)]


def test_a_move_in_a_time_has_its_speed_and_acceleration(link: UrRtdeLink) -> None:
    goal = (*Q_REF[:2], Q_REF[2] - 0.6, *Q_REF[3:])
    made[0].told()
    link.send(MoveJ(goal, time_s=2.0))
    ((name, q, speed, acceleration, asynchronous),) = made[0].told()
    assert (name, q, asynchronous) == ("moveJ", list(goal), True)
    assert (speed, acceleration) == pytest.approx((0.4, 0.8))  # 0.6 rad in 1.5 s of full speed, reached in 0.5 s


def test_what_the_controller_does_not_take_is_told(link: UrRtdeLink) -> None:
    made[0].takes = False
    with pytest.raises(LinkError, match="The controller did not take speedJ"):
        link.send(SpeedJ(elbow(0.3)))


def test_after_closing_nothing_works(link: UrRtdeLink) -> None:
    link.close()
    assert [name for name, *_ in made[0].told()][-2:] == ["stopScript", "disconnect"]
    link.close()
    with pytest.raises(LinkError, match="The link is not connected"):
        link.send(StopJ())


@pytest.fixture
def robot() -> Iterator[SimulatedController]:
    """At the standard ports, of an address of its own."""
    address = f"127.0.{os.getpid() % 250 + 1}.87"
    with simulated_controller(address=address, ports=Ports(30004, 30003, 29999, 0)) as running:
        yield running


@pytest.mark.robot
def test_the_package_drives_the_simulated_arm_and_its_watchdog_stops_it(robot: SimulatedController) -> None:
    link = DriverLink(DriverSettings(Address(robot.address), link="ur_rtde"))
    link.connect()
    for _ in range(100):
        link.send(SpeedJ(elbow(-0.3), 2.0))
        speeds = link.receive(10.0).qd
    assert speeds[2] == pytest.approx(-0.3, abs=0.01)
    goal = (*Q_REF[:2], Q_REF[2] - 0.3, *Q_REF[3:])
    link.send(MoveJ(goal, time_s=1.0))
    while max(abs(a - b) for a, b in zip(link.receive(10.0).q, goal, strict=True)) > 0.002:
        pass
    for _ in range(100):
        link.send(SpeedJ(elbow(-0.3), 2.0))
        link.receive(10.0)
    assert link.driver_id is not None
    os.kill(link.driver_id, signal.SIGKILL)
    killed_s = time.monotonic()
    while max(map(abs, json.loads(robot.fault("state"))["qd"])) >= 0.01:
        assert time.monotonic() < killed_s + 5
    link.close()


@pytest.mark.robot
def test_after_a_stop_the_arm_stands_until_it_is_told_a_new_speed(robot: SimulatedController) -> None:
    link, watcher = UrRtdeLink(Address(robot.address)), StandardLink(Address(robot.address))
    link.connect()
    for _ in range(60):
        link.send(SpeedJ(elbow(-0.3), 2.0))
        stopped_s = link.receive(10.0).time_s
    robot.fault("protective stop")
    while link.receive(10.0).time_s < stopped_s + 5.5:
        pass
    link.dashboard("unlock protective stop")
    while link.receive(10.0).safety_mode is not SafetyMode.NORMAL:
        pass
    watcher.connect()
    with ThreadPoolExecutor(1) as pool:
        speeds = pool.submit(lambda: [max(map(abs, watcher.receive(10.0).qd)) for _ in range(250)])
        for _ in range(30):
            link.send(SpeedJ(elbow(0.0), 2.0))
            link.receive(10.0)
        assert max(speeds.result()) < 1e-3
    watcher.close()
    link.close()
