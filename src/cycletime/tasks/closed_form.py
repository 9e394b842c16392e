"""Tasks as pure functions: `reset(key)`, `step(state, action)`, and `cycle`, which holds an action for k env steps.

Everything here can be compiled, vmapped and scanned by JAX. `cycle` is the inner part of the paper's Algorithm 1:
rewards are summed, and an episode that ends inside a cycle ends the cycle. On CPUs a hold is a rolled loop: unrolled
ones run slower and compile long, since XLA computes anew what several later steps share. On GPUs its outputs share
their work, and four steps at a time are faster (results/holds-h200.txt).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from cycletime.duration import Duration, DurationLike
from cycletime.duration import cycle_steps as whole_multiple
from cycletime.errors import InputError
from cycletime.tasks.render import Frame

State: TypeAlias = Any
"""A task's own NamedTuple of scalars, `env_steps` among them; scalars and not a vector, since XLA fuses those best."""
Numbers: TypeAlias = tuple[float, ...]
"""The numbers that an episode can begin with, in the order of `ClosedFormTask.state_limits`."""


class Step(NamedTuple):
    state: State
    observation: jax.Array
    reward: jax.Array
    """The sum of rewards on the way."""
    terminated: jax.Array
    truncated: jax.Array


@dataclass(frozen=True)
class ClosedFormTask(ABC):
    title: ClassVar[str]
    state_type: ClassVar[type[Any]]
    """Of the states of a task that leaves `start` as it is."""
    where: ClassVar[str] = "closed form"
    """What results on it are labelled with."""
    usual_env_dt: ClassVar[Duration]
    original_dt: ClassVar[Duration | None] = None
    """The time step of the public original, for which its reward was made; None where the time step is fixed."""
    baseline_dt: ClassVar[Duration] = Duration("16ms")
    """The cycle time where the paper starts from, and which environments have where none is asked for."""
    time_limit: ClassVar[Duration]
    shortest_episode: ClassVar[Duration]
    """The least time in which the task itself can end an episode; the time limit where it never does."""
    action_size: ClassVar[int]
    """Numbers in an action, each meant to lie in [-1, 1]; others are accepted, as in the originals."""
    observation_limits: ClassVar[Mapping[str, float]]
    """The observed numbers, in order, and sizes that they do not exceed, generous where the physics set none."""
    state_limits: ClassVar[Mapping[str, float]]
    """The numbers that `start` takes, in order, and the largest size that each may have."""

    dtype: Any = jnp.float32
    unroll: int | None = None
    """How many steps of a hold are compiled in one piece; by default what benchmarks/holds.py found fastest."""
    env_dt: Duration = None  # type: ignore[assignment]  # None stands for the usual one
    """The time step of the simulation, the same at every cycle time."""

    def __post_init__(self) -> None:
        """Refuse a precision that JAX would silently replace, and a time step that does not suit the task."""
        given: DurationLike | None = self.env_dt
        object.__setattr__(self, "env_dt", self.usual_env_dt if given is None else Duration(given))
        if self.original_dt is None and self.env_dt != self.usual_env_dt:
            raise InputError(
                f"env_dt is {self.env_dt}: the {self.title} has a time step of its own, {self.usual_env_dt}."
            )
        if self.original_dt is not None and self.env_dt > self.original_dt:
            raise InputError(f"env_dt is {self.env_dt}: that of the {self.title} is {self.original_dt} at most.")
        for span in (self.time_limit, self.shortest_episode):
            if (span / self.env_dt).denominator != 1:
                raise InputError(f"env_dt is {self.env_dt}: {span} of the {self.title} must be a whole multiple of it.")
        if self.dtype not in (jnp.float32, jnp.float64):
            raise InputError(f"dtype is {self.dtype!r}: it must be jax.numpy.float32 or float64.")
        if self.dtype == jnp.float64 and not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
            raise InputError("float64 is switched off in JAX: call jax.config.update('jax_enable_x64', True) first.")

    @property
    def observation_size(self) -> int:
        return len(self.observation_limits)

    @cached_property
    def limit_steps(self) -> int:
        """The time limit in environment steps; asked for at every step, so that it is computed once."""
        return whole_multiple(self.time_limit, self.env_dt)

    @property
    def step_share(self) -> float:
        """The part of the original's time step that one step lasts, and so its part of a reward per time."""
        assert self.original_dt is not None, "tasks with a fixed time step have a fixed share"
        return float(self.env_dt / self.original_dt)

    @abstractmethod
    def reset(self, key: jax.Array) -> State:
        """A fresh episode."""

    def start(self, *numbers: jax.Array) -> State:
        """An episode that begins with given numbers, those that `state_limits` names; here they are all of a state."""
        return self.state_type(*(jnp.asarray(number, self.dtype) for number in numbers), jnp.zeros((), jnp.int32))

    def numbers(self, state: State) -> tuple[jax.Array, ...]:
        """The numbers that `start` takes; here the first of the state."""
        return tuple(state[: len(self.state_limits)])

    @abstractmethod
    def draw_start(self, rng: np.random.Generator) -> Numbers:
        """The numbers of a fresh episode by NumPy's random numbers, drawn in the original's order."""

    @abstractmethod
    def picture(self, numbers: Numbers, caption: str = "") -> Frame:
        """The picture of a state."""

    @abstractmethod
    def observe(self, state: State) -> jax.Array:
        """What the agent sees."""

    def step(self, state: State, action: jax.Array) -> Step:
        """One environment step; the standard loop is the special case k = 1 of `cycle`."""
        return self.cycle(state, action, cycle_steps=1)

    def cycle(self, state: State, action: jax.Array, cycle_steps: int) -> Step:
        """Hold an action for k environment steps, or until the episode ends; it must not have ended before."""
        action = jnp.asarray(action, self.dtype)
        can_terminate = self.shortest_episode < self.time_limit
        ends_inside = cycle_steps > 1 and (can_terminate or self.limit_steps % cycle_steps != 0)

        def hold(carry: tuple[State, jax.Array, jax.Array], _: None) -> tuple[tuple[State, jax.Array, jax.Array], None]:
            before, reward, terminated = carry
            after, gained, ends = self._advance(before, action)
            taken = (after, reward + gained, ends)
            if not ends_inside:
                return taken, None
            over = terminated | (before.env_steps >= self.limit_steps)
            return jax.tree.map(lambda old, new: jnp.where(over, old, new), carry, taken), None

        start = (state, jnp.zeros((), self.dtype), jnp.zeros((), jnp.bool))
        unroll = self.unroll or (4 if jax.default_backend() == "gpu" else 1)
        (after, reward, terminated), _ = lax.scan(hold, start, None, length=cycle_steps, unroll=unroll)
        after, bonus = self._finish(state, after)
        truncated = after.env_steps >= self.limit_steps
        return Step(after, self.observe(after), reward + bonus, terminated, truncated)

    @abstractmethod
    def _advance(self, state: State, action: jax.Array) -> tuple[State, jax.Array, jax.Array]:
        """One step of the physics: the state after it, its reward, and whether it terminates the episode."""

    def _finish(self, before: State, after: State) -> tuple[State, jax.Array]:
        """What is cheaper to compute once per cycle than at each of its steps; here nothing."""
        return after, jnp.zeros((), self.dtype)
