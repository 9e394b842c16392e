"""Judged by clients that others wrote: SDU's ur_rtde, and Universal Robots' own RTDE client as urinterface carries it.

Run by './check robot'. ur_rtde knows only the standard ports, so each controller has a loopback address of its own.
"""

import os
import time
from collections.abc import Callable, Iterator
from itertools import count

import numpy as np
import pytest

from cycletime.robots.ur.simulator.controller import rotation_vector
from cycletime.robots.ur.simulator.launch import SimulatedController, simulated_controller
from cycletime.robots.ur.simulator.profile import ProfileName, SimulatorSettings
from cycletime.robots.ur.simulator.server import Ports
from cycletime.ur5 import UR5, UR5E, forward

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


def test_ur_rtde_receives_the_state(controller: SimulatedController, profile: ProfileName) -> None:
    from rtde_receive import RTDEReceiveInterface

    receiver = RTDEReceiveInterface(controller.address)
    assert receiver.getActualQ() == pytest.approx(SimulatorSettings.start_q)
    assert receiver.getActualQd() == receiver.getTargetQd() == [0.0] * 6
    assert (receiver.getRobotMode(), receiver.getSafetyMode(), receiver.isProtectiveStopped()) == (7, 1, False)
    pose = forward(np.array(SimulatorSettings.start_q), UR5 if profile == "cb3" else UR5E)
    told = (*pose[:3, 3], *rotation_vector(pose[:3, :3]))
    assert receiver.getActualTCPPose() == pytest.approx(told)
    first_s = receiver.getTimestamp()
    wait_for(lambda: receiver.getTimestamp() > first_s + 0.1)
    receiver.disconnect()


def test_ur_rtde_moves_the_arm_by_script_lines(controller: SimulatedController, profile: ProfileName) -> None:
    from rtde_receive import RTDEReceiveInterface
    from script_client import ScriptClient

    receiver = RTDEReceiveInterface(controller.address)
    lines = ScriptClient(controller.address, *((3, 15) if profile == "cb3" else (5, 12)))
    lines.connect()
    assert lines.sendScriptCommand(f"speedj({SPEED}, 2.0, 1000)\n")
    wait_for(lambda: abs(receiver.getActualQd()[1] - 0.3) < 1e-3)
    assert receiver.getRuntimeState() == 2
    assert lines.sendScriptCommand("stopj(10)\n")
    wait_for(lambda: max(map(abs, receiver.getActualQd())) < 1e-3)
    goal = [1.5, -2.3, 1.4, -0.7, 1.6, 1.0]
    assert lines.sendScriptCommand(f"movej({goal}, a=1.4, v=1.05)\n")
    wait_for(lambda: receiver.getActualQ() == pytest.approx(goal, abs=1e-3))
    wait_for(lambda: receiver.getRuntimeState() == 1)
    lines.disconnect()
    receiver.disconnect()


def test_ur_rtde_sees_and_releases_a_protective_stop(profile: ProfileName) -> None:
    from dashboard_client import DashboardClient
    from rtde_receive import RTDEReceiveInterface

    # Ten times faster than real time, since a stop is locked for 5 s.
    with simulated_controller(profile, 10.0, address=next(ADDRESSES), ports=STANDARD) as controller:
        receiver, dashboard = RTDEReceiveInterface(controller.address), DashboardClient(controller.address)
        dashboard.connect()
        controller.fault("protective stop")
        wait_for(receiver.isProtectiveStopped)
        assert "PROTECTIVE_STOP" in dashboard.safetymode()
        stopped_s = receiver.getTimestamp()
        wait_for(lambda: receiver.getTimestamp() > stopped_s + 5.0)
        dashboard.unlockProtectiveStop()
        wait_for(lambda: not receiver.isProtectiveStopped())
        dashboard.disconnect()
        receiver.disconnect()


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
