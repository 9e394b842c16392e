"""The time steps that environments have before they are retimed."""

from contextlib import closing
from typing import Any

import gymnasium as gym

from cycletime.tasks.retime import TimeStep, find_retiming


def own_time_step(env_id: str, **make_kwargs: Any) -> TimeStep:  # noqa: ANN401
    """The physics step and the frame skip that an environment has on its own."""
    with closing(gym.make(env_id, max_episode_steps=-1, **make_kwargs)) as env:
        return find_retiming(env_id).clock.read(env.unwrapped)
