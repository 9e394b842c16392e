"""The closed-form tasks as Gymnasium environments: one of them, and many in one compiled program; a step is a cycle.

A call of a compiled program pays for each array, several times what simulating a cycle takes; so a single environment
packs the numbers of its state into one row (`PackedTask`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.envs.registration import load_env_creator
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from jax import lax
from numpy.typing import NDArray

from cycletime.duration import Duration, DurationLike, cycle_steps, refuse_longer_than
from cycletime.errors import InputError
from cycletime.tasks.base_env import Observation, TaskEnv, action_space, observation_space
from cycletime.tasks.closed_form import ClosedFormTask, Numbers, State, Step
from cycletime.tasks.render import frame_rate
from cycletime.tasks.time_step import clock_info

Row = NDArray[np.floating[Any]]
"""A state's numbers one after the other; whole numbers and flags have their bits in it."""


class PackedStep(NamedTuple):
    row: Row
    observation: NDArray[np.float32]
    reward: float
    terminated: bool
    env_steps: int


class PackedTask:
    """A task at a cycle time; copies and pickles of it share its compiled programs (see `packed_task`)."""

    def __init__(self, task: ClosedFormTask, cycle_steps: int) -> None:
        self._made_of = (task, cycle_steps)
        self._float = np.dtype(task.dtype)
        self._word = np.dtype(f"i{self._float.itemsize}")
        begun = jax.eval_shape(task.start, *(0.0,) * len(task.state_limits))
        leaves, self._tree = jax.tree.flatten(begun)
        self._dtypes = [leaf.dtype for leaf in leaves]
        self._size = len(leaves)
        self._start = jax.jit(self._packed_start)
        self._cycle = jax.jit(self._packed_cycle)

    def __reduce__(self) -> tuple[Any, ...]:
        return packed_task, self._made_of

    def start(self, numbers: Numbers) -> PackedStep:
        return self._read(self._start(np.array(numbers, self._float)))

    def cycle(self, row: Row, action: Sequence[float]) -> PackedStep:
        given = np.empty(self._size + len(action), self._float)
        given[: self._size], given[self._size :] = row, action
        return self._read(self._cycle(given))

    def _read(self, packed: jax.Array) -> PackedStep:
        numbers = np.asarray(packed)
        words = numbers.view(self._word)
        return PackedStep(
            numbers[: self._size],
            numbers[self._size : -3].astype(np.float32),  # a copy, since JAX's own arrays cannot be written to
            numbers.item(-3),
            bool(words.item(-2)),
            words.item(-1),
        )

    def _packed_start(self, numbers: jax.Array) -> jax.Array:
        task, _ = self._made_of
        state = task.start(*numbers)
        return self._pack(state, task.observe(state), jnp.zeros((), self._float), jnp.zeros((), jnp.bool))

    def _packed_cycle(self, given: jax.Array) -> jax.Array:
        task, cycle_steps = self._made_of
        step = task.cycle(self.state(given[: self._size]), given[self._size :], cycle_steps)
        return self._pack(step.state, step.observation, step.reward, step.terminated)

    def _pack(self, state: State, observation: jax.Array, reward: jax.Array, terminated: jax.Array) -> jax.Array:
        # The bits and not the values: a float32 counts no further than 2**24.
        numbers = [*jax.tree.leaves(state), *observation, reward, terminated, state.env_steps]
        return jnp.stack(
            [
                number
                if jnp.issubdtype(number.dtype, jnp.floating)
                else lax.bitcast_convert_type(number.astype(self._word), self._float)
                for number in numbers
            ]
        )

    def state(self, row: Row | jax.Array) -> State:
        leaves = [
            number
            if jnp.issubdtype(dtype, jnp.floating)
            else lax.bitcast_convert_type(number, self._word).astype(dtype)
            for number, dtype in zip(row, self._dtypes, strict=True)
        ]
        return jax.tree.unflatten(self._tree, leaves)


