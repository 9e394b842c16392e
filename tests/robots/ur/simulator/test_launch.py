"""Controllers in processes of their own."""

import signal
import socket
import sys

import pytest

from cycletime.errors import InputError, RunError
from cycletime.robots.ur.simulator.launch import simulated_controller
from cycletime.robots.ur.types import MoveJ, SpeedJ
from cycletime.robots.ur.wire.rtde import Value
from tests.processes import started
from tests.robots.ur.simulator.lockstep_client import lockstep_client


def episode() -> list[dict[str, Value]]:
    """What a noisy controller with a latency that varies tells, while it is moved in grants of five ticks."""
    told = []
    with (
        simulated_controller("cb3", None, noise=1, jitter_ticks=2, seed=3) as controller,
        lockstep_client(controller) as client,
    ):
        for grant in range(5, 205, 5):
            speed = 0.3 if grant % 2 else -0.2
            told += client.advance(grant, 5, SpeedJ((0.0, speed, speed, 0.0, 0.0, 0.0), 2.0, 0.016))
        told += client.advance(500, 295, MoveJ(controller_pose(), time_s=2.0))
    return told


def controller_pose() -> tuple[float, ...]:
    return (1.58724391, -2.4, 1.5, -0.71790582, 1.63685572, 1.00910473)


def test_lock_step_is_the_same_to_the_last_bit_when_it_is_run_again() -> None:
    first = episode()
    assert first == episode()
    assert first[-1]["target_q"] == controller_pose()
    assert len(first) == 495


def test_two_controllers_run_side_by_side_and_faults_are_for_one() -> None:
    with simulated_controller("cb3", None) as one, simulated_controller("e", None) as other:
        assert one.fault("protective stop") == "ok"
        assert '"safety_mode": 3' in one.fault("state")
        assert '"safety_mode": 1' in other.fault("state")
        with pytest.raises(InputError, match="no fault 'dance'"):
            one.fault("dance")
        with pytest.raises(RunError, match=r"did not start: .* Address already in use"):
            simulated_controller("cb3", None, ports=one.ports).__enter__()


def test_a_controller_ends_with_whoever_started_it() -> None:
    starts = "from cycletime.robots.ur.simulator.launch import simulated_controller; import signal\n"
    starts += "with simulated_controller('cb3', 1.0) as it: print(it.ports.dashboard, flush=True); signal.pause()"
    with started([sys.executable, "-c", starts]) as process:
        assert process.stdout is not None
        with socket.create_connection(("127.0.0.1", int(process.stdout.readline())), timeout=60) as connection:
            connection.sendall(b"robotmode\n")
            assert connection.recv(10)
            process.send_signal(signal.SIGKILL)
            while connection.recv(1 << 16):
                pass
