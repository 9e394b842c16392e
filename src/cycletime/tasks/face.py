"""The Gymnasium face of the paper's tasks: spaces, resets, the time limit and drawing, whatever simulates them.

PyBullet's originals and the closed-form tasks both wear it, so that with one seed they begin alike and look alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, ClassVar, TypeAlias

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from cycletime.duration import Duration, cycle_steps
from cycletime.errors import InputError
from cycletime.tasks import double_pendulum, reacher
from cycletime.tasks.double_pendulum import DoublePendulum
from cycletime.tasks.reacher import Reacher
from cycletime.tasks.render import Frame, Window, draw_double_pendulum, draw_reacher, frame_rate, import_pygame

Observation: TypeAlias = NDArray[np.float32]
Action: TypeAlias = NDArray[np.floating[Any]]
TaskState: TypeAlias = tuple[float, ...]
"""The numbers that an episode can begin with, in the order of `TaskFace.state_limits`."""


@dataclass(frozen=True)
class TaskFace:
    """What Gymnasium needs to know of a task."""

    name: str
    """For the window's title."""
    env_dt: Duration
    """The environment's time step."""
    time_limit: Duration
    """After this an episode is truncated."""
    action_size: int
    """Numbers in an action, each meant to lie in [-1, 1]; others are accepted, as in the originals."""
    observation_limits: tuple[float, ...]
    """Sizes that the observed values do not exceed, generous where Bullet sets none."""
    state_limits: Mapping[str, float]
    """The numbers in ``reset(options={"state": ...})``, in order, and the largest size that each may have."""
    draw_start: Callable[[np.random.Generator], TaskState]
    """A state from the reset distribution, drawn in the originals' order."""
    picture: Callable[[TaskState, str], Frame]
    """The picture of a state, with a caption."""

    @cached_property
    def limit_steps(self) -> int:
        """The time limit in environment steps; asked for at every step, so that it is computed once."""
        return cycle_steps(self.time_limit, self.env_dt)

    @property
    def action_space(self) -> Any:  # noqa: ANN401 - Gymnasium's Box is generic in a way that its Env does not accept
        """Torques or a force, as fractions of the strongest."""
        return gymnasium.spaces.Box(-1.0, 1.0, (self.action_size,), np.float32)

    @property
    def observation_space(self) -> Any:  # noqa: ANN401 - as above
        """What the agent sees."""
        limits = np.array(self.observation_limits, np.float32)
        return gymnasium.spaces.Box(-limits, limits, dtype=np.float32)


def _start_reacher(rng: np.random.Generator) -> TaskState:
    # An elbow angle beyond its limit of 3 is possible, as it is in the original.
    tx, ty = (rng.uniform(-reacher.TARGET_RANGE, reacher.TARGET_RANGE) for _ in range(2))
    q1, q2 = (rng.uniform(-reacher.ANGLE_RANGE, reacher.ANGLE_RANGE) for _ in range(2))
    return q1, q2, 0.0, 0.0, tx, ty


def _start_double_pendulum(rng: np.random.Generator) -> TaskState:
    # pybullet_envs restores a saved state before it draws the angles; all that this does is to centre the cart.
    th, ga = (rng.uniform(-double_pendulum.ANGLE_RANGE, double_pendulum.ANGLE_RANGE) for _ in range(2))
    return 0.0, th, ga, 0.0, 0.0, 0.0


REACHER = TaskFace(
    name="Reacher",
    env_dt=Reacher.env_dt,
    time_limit=Reacher.time_limit,
    action_size=Reacher.action_size,
    # Bullet holds speeds below 100 rad/s, so that the elbow passes its limit by no more than 0.2 rad. A target beyond
    # its own limit it would push inwards during the episode.
    observation_limits=(reacher.TARGET_RANGE, reacher.TARGET_RANGE, 0.5, 0.5, 1.0, 1.0, 10.0, 1.1, 10.0),
    state_limits={
        "q1": inf,
        "q2": 3.2,
        "w1": 100.0,
        "w2": 100.0,
        "tx": reacher.TARGET_RANGE,
        "ty": reacher.TARGET_RANGE,
    },
    draw_start=_start_reacher,
    picture=lambda state, caption: draw_reacher(state[0], state[1], (state[4], state[5]), caption),
)
DOUBLE_PENDULUM = TaskFace(
    name="Double Pendulum",
    env_dt=DoublePendulum.env_dt,
    time_limit=DoublePendulum.time_limit,
    action_size=DoublePendulum.action_size,
    # Bullet holds speeds below 100. At the rail's ends it gives way to a fast cart, by far less than 10 m.
    observation_limits=(10.0, 100.0, 11.0, 1.0, 1.0, 100.0, 1.0, 1.0, 100.0),
    state_limits={"x": 1.5, "th": inf, "ga": inf, "v": 100.0, "w": 100.0, "u": 100.0},
    draw_start=_start_double_pendulum,
    picture=lambda state, caption: draw_double_pendulum(state[0], state[1], state[2], caption),
)


