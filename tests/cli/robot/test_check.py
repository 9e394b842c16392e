"""`cycletime robot check` against the simulated controller in all bad states, and against what is no controller."""

import json
import socket

import pytest

from cycletime.cli import main
from cycletime.robots.ur.links import StandardLink
from cycletime.robots.ur.rtde_client import Address
from cycletime.robots.ur.simulator.launch import SimulatedController, simulated_controller
from tests.robots.ur.scripted import serving, until_closed


def check(capsys: pytest.CaptureFixture[str], host: str, *ports: int) -> tuple[int, str]:
    status = main(["robot", "check", "--host", host, "--ports", *map(str, ports)])
    told = capsys.readouterr()
    return status, told.out + told.err


def check_it(capsys: pytest.CaptureFixture[str], robot: SimulatedController) -> tuple[int, list[str]]:
    """The exit status, and what is missing."""
    status, said = check(capsys, robot.address, robot.ports.rtde, robot.ports.realtime, robot.ports.dashboard)
    return status, [line for line in said.splitlines() if line.startswith("missing: ")]


def test_a_controller_from_ready_through_all_that_may_be_missing(capsys: pytest.CaptureFixture[str]) -> None:
    with simulated_controller("e", pace=None) as robot:  # in lock-step its time stands still, and it does not move
        ports = robot.ports
        status, said = check(capsys, robot.address, ports.rtde, ports.realtime, ports.dashboard)
        assert status == 0
        assert said == (
            "software        5.12.5.1101319, 500 states a second\n"
            "arm             UR5\n"
            "robot mode      RUNNING\n"
            "safety mode     NORMAL\n"
            "remote control  on\n"
            "speed slider    100%\n"
            "flange          x -0.104, y 0.019, z 0.770 m\n"
            "Ready; nothing was moved.\n"
        )
        for faults, why in (
            (["remote control off"], "The controller is in local control and takes no scripts"),
            (["remote control on", "protective stop"], "The arm is in a protective stop"),
            (["violation"], "A safety limit was violated"),
        ):
            for fault in faults:
                robot.fault(fault)
            status, missing = check_it(capsys, robot)
            assert status == 1
            assert len(missing) == 1
            assert why in missing[0]
        assert json.loads(robot.fault("state"))["tick"] == 0


def test_power_that_is_off_and_an_emergency_stop(capsys: pytest.CaptureFixture[str]) -> None:
    with simulated_controller(pace=None) as robot:
        dashboard = StandardLink(Address(robot.address, dashboard=robot.ports.dashboard))
        for line, why in (
            ("power off", "The arm has no power: press ON, and then START"),
            ("power on", "The arm's brakes are on: press START"),
        ):
            dashboard.dashboard(line)
            status, missing = check_it(capsys, robot)
            assert (status, why in missing[0]) == (1, True)
        robot.fault("emergency stop")
        status, missing = check_it(capsys, robot)
        assert status == 1
        assert missing == [
            "missing: The emergency stop is pressed: make sure that all is well, turn the button back, and start the "
            "robot again."
        ]
        robot.fault("release emergency stop")
        dashboard.dashboard("brake release")
        dashboard.close()
        assert check_it(capsys, robot) == (0, [])


def test_where_nobody_listens(capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, "127.0.0.1", 9, 9, 9) == (
        1,
        "cycletime: The real-time interface of the controller at 127.0.0.1:9 does not answer: Connection refused.\n",
    )


def test_a_port_that_speaks_something_else(capsys: pytest.CaptureFixture[str]) -> None:
    def other(connection: socket.socket) -> None:
        connection.sendall(b"\x00\x01\x00 bytes that are no frame")
        until_closed(connection)

    with serving(other) as rtde, serving(until_closed) as realtime:
        status, said = check(capsys, "127.0.0.1", rtde, realtime, 9)
    assert status == 1
    assert said.startswith("cycletime: What answers at 127.0.0.1 does not speak as a UR controller: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("ports", "says"),
    [("1 2 x", "--ports has 'x': a port is a number from 1 to 65535."), ("0 1 2", "0 is no port: give one from 1")],
)
def test_ports_that_are_none(capsys: pytest.CaptureFixture[str], ports: str, says: str) -> None:
    assert main(["robot", "check", "--host", "127.0.0.1", "--ports", *ports.split()]) == 2
    assert says in capsys.readouterr().err
