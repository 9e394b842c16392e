"""What a cycle pays for another goal: environments with goals have ``compute_reward``, and hindsight replay asks it.

A cycle pays the sum of its environment steps. So does it for a goal that it was not given, of which only the goals that
were achieved at each of these steps can tell: they travel in the cycle's ``info``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from cycletime.errors import InputError

HELD_STEPS = "held_steps"
"""In a cycle's info: what was achieved at each of its steps, and that step's own info."""


def has_goals(env: gym.Env[Any, Any]) -> bool:
    """Whether an environment observes what is achieved and can be asked what another goal would pay."""
    space = env.observation_space
    observes = isinstance(space, gym.spaces.Dict) and "achieved_goal" in space.spaces
    return observes and env.has_wrapper_attr("compute_reward")


def reward_of_cycles(
    of_step: Callable[[Any, Any, Any], Any],
    achieved_goal: Any,  # noqa: ANN401 - any space
    desired_goal: Any,  # noqa: ANN401
    info: Any,  # noqa: ANN401 - one info, or as many as goals
) -> Any:  # noqa: ANN401 - one number, or as many as goals
    """What cycles pay for goals, from the environment's ``compute_reward`` of a step.

    Raises:
        InputError: if the infos were not kept.
    """
    if isinstance(info, Mapping):
        return _reward_of_cycle(of_step, desired_goal, info)
    return np.array([_reward_of_cycle(of_step, goal, each) for goal, each in zip(desired_goal, info, strict=True)])


def _reward_of_cycle(of_step: Callable[[Any, Any, Any], Any], goal: Any, info: Mapping[str, Any]) -> float:  # noqa: ANN401
    if HELD_STEPS not in info:
        raise InputError(
            f"A cycle's info has no {HELD_STEPS!r}, from which its reward for another goal is summed: keep the infos, "
            "as in HerReplayBuffer(..., copy_info_dict=True)."
        )
    return sum(float(of_step(achieved, goal, of_its_own)) for achieved, of_its_own in info[HELD_STEPS])
