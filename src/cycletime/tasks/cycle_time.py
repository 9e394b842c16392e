"""An action-cycle time for any Gymnasium environment: Algorithm 1 of the paper, the hold of k = dt / env_dt steps.

Rewards are summed without discounting, and only an episode's end cuts a cycle short. For hindsight replay a cycle pays
the sum of its environment steps for another goal too, so the goals achieved at each step travel in its ``info``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

from cycletime.duration import Duration, DurationLike, cycle_steps
from cycletime.errors import InputError
from cycletime.tasks.render import frame_rate
from cycletime.tasks.time_step import (
    clock_info,
    duration_text,
    refuse_unreachable_limit,
    step_duration,
    whole_steps,
    wrapper_layers,
)

HELD_STEPS = "held_steps"
"""In a cycle's info: what was achieved at each of its steps, and that step's own info."""


def cycle_rewards(
    of_step: Callable[[Any, Any, Any], Any],
    achieved_goal: Any,  # noqa: ANN401 - any space
    desired_goal: Any,  # noqa: ANN401
    info: Any,  # noqa: ANN401 - one info, or as many as goals
) -> Any:  # noqa: ANN401 - one number, or as many as goals
    """What cycles pay for goals, from the environment's ``compute_reward`` of a step."""
    if not isinstance(info, Mapping):
        goals = zip(desired_goal, info, strict=True)
        return np.array([cycle_rewards(of_step, achieved_goal, goal, each) for goal, each in goals])
    if HELD_STEPS not in info:
        summed = "from which its reward for another goal is summed"
        remedy = "keep the infos, as in HerReplayBuffer(..., copy_info_dict=True)"
        raise InputError(f"A cycle's info has no {HELD_STEPS!r}, {summed}: {remedy}.")
    return sum(float(of_step(achieved, desired_goal, of_its_own)) for achieved, of_its_own in info[HELD_STEPS])


