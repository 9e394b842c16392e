"""Tasks as pure functions: `reset(key)`, `step(state, action)`, and `cycle`, which holds an action for k env steps.

Everything here can be compiled, vmapped and scanned by JAX. `cycle` is the inner part of the paper's Algorithm 1:
rewards are summed, and an episode that ends inside a cycle ends the cycle. On CPUs a hold is a rolled loop: unrolled
ones run slower and compile long, since XLA computes anew what several later steps share. On GPUs its outputs share
their work, and four steps at a time are faster (docs/tasks.md has the numbers).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from cycletime.duration import Duration
from cycletime.duration import cycle_steps as whole_multiple
from cycletime.errors import InputError

State: TypeAlias = Any
"""A task's own NamedTuple of scalars, `env_steps` among them; scalars and not a vector, since XLA fuses those best."""


class Step(NamedTuple):
    """What one environment step, or one cycle of them, gives."""

    state: State
    """The state after it."""
    observation: jax.Array
    """What the agent sees of that state."""
    reward: jax.Array
    """The sum of rewards on the way."""
    terminated: jax.Array
    """Whether the task itself ended the episode."""
    truncated: jax.Array
    """Whether the time limit did."""


@dataclass(frozen=True)
class ClosedFormTask(ABC):
    """A simulated task written out in formulas."""

    env_dt: ClassVar[Duration]
    """The environment's time step, the same at every cycle time."""
    time_limit: ClassVar[Duration]
    """The longest episode."""
    shortest_episode: ClassVar[Duration]
    """No episode ends sooner, whatever is done."""
    can_terminate: ClassVar[bool]
    """Whether episodes can end before the time limit."""
    observation_size: ClassVar[int]
    """Numbers in an observation."""
    action_size: ClassVar[int]
    """Numbers in an action, each meant to lie in [-1, 1]."""

    dtype: Any = jnp.float32
    """The precision, float32 or float64."""
    unroll: int | None = None
    """How many steps of a hold are compiled in one piece; by default what benchmarks/holds.py found fastest."""

    def __post_init__(self) -> None:
        """Refuse a precision that JAX would silently replace."""
        if self.dtype not in (jnp.float32, jnp.float64):
            raise InputError(f"dtype is {self.dtype!r}: it must be jax.numpy.float32 or float64.")
        if self.dtype == jnp.float64 and not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
            raise InputError("float64 is switched off in JAX: call jax.config.update('jax_enable_x64', True) first.")

    @property
    def limit_steps(self) -> int:
        """The time limit in environment steps."""
        return whole_multiple(self.time_limit, self.env_dt)

    @abstractmethod
    def reset(self, key: jax.Array) -> State:
        """A fresh episode."""

    @abstractmethod
    def start(self, *numbers: jax.Array) -> State:
        """An episode that begins with given numbers."""

    @abstractmethod
    def numbers(self, state: State) -> tuple[jax.Array, ...]:
        """The numbers that `start` takes."""

    @abstractmethod
    def observe(self, state: State) -> jax.Array:
        """What the agent sees."""

    def step(self, state: State, action: jax.Array) -> Step:
        """One environment step; the standard loop is the special case k = 1 of `cycle`."""
        return self.cycle(state, action, cycle_steps=1)

    def cycle(self, state: State, action: jax.Array, cycle_steps: int) -> Step:
        """Hold an action for k environment steps, or until the episode ends; it must not have ended before."""
        action = jnp.asarray(action, self.dtype)
        ends_inside = cycle_steps > 1 and (self.can_terminate or self.limit_steps % cycle_steps != 0)

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
