"""How much faster than real time UR-Reacher-2 goes in lock-step: `python benchmarks/robot_lockstep.py`.

Episodes with their resets, through the simulated controller in a process of its own, with actions at random. The
controller's time is compared with ours, and with what both processes computed. They wait for each other with every
package, so that both ask to be let ahead of others: where they are not, on a busy machine, the second number is what
cores that are free would come near to. It should be at least 15.
"""

from __future__ import annotations

import os
import sys
import time
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

import numpy as np

from cycletime.robots.clock import request_real_time_priority
from cycletime.robots.ur.links import LockstepLink
from cycletime.robots.ur.reacher_env import URReacher2Env
from cycletime.robots.ur.rtde_client import Address
from cycletime.robots.ur.simulator.launch import simulated_controller

EPISODES = 10
AT_LEAST = 15.0


def ratios(env_dt: str) -> tuple[float, float]:
    """The controller's seconds in one of ours, and in one of computing, at an environment's time step."""
    rng = np.random.default_rng(0)
    begin_s, computed_s = time.perf_counter(), _computed_s()
    with simulated_controller("cb3", None) as controller:
        ports = controller.ports
        address = Address(controller.address, ports.rtde, ports.realtime, ports.dashboard)
        env = URReacher2Env(LockstepLink(address), env_dt)
        for episode in range(EPISODES):
            env.reset(seed=episode)
            truncated = False
            while not truncated:
                *_, truncated, told = env.step(rng.uniform(-1, 1, 2))
        env.close()
    robot_s: float = told["robot_time_s"]
    return robot_s / (time.perf_counter() - begin_s), robot_s / (_computed_s() - computed_s)


def _computed_s() -> float:
    """Of this process, and of those that have ended."""
    return sum(use.ru_utime + use.ru_stime for use in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))


def main() -> int:
    """Print both; status 1 if it is too slow."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # only one of the two ever works
    ahead = request_real_time_priority()
    how = "ahead of others on one core" if ahead else "on one core, as any process"
    print(f"{how}; load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    found = {env_dt: ratios(env_dt) for env_dt in ("10ms", "40ms")}
    for env_dt, (ours, computing) in found.items():
        print(f"{env_dt}: {ours:.1f} times faster than real time, {computing:.1f} s of the robot in one of computing")
    return int(min(ours if ahead else computing for ours, computing in found.values()) < AT_LEAST)


if __name__ == "__main__":
    sys.exit(main())
