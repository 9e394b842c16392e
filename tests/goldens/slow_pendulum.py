"""Gymnasium's pendulum, which waits at each step where $GOLDENS_PAUSE_S says so: time enough to be killed."""

import os
import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.classic_control.pendulum import PendulumEnv
from numpy.typing import NDArray


class SlowPendulum(PendulumEnv):
    """The same numbers at any pace."""

    def step(self, u: NDArray[np.float64]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        time.sleep(float(os.environ.get("GOLDENS_PAUSE_S", "0")))
        observation, reward, terminated, truncated, info = super().step(u)  # type: ignore[no-untyped-call]
        return observation, float(reward), terminated, truncated, info


gymnasium.register("SlowPendulum-v0", entry_point="slow_pendulum:SlowPendulum", max_episode_steps=100)