@lru_cache
def packed_task(task: ClosedFormTask, cycle_steps: int) -> PackedTask:
    return PackedTask(task, cycle_steps)


class ClosedFormEnv(TaskEnv):
    """One copy of a closed-form task.

    Example:
        >>> ClosedFormEnv(Reacher(), dt="16ms")
    """

    def __init__(
        self,
        task: ClosedFormTask | str,
        dt: DurationLike | None = None,
        render_mode: str | None = None,
        env_dt: DurationLike | None = None,
    ) -> None:
        """Make the environment at a cycle time, a whole multiple of the time step; the task has usual ones of both.

        The task may be its class as 'module:Class', which Gymnasium can write down.
        """
        self.task, self._dt, held = _timed_task(task, dt, env_dt)
        self._packed = packed_task(self.task, held)
        super().__init__(render_mode)

    @property
    def dt(self) -> float:
        return float(self._dt)

    @property
    def env_dt(self) -> float:
        return float(self.task.env_dt)

    @property
    def env_steps(self) -> int:
        return self._env_steps or 0

    def _start(self, state: Numbers) -> None:
        self._now = self._packed.start(state)
        self._agent_steps, self._last_env_steps = 0, 0

    def _advance(self, action: list[float]) -> tuple[float, bool, int]:
        before = self._env_steps or 0
        self._now = self._packed.cycle(self._now.row, action)
        self._agent_steps += 1
        self._last_env_steps = self._now.env_steps - before
        return self._now.reward, self._now.terminated, self._last_env_steps

    def _observation(self) -> Observation:
        return self._now.observation

    def _info(self) -> dict[str, Any]:
        return clock_info(self._env_steps, self._agent_steps, self.task.env_dt, self._last_env_steps)

    def _state(self) -> Numbers:
        return tuple(float(number) for number in self.task.numbers(self._packed.state(self._now.row)))


class ClosedFormVectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Many copies in one compiled program; one that ended begins anew at the next step, which ignores its action."""

    metadata: dict[str, Any] = {  # noqa: RUF012 - declared so by Gymnasium
        "autoreset_mode": AutoresetMode.NEXT_STEP,
        "render_modes": ["rgb_array"],
        "raw_actions": True,
    }

    def __init__(
        self,
        task: ClosedFormTask | str,
        num_envs: int = 1,
        dt: DurationLike | None = None,
        render_mode: str | None = None,
        env_dt: DurationLike | None = None,
    ) -> None:
        if num_envs < 1:
            raise InputError(f"num_envs is {num_envs}: it must be a whole number of at least 1.")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise InputError(f"{render_mode!r} is not a render mode of many environments: give 'rgb_array' or None.")
        self.num_envs, self.render_mode = num_envs, render_mode
        self.task, self._dt, self._cycle_steps = _timed_task(task, dt, env_dt)
        self.metadata = {**self.metadata, "render_fps": frame_rate(self.dt)}
        self.single_action_space = action_space(self.task)
        self.single_observation_space = observation_space(self.task)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._states: State | None = None

    @property
    def dt(self) -> float:
        return float(self._dt)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        if options:
            raise InputError(f"{next(iter(options))!r} is not a reset option: many environments at once have none.")
        if seed is not None or self._states is None:
            self._key = jax.random.key(np.random.SeedSequence(seed).generate_state(1)[0])
        self._key, key = jax.random.split(self._key)
        self._states, seen = _compiled_reset(self.task, self.num_envs)(key)
        self._ended = np.zeros(self.num_envs, bool)
        self._agent_steps = np.zeros(self.num_envs, np.int64)
        self._last_env_steps = np.zeros(self.num_envs, np.int64)
        return np.array(seen), self._info()

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[Observation, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Simulate one cycle in every copy; those that had ended start a new episode instead, with reward 0."""
        if self._states is None:
            raise gymnasium.error.ResetNeeded("Call reset() before step().")
        actions = np.asarray(actions, np.float32)
        if actions.shape != (self.num_envs, self.task.action_size):
            expected = (self.num_envs, self.task.action_size)
            raise InputError(f"The actions have the shape {actions.shape}: it must be {expected}.")
        if not np.isfinite(actions).all():
            wrong = np.flatnonzero(~np.isfinite(actions).all(axis=1)).tolist()
            raise InputError(f"The actions of the copies {wrong} are not all finite: give finite numbers.")
        program = _compiled_vector_step(self.task, self._cycle_steps)
        before = np.asarray(self._states.env_steps, np.int64)
        self._key, step = program(self._key, self._states, self._ended, actions)
        self._states = step.state
        self._agent_steps = np.where(self._ended, 0, self._agent_steps + 1)
        self._last_env_steps = np.where(self._ended, 0, np.asarray(step.state.env_steps, np.int64) - before)
        # Copies, since JAX's own arrays cannot be written to.
        terminated, truncated = np.array(step.terminated), np.array(step.truncated)
        self._ended = terminated | truncated
        return np.array(step.observation), np.array(step.reward, np.float64), terminated, truncated, self._info()

    def render(self) -> tuple[Any, ...] | None:
        if self.render_mode is None or self._states is None:
            return None
        columns = [np.asarray(column, np.float64) for column in self.task.numbers(self._states)]
        return tuple(self.task.picture(tuple(row), "") for row in np.stack(columns, axis=1).tolist())

    def _info(self) -> dict[str, Any]:
        assert self._states is not None, "only called between a reset and the next"
        env_steps = np.array(self._states.env_steps, np.int64)
        return clock_info(env_steps, self._agent_steps.copy(), self.task.env_dt, self._last_env_steps.copy())