class CycleTime(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Holds every action for ``dt`` seconds.

    ``info`` tells after each reset and step, counted since the episode's start: ``env_steps``, ``agent_steps`` and
    ``elapsed_s``; and ``cycle_steps``, the environment steps that this cycle really lasted. The rest of it is the
    last environment step's. Around another `CycleTime`, or a task that holds actions itself, the cycle is a multiple of
    the inner one, and ``env_dt`` and ``env_steps`` remain those of the simulation.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        dt: DurationLike,
        *,
        env_dt: DurationLike | None = None,
        time_limit: DurationLike | None = None,
    ) -> None:
        """Wrap an environment.

        Args:
            env: The environment. A ``TimeLimit`` inside counts environment steps, and so keeps its seconds.
            dt: The action-cycle time, a whole multiple of the environment's step.
            env_dt: How long one step of ``env`` lasts, where it does not publish it as ``dt``; it must not contradict
                what is published.
            time_limit: Truncate episodes after this span, even in the middle of a cycle.
        """
        self._dt = Duration(dt)
        gym.utils.RecordConstructorArgs.__init__(
            self, dt=str(self._dt), env_dt=duration_text(env_dt), time_limit=duration_text(time_limit)
        )
        refuse_hidden_resets(env, "CycleTime")
        gym.Wrapper.__init__(self, env)
        step = step_duration(env, env_dt)
        self._below = _inner_clock(env)
        self._env_dt: Duration = Duration.of_seconds(self._below.env_dt) if self._below else step
        self._hold_steps = self._whole_inner_steps(step)
        self._cycle_steps = cycle_steps(self._dt, self._env_dt)
        space = env.observation_space
        has_goals = isinstance(space, gym.spaces.Dict) and "achieved_goal" in space.spaces
        self._sums_goals = self._hold_steps > 1 and has_goals and env.has_wrapper_attr("compute_reward")
        self._limit_steps = None
        if time_limit is not None:
            refuse_unreachable_limit(env, Duration(time_limit), step)
            self._limit_steps = whole_steps("time limit", Duration(time_limit).exact_s, step, least=1)
        self._held_steps = 0
        self._agent_steps = 0
        # A copy, since metadata belongs to the environment's class.
        self.metadata = {**env.metadata, "render_fps": frame_rate(self.dt)}

    @property
    def dt(self) -> float:
        """The action-cycle time in seconds."""
        return float(self._dt)

    @property
    def env_dt(self) -> float:
        """The environment's time step in seconds."""
        return float(self._env_dt)

    @property
    def cycle_steps(self) -> int:
        """The environment steps in a full cycle."""
        return self._cycle_steps

    @property
    def hold_steps(self) -> int:
        """The steps of the wrapped environment in a full cycle; fewer than `cycle_steps` where that one holds too."""
        return self._hold_steps

    @property
    def env_steps(self) -> int:
        """The environment steps since the episode's start."""
        return self._below.env_steps if self._below else self._held_steps

    @property
    def agent_steps(self) -> int:
        """The cycles since the episode's start."""
        return self._agent_steps

    @property
    def compute_reward(self) -> Callable[[Any, Any, Any], Any]:
        """What a cycle pays for another goal, in environments that have such a function: the sum over its steps.

        Since the steps' own goals are needed, ``info`` has them as ``held_steps`` and must be kept, as in
        ``HerReplayBuffer(..., copy_info_dict=True)``.
        """
        of_step: Callable[[Any, Any, Any], Any] = self.env.get_wrapper_attr("compute_reward")
        return partial(cycle_rewards, of_step) if self._sums_goals else of_step

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._held_steps = self._agent_steps = 0
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, self._with_clock(info, lasted=0)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ANN401 (any action space)
        """Hold the action for one cycle, or until the episode ends."""
        before, total_reward, held = self.env_steps, 0.0, []
        for _ in range(self._hold_steps):
            observation, reward, terminated, truncated, info = self.env.step(action)
            total_reward += float(reward)
            self._held_steps += 1
            if self._sums_goals:
                held.append((deepcopy(observation["achieved_goal"]), info))
            truncated = truncated or (self._limit_steps is not None and self._held_steps >= self._limit_steps)
            if terminated or truncated:
                break
        else:
            if (lasted := self.env_steps - before) != self._cycle_steps:  # something inside holds actions, unsaid
                lasts = f"{lasted} environment steps, and {self._dt} are {self._cycle_steps}"
                remedy = "a wrapper inside repeats steps, so give it a dt, the time of one of its own"
                raise InputError(f"A cycle of {self} lasted {lasts}: {remedy}.")
        self._agent_steps += 1
        info = self._with_clock(info, lasted=self.env_steps - before)
        if self._sums_goals:
            info[HELD_STEPS] = held
        return observation, total_reward, bool(terminated), bool(truncated), info

    def _whole_inner_steps(self, step: Duration) -> int:
        try:
            return cycle_steps(self._dt, step)
        except InputError as error:
            known = "if it knows the id; register_retiming describes one of your own"
            hint = f" Shorter ones need retime with env_dt=..., {known}." if self._dt < step else ""
            if isinstance(self._below, CycleTime):
                hint = f" It is around a CycleTime of {self._below._dt} already: set the cycle time there."
            elif self._below:
                name = self.env.spec.id if self.env.spec else self.env
                hint = (
                    f" {name} has a cycle time of its own: set that one, as in gymnasium.make(id, dt=...) or make_vec."
                )
            raise InputError(f"{error}{hint}") from None

    def _with_clock(self, info: dict[str, Any], lasted: int) -> dict[str, Any]:
        return {**info, **clock_info(self.env_steps, self._agent_steps, self._env_dt, lasted)}


def refuse_hidden_resets(env: gym.Env[Any, Any], wrapper: str) -> None:
    """Refuse what would carry an action, or a delay's memory, from one episode into the next."""
    if not isinstance(env, gym.Env):
        where = "gymnasium.make_vec among the wrappers, or to Stable-Baselines3's make_vec_env as the wrapper_class"
        raise InputError(f"{wrapper} wraps a single gymnasium.Env and not {env!r}: give it to {where}.")
    if any(isinstance(layer, gym.wrappers.Autoreset) for layer in wrapper_layers(env)):
        raise InputError(f"{env} resets itself, and {wrapper} would not see it: put Autoreset around {wrapper}.")


def _inner_clock(env: gym.Env[Any, Any]) -> Any | None:  # noqa: ANN401
    """What holds actions itself and keeps the clock: a `CycleTime`, or one of the paper's closed-form tasks."""
    cycle_time = next((layer for layer in wrapper_layers(env) if isinstance(layer, CycleTime)), None)
    own = env.unwrapped
    return cycle_time or (own if all(hasattr(own, name) for name in ("dt", "env_dt", "env_steps")) else None)