class TaskEnv(gymnasium.Env[Observation, Action], ABC):
    """A task as a Gymnasium environment; how long one step takes is for the subclass to say."""

    face: ClassVar[TaskFace]
    """The task."""
    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array"], "raw_actions": True}  # noqa: RUF012 - as Gymnasium
    """Raw actions are not clipped outside: the torque is, the cost sees what the agent wanted."""

    def __init__(self, render_mode: str | None = None) -> None:
        """Prepare spaces and drawing; with a render mode, pygame is needed as well."""
        if render_mode is not None:
            if render_mode not in self.metadata["render_modes"]:
                modes = ", ".join(map(repr, self.metadata["render_modes"]))
                raise InputError(f"{render_mode!r} is no render mode: give one of {modes}, or None.")
            import_pygame()
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": frame_rate(self.dt)}
        self.action_space = self.face.action_space
        self.observation_space = self.face.observation_space
        self._window = Window(self.face.name) if render_mode == "human" else None
        self._env_steps: int | None = None
        self._return = 0.0

    @property
    @abstractmethod
    def dt(self) -> float:
        """The time that one step takes, in seconds."""

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode at random, or at ``options["state"]``, whose numbers the face's `state_limits` names."""
        given = _read_state(options, self.face.state_limits)
        super().reset(seed=seed)
        self._start(self.face.draw_start(self.np_random) if given is None else given)
        self._env_steps, self._return = 0, 0.0
        self._show()
        return self._observation(), self._info()

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Simulate one step; values beyond the action space are accepted, as in the originals."""
        if self._env_steps is None:
            raise ResetNeeded("Call reset() before step().")
        reward, terminated, env_steps = self._advance(read_action(action, self.face.action_size))
        self._env_steps += env_steps
        self._return += reward
        self._show()
        truncated = self._env_steps >= self.face.limit_steps
        return self._observation(), reward, terminated, truncated, self._info()

    def render(self) -> Frame | None:
        """The picture as an array (mode 'rgb_array'), or on the screen (mode 'human')."""
        if self._env_steps is None:
            raise ResetNeeded("Call reset() before render().")
        if self.render_mode is None:
            gymnasium.logger.warn("render() draws nothing without a render mode: pass render_mode='rgb_array'.")
            return None
        if self._window is None:
            return self.face.picture(self._state(), self._caption())
        self._show()
        return None

    def close(self) -> None:
        """Close the window; closing twice is fine."""
        self._env_steps = None
        if self._window is not None:
            self._window.close()

    def _elapsed_s(self) -> float:
        exact_s = self.face.env_dt.exact_s
        return (self._env_steps or 0) * exact_s.numerator / exact_s.denominator

    def _show(self) -> None:
        if self._window is not None:
            self._window.show(lambda: self.face.picture(self._state(), self._caption()), self._elapsed_s())

    def _caption(self) -> str:
        return f"{self._elapsed_s():.2f} s    return {self._return:.1f}"

    def _info(self) -> dict[str, Any]:
        return {}

    @abstractmethod
    def _start(self, state: TaskState) -> None:
        """Begin an episode at a state."""

    @abstractmethod
    def _advance(self, action: list[float]) -> tuple[float, bool, int]:
        """Simulate one step: its reward, whether the task ended, and how many environment steps it lasted."""

    @abstractmethod
    def _observation(self) -> Observation:
        """What the agent sees now."""

    @abstractmethod
    def _state(self) -> TaskState:
        """The present state, for drawing."""


def read_action(action: Action, size: int) -> list[float]:
    """The numbers of an action; anything else but finite numbers of the right count is refused."""
    try:
        values = np.asarray(action, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (size,) or not np.isfinite(values).all():
        raise InputError(f"{action!r} is no action: give an array of {size} finite number{'s' * (size > 1)}.")
    numbers: list[float] = values.tolist()
    return numbers


def _read_state(options: Mapping[str, Any] | None, limits: Mapping[str, float]) -> tuple[float, ...] | None:
    unknown = set(options or {}) - {"state"}
    if unknown:
        raise InputError(f"{min(unknown, key=str)!r} is no reset option: the only one is 'state'.")
    given = (options or {}).get("state")
    if given is None:
        return None
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (len(limits),) or not np.isfinite(values).all():
        raise InputError(f"{given!r} is no state: give {len(limits)} finite numbers ({', '.join(limits)}).")
    state: list[float] = values.tolist()
    for value, (name, limit) in zip(state, limits.items(), strict=True):
        if abs(value) > limit:
            raise InputError(f"The state's {name} is {value}: give a number from {-limit} to {limit}.")
    return tuple(state)