def _timed_task(
    task: ClosedFormTask | str, dt: DurationLike | None, env_dt: DurationLike | None
) -> tuple[ClosedFormTask, Duration, int]:
    """The task with its time step, its cycle time, and the steps in a cycle."""
    if isinstance(task, str):
        task = load_env_creator(task)()  # type: ignore[assignment]  # loads any 'module:name'
        assert isinstance(task, ClosedFormTask), "registered so"
    task = task if env_dt is None else replace(task, env_dt=Duration(env_dt))
    given = task.baseline_dt if dt is None else Duration(dt)
    refuse_longer_than(task.time_limit, given)
    return task, given, cycle_steps(given, task.env_dt)


# Compiled once for all environments of a task and a cycle time.


@lru_cache
def _compiled_reset(task: ClosedFormTask, num_envs: int) -> Any:  # noqa: ANN401
    def reset(key: jax.Array) -> tuple[State, jax.Array]:
        states = jax.vmap(task.reset)(jax.random.split(key, num_envs))
        return states, jax.vmap(task.observe)(states)

    return jax.jit(reset)


@lru_cache
def _compiled_vector_step(task: ClosedFormTask, cycle_steps: int) -> Any:  # noqa: ANN401
    def one(state: State, ended: jax.Array, fresh: State, action: jax.Array) -> Step:
        step = task.cycle(state, action, cycle_steps)
        begun = Step(fresh, task.observe(fresh), jnp.zeros_like(step.reward), jnp.bool(False), jnp.bool(False))
        chosen: Step = jax.tree.map(lambda new, old: jnp.where(ended, new, old), begun, step)
        return chosen

    def step(key: jax.Array, states: State, ended: jax.Array, actions: jax.Array) -> tuple[jax.Array, Step]:
        key, reset_key = jax.random.split(key)
        keys = jax.random.split(reset_key, ended.shape[0])
        # Random numbers are dear, and in most steps no copy has ended.
        fresh = jax.lax.cond(ended.any(), lambda: jax.vmap(task.reset)(keys), lambda: states)
        return key, jax.vmap(one)(states, ended, fresh, actions)

    return jax.jit(step)
