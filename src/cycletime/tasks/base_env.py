"""The base class of task environments, PyBullet's and closed forms: with one seed they begin alike and look alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeAlias

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from cycletime.errors import InputError
from cycletime.tasks.closed_form import ClosedFormTask, Numbers
from cycletime.tasks.env_errors import Action, read_action
from cycletime.tasks.render import Frame, Window, frame_rate, import_pygame

Observation: TypeAlias = NDArray[np.float32]


def action_space(task: ClosedFormTask) -> Any:  # noqa: ANN401 - Gymnasium's Box is generic in a way that its Env does not accept
    """Actions in [-1, 1]: fractions of the strongest torque or force."""
    return gymnasium.spaces.Box(-1.0, 1.0, (task.action_size,), np.float32)


def observation_space(task: ClosedFormTask) -> Any:  # noqa: ANN401 - as above
    limits = np.array(list(task.observation_limits.values()), np.float32)
    return gymnasium.spaces.Box(-limits, limits, dtype=np.float32)


class TaskEnv(gymnasium.Env[Observation, Action], ABC):
    """A task as a Gymnasium environment; how long one step takes is for the subclass to say."""

    task: ClosedFormTask
    """The task: a class has its usual form, an environment may have another time step."""
    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array"], "raw_actions": True}  # noqa: RUF012 - as Gymnasium
    """Raw actions are not clipped outside: the torque is, the cost sees what the agent wanted."""

    def __init__(self, render_mode: str | None = None) -> None:
        if render_mode is not None:
            if render_mode not in self.metadata["render_modes"]:
                modes = ", ".join(map(repr, self.metadata["render_modes"]))
                raise InputError(f"{render_mode!r} is not a render mode: give one of {modes}, or None.")
            import_pygame()
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": frame_rate(self.dt)}
        self.action_space = action_space(self.task)
        self.observation_space = observation_space(self.task)
        self._window = Window(self.task.title) if render_mode == "human" else None
        self._env_steps: int | None = None
        self._return = 0.0

    @property
    def observation_names(self) -> list[str]:
        return list(self.task.observation_limits)

    @property
    @abstractmethod
    def dt(self) -> float:
        """The time that one step takes, in seconds."""

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode at random, or at ``options["state"]``, whose numbers the task's `state_limits` names."""
        given = _read_state(options, self.task.state_limits)
        super().reset(seed=seed)
        self._start(self.task.draw_start(self.np_random) if given is None else given)
        self._env_steps, self._return = 0, 0.0
        self._show()
        return self._observation(), self._info()

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        if self._env_steps is None:
            raise ResetNeeded("Call reset() before step().")
        reward, terminated, env_steps = self._advance(read_action(action, self.task.action_size))
        self._env_steps += env_steps
        self._return += reward
        self._show()
        truncated = self._env_steps >= self.task.limit_steps
        return self._observation(), reward, terminated, truncated, self._info()

    def render(self) -> Frame | None:
        """The picture as an array (mode 'rgb_array'), or on the screen (mode 'human')."""
        if self._env_steps is None:
            raise ResetNeeded("Call reset() before render().")
        if self.render_mode is None:
            gymnasium.logger.warn("render() draws nothing without a render mode: pass render_mode='rgb_array'.")
            return None
        if self._window is None:
            return self.task.picture(self._state(), self._caption())
        self._show()
        return None

    def close(self) -> None:
        self._env_steps = None
        if self._window is not None:
            self._window.close()

    def _elapsed_s(self) -> float:
        exact_s = self.task.env_dt.exact_s
        return (self._env_steps or 0) * exact_s.numerator / exact_s.denominator

    def _show(self) -> None:
        if self._window is not None:
            self._window.show(lambda: self.task.picture(self._state(), self._caption()), self._elapsed_s())

    def _caption(self) -> str:
        return f"{self._elapsed_s():.2f} s    return {self._return:.1f}"

    def _info(self) -> dict[str, Any]:
        return {}

    @abstractmethod
    def _start(self, state: Numbers) -> None:
        """Begin an episode at a state."""

    @abstractmethod
    def _advance(self, action: list[float]) -> tuple[float, bool, int]:
        """Simulate one step: its reward, whether the task ended, and how many environment steps it lasted."""

    @abstractmethod
    def _observation(self) -> Observation:
        """What the agent sees now."""

    @abstractmethod
    def _state(self) -> Numbers:
        """The present state, for drawing."""


def _read_state(options: Mapping[str, Any] | None, limits: Mapping[str, float]) -> tuple[float, ...] | None:
    unknown = set(options or {}) - {"state"}
    if unknown:
        raise InputError(f"{min(unknown, key=str)!r} is not a reset option: the only one is 'state'.")
    given = (options or {}).get("state")
    if given is None:
        return None
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (len(limits),) or not np.isfinite(values).all():
        raise InputError(f"{given!r} is not a state: give {len(limits)} finite numbers ({', '.join(limits)}).")
    state: list[float] = values.tolist()
    for value, (name, limit) in zip(state, limits.items(), strict=True):
        if abs(value) > limit:
            raise InputError(f"The state's {name} is {value}: give a number from {-limit} to {limit}.")
    return tuple(state)
