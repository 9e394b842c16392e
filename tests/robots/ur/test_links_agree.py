"""The same hand-written policy through each link: the return of an episode does not depend on the way to the arm.

Run by './check robot', since it takes real time.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from cycletime.robots.ur.links import LockstepLink, StandardLink
from cycletime.robots.ur.reacher_env import URReacher2Env
from cycletime.robots.ur.rtde_client import Address
from cycletime.robots.ur.simulator.launch import simulated_controller
from cycletime.robots.ur.simulator.server import Ports
from cycletime.robots.ur.types import RobotLink
from cycletime.ur5 import Q_REF, tip

pytestmark = pytest.mark.robot
ADDRESS = "127.0.0.51"
STANDARD = Ports(30004, 30003, 29999, 30020)


def tip_yz(q: NDArray[np.float64]) -> NDArray[np.float64]:
    return tip((Q_REF[0], q[0], q[1], *Q_REF[3:]))[1:]


def resolved_rate(observation: NDArray[np.float32]) -> NDArray[np.float64]:
    """Joint speeds that bring the tip to the target, by damped least squares."""
    q, error = observation[:2].astype(float), observation[4:6].astype(float)
    steps = np.eye(2) * 1e-5
    jacobian = np.stack([(tip_yz(q + step) - tip_yz(q - step)) / 2e-5 for step in steps], axis=1)
    speeds: NDArray[np.float64] = np.linalg.solve(jacobian.T @ jacobian + 1e-3 * np.eye(2), jacobian.T @ error)
    return np.clip(-3 * speeds, -1, 1)


def episode_return(link: type[RobotLink], pace: float | None) -> float:
    with simulated_controller("cb3", pace, address=ADDRESS, ports=STANDARD):
        env = URReacher2Env(link(Address(ADDRESS)), "40ms")  # type: ignore[call-arg]
        observation, _ = env.reset(seed=1)
        total, truncated = 0.0, False
        while not truncated:
            observation, reward, _, truncated, _ = env.step(resolved_rate(observation))
            total += reward
        env.close()
    return total


def test_all_links_lead_to_the_same_return() -> None:
    expected = episode_return(LockstepLink, None)
    assert expected > 400
    # At half the pace: on a busy machine a controller in real time is let ahead of others, and this client is not.
    assert episode_return(StandardLink, 0.5) == pytest.approx(expected, rel=0.01)
