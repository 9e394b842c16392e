"""Judged by clients that others wrote: SDU's ur_rtde, and Universal Robots' own RTDE client as urinterface carries it.

Run by './check robot'. ur_rtde knows only the standard ports, so each controller has a loopback address of its own.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest

from cycletime.robots.ur.simulator.controller import tool_pose
from cycletime.robots.ur.simulator.launch import SimulatedController, simulated_controller
from cycletime.robots.ur.simulator.profile import ProfileName, SimulatorSettings
from cycletime.robots.ur.simulator.server import Ports
from cycletime.ur5 import UR5, UR5E
from tests.processes import started

pytestmark = pytest.mark.robot
STANDARD = Ports(30004, 30003, 29999, 30020)
ADDRESSES = (f"127.{64 + os.getpid() // 250 % 64}.{os.getpid() % 250}.{number}" for number in count(1))
PATIENCE_S = 30.0
SPEED = [0.0, 0.3, 0.0, 0.0, 0.0, 0.0]


@pytest.fixture(params=["cb3", "e"])
def profile(request: pytest.FixtureRequest) -> ProfileName:
    name: ProfileName = request.param
    return name


@pytest.fixture
def controller(profile: ProfileName) -> Iterator[SimulatedController]:
    with simulated_controller(profile, 1.0, address=next(ADDRESSES), ports=STANDARD) as it:
        yield it


def wait_for(what: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end_s
        time.sleep(0.002)


def state(controller: SimulatedController) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(controller.fault("state"))
    return told


def shoulder_speed(controller: SimulatedController) -> float:
    return float(state(controller)["qd"][1])


def test_ur_rtde_receives_the_state(controller: SimulatedController, profile: ProfileName) -> None:
    from rtde_receive import RTDEReceiveInterface

    receiver = RTDEReceiveInterface(controller.address)
    assert receiver.getActualQ() == pytest.approx(SimulatorSettings.start_q)
    assert receiver.getActualQd() == receiver.getTargetQd() == [0.0] * 6
    assert (receiver.getRobotMode(), receiver.getSafetyMode(), receiver.isProtectiveStopped()) == (7, 1, False)
    told = tool_pose(np.array(SimulatorSettings.start_q), UR5 if profile == "cb3" else UR5E)
    assert receiver.getActualTCPPose() == pytest.approx(told)
    first_s = receiver.getTimestamp()
    wait_for(lambda: receiver.getTimestamp() > first_s + 0.1)
    receiver.disconnect()


def test_ur_rtde_controls_the_arm(controller: SimulatedController) -> None:
    from rtde_control import RTDEControlInterface
    from rtde_receive import RTDEReceiveInterface

    receiver, control = RTDEReceiveInterface(controller.address), RTDEControlInterface(controller.address)
    assert control.isProgramRunning()
    assert control.speedJ(SPEED, 2.0)
    wait_for(lambda: abs(receiver.getActualQd()[1] - 0.3) < 1e-3)
    assert control.speedStop(10.0)
    wait_for(control.isSteady)
    goal = [1.5, -2.3, 1.4, -0.7, 1.6, 1.0]
    assert control.moveJ(goal, 1.05, 1.4)
    wait_for(control.isSteady)
    assert receiver.getActualQ() == pytest.approx(goal, abs=1e-3)
    goal[2] += 0.05
    assert control.servoJ(goal, 0.0, 0.0, 0.008, 0.1, 300)
    wait_for(lambda: abs(receiver.getActualQ()[2] - goal[2]) < 1e-3)
    assert control.servoStop(10.0)
    control.moveJ([1.4, *goal[1:]], 1.05, 1.4, True)
    wait_for(lambda: abs(receiver.getActualQd()[0]) > 0.05)
    control.stopJ(2.0)
    wait_for(control.isSteady)
    assert receiver.getActualQ()[0] > 1.4
    control.stopScript()
    wait_for(lambda: not control.isProgramRunning())
    control.disconnect()
    receiver.disconnect()


def test_ur_rtde_trips_and_recovers_a_protective_stop(profile: ProfileName) -> None:
    from dashboard_client import DashboardClient
    from rtde_control import RTDEControlInterface
    from rtde_receive import RTDEReceiveInterface

    # Ten times faster than real time, since a stop is locked for 5 s.
    with simulated_controller(profile, 10.0, address=next(ADDRESSES), ports=STANDARD) as controller:
        receiver, control = RTDEReceiveInterface(controller.address), RTDEControlInterface(controller.address)
        dashboard = DashboardClient(controller.address)
        dashboard.connect()
        assert control.speedJ(SPEED, 2.0)
        wait_for(lambda: receiver.getActualQd()[1] > 0.2)
        control.triggerProtectiveStop()
        wait_for(receiver.isProtectiveStopped)
        wait_for(lambda: abs(shoulder_speed(controller)) < 0.01)
        assert not control.isProgramRunning()
        assert not control.speedJ(SPEED, 2.0)
        assert "PROTECTIVE_STOP" in dashboard.safetymode()
        stopped_s = receiver.getTimestamp()
        wait_for(lambda: receiver.getTimestamp() > stopped_s + 5.0)
        dashboard.unlockProtectiveStop()
        wait_for(lambda: not receiver.isProtectiveStopped())
        assert control.reuploadScript()
        wait_for(control.isProgramRunning)
        assert control.speedJ(SPEED, 2.0)
        wait_for(lambda: receiver.getActualQd()[1] > 0.2)
        control.speedStop()
        control.disconnect()
        dashboard.disconnect()
        receiver.disconnect()


@pytest.mark.parametrize("watchdog", [True, False])
def test_a_killed_client_of_ur_rtde_stops_the_arm_only_with_its_watchdog(
    controller: SimulatedController, watchdog: bool
) -> None:
    moves = f"""
