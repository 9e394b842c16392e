"""The real-time Markov decision process of Ramstedt & Pal (2019, 'Real-time reinforcement learning', section 3).

While the agent still chooses its action a_t, the world moves on with the previous one. So the environment steps with
a_{t-1}, and the agent observes x_{t+1} = (s_{t+1}, a_t): the state and the action that is already on its way.
"""

from __future__ import annotations

from collections import deque
from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cycletime.duration import Duration, DurationLike
from cycletime.errors import InputError
from cycletime.robots.real_time_env import two_parts_of
from cycletime.tasks.cycle_time import refuse_what_hides_episode_ends
from cycletime.tasks.delays import Step, as_json, initial_action_for
from cycletime.tasks.time_step import recorded, step_of, whole_steps


class RealTime(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Applies each action one step late, and appends the latest actions to the observation.

    The observation is a flat Box: the environment's observation, then the actions, oldest first and so the one under
    way last; discrete actions are one-hot. It lies in its space as long as the actions lie in theirs. Around a
    `CycleTime` a step is a cycle. For longer delays put an `ActionDelay` inside, and let ``history`` cover both.
    """

    dt: float
    """How long one step lasts, in seconds; there only where ``history`` or ``env_dt`` is given."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        history: DurationLike | None = None,
        env_dt: DurationLike | None = None,
        initial_action: Any = None,  # noqa: ANN401 (any action space)
    ) -> None:
        """Wrap an environment.

        Args:
            env: The environment: its observations must be a flat Box, its actions such that they can be flattened.
            history: How far back the observed actions go, a whole multiple of a step; one step by default.
            env_dt: The environment's time step, where it does not publish it; needed only for ``history``.
            initial_action: What is applied first, and fills the history at first; zeros by default.

        Raises:
            InputError: if the spaces are others, or the history does not fit.
        """
        refuse_what_hides_episode_ends(env, "RealTime")
        initial = initial_action_for(env.action_space, initial_action)
        gym.utils.RecordConstructorArgs.__init__(
            self,
            history=recorded(history),
            env_dt=recorded(env_dt),
            initial_action=None if initial_action is None else as_json(initial),
        )
        gym.Wrapper.__init__(self, env)
        self._history_steps = 1
        if history is not None or env_dt is not None:
            step = step_of(env, env_dt)
            self.dt = float(step)
            if history is not None:
                self._history_steps = whole_steps("history", Duration(history).exact_s, step, least=1)
        self._initial = initial
        self._under_way = initial
        self._actions: deque[NDArray[Any]] = deque(maxlen=self._history_steps)
        self.observation_space = _augmented(env, self._history_steps)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, as if the initial action had been given all along."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._under_way = self._initial
        self._actions.extend([self._flat(self._initial)] * self._history_steps)
        return self._augment(observation), info

    def step(self, action: Any) -> Step:  # noqa: ANN401
        """Step with the previous action, and set this one on its way."""
        return self._seen(self.env.step(self._due(action)))

    def send(self, action: Any) -> None:  # noqa: ANN401
        """The first part of a robot's step: do the previous action, and set this one on its way."""
        two_parts_of(self.env).send(self._due(action))

    def receive(self, env_steps: int = 1) -> Step:
        """The second part; in steps that were missed no other action was given."""
        self._actions.extend([self._actions[-1]] * (env_steps - 1))
        return self._seen(two_parts_of(self.env).receive(env_steps))

    def _due(self, action: Any) -> Any:  # noqa: ANN401
        due, self._under_way = self._under_way, deepcopy(action)
        self._actions.append(self._flat(action))
        return due

    def _seen(self, step: Step) -> Step:
        observation, reward, terminated, truncated, info = step
        return self._augment(observation), reward, terminated, truncated, info

    def _flat(self, action: Any) -> NDArray[Any]:  # noqa: ANN401
        return np.asarray(spaces.flatten(self.env.action_space, action))

    def _augment(self, observation: Any) -> NDArray[Any]:  # noqa: ANN401
        return np.concatenate([observation, *self._actions]).astype(self.observation_space.dtype)


def _augmented(env: gym.Env[Any, Any], history_steps: int) -> spaces.Box:
    observation, action = env.observation_space, spaces.flatten_space(env.action_space)
    if not isinstance(observation, spaces.Box) or len(observation.shape) != 1:
        raise InputError(
            f"RealTime appends actions to a flat Box, and the observations of {env} are {observation}: "
            f"put gymnasium.wrappers.FlattenObservation between."
        )
    if not isinstance(action, spaces.Box):
        raise InputError(f"RealTime appends actions that can be flattened (Box, Discrete), not {env.action_space}.")
    dtype: Any = observation.dtype if np.issubdtype(observation.dtype, np.floating) else np.float32
    low = np.concatenate([observation.low, np.tile(action.low, history_steps)])
    high = np.concatenate([observation.high, np.tile(action.high, history_steps)])
    return spaces.Box(low.astype(dtype), high.astype(dtype), dtype=dtype)