import time
from rtde_control import RTDEControlInterface
control = RTDEControlInterface({controller.address!r})
if {watchdog}:
    assert control.setWatchdog(10.0)
for beat in range(100_000):
    control.speedJ({SPEED}, 2.0)
    if beat == 50:
        print("moves", flush=True)
    time.sleep(0.005)
"""
    with started([sys.executable, "-c", moves]) as client:
        assert client.stdout is not None
        assert any(line == "moves\n" for line in client.stdout)
        assert shoulder_speed(controller) > 0.2
        client.send_signal(signal.SIGKILL)
        client.wait()
        killed_s = state(controller)["time_s"]
        if watchdog:
            wait_for(lambda: abs(shoulder_speed(controller)) < 0.01)
            assert state(controller)["runtime_state"] == 1
        else:
            wait_for(lambda: state(controller)["time_s"] > killed_s + 1.0)
            assert shoulder_speed(controller) > 0.2


def test_universal_robots_own_client_does_its_handshake_and_recipes(profile: ProfileName) -> None:
    from third_party.rtde.rtde import RTDE

    with simulated_controller(profile, 1.0) as controller:
        client, other = (RTDE(controller.address, controller.ports.rtde) for _ in range(2))
        client.connect()
        assert client.get_controller_version()[:2] == ((3, 15) if profile == "cb3" else (5, 12))
        names, types = ["timestamp", "actual_q", "runtime_state"], ["DOUBLE", "VECTOR6D", "UINT32"]
        assert client.send_output_setup(names, types, frequency=125)
        values = client.send_input_setup(["input_int_register_3", "input_double_register_3"], ["INT32", "DOUBLE"])
        read_back = ["input_int_register_3", "input_double_register_3"]
        other.connect()
        assert other.send_output_setup(read_back, ["INT32", "DOUBLE"])
        with pytest.raises(ValueError, match="already in use"):
            other.send_input_setup(["input_int_register_3"])
        assert client.send_start()
        assert other.send_start()
        values.input_int_register_3, values.input_double_register_3 = -5, 0.25
        client.send(values)
        first = client.receive()
        assert first.actual_q == pytest.approx(SimulatorSettings.start_q)
        wait_for(lambda: other.receive().input_int_register_3 == -5)
        controller.fault("say a line of the log between packages")
        wait_for(lambda: client.receive().timestamp > first.timestamp + 0.1)
        assert client.send_pause()
        assert not client.send_output_setup(names, ["DOUBLE"] * 3)  # the client itself compares the types
        with pytest.raises(ValueError, match="Unknown data type"):
            client.send_output_setup(["no_such"])
        client.disconnect()
        other.disconnect()
