"""A closed-form task for callers who step it from Python: one array in, one array out.

A call of a compiled program pays for each array that it takes and gives, several times what simulating a cycle takes. A
state has ten numbers and more, so all of them travel in one row; the formulas are those of the task, untouched.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from cycletime.tasks.closed_form import ClosedFormTask, Numbers, State

Row = NDArray[np.floating[Any]]
"""A state's numbers one after the other; whole numbers and flags have their bits in it."""


class PackedStep(NamedTuple):
    """What a start or a cycle gives."""

    row: Row
    """The state after it, for the next cycle."""
    observation: NDArray[np.float32]
    """What the agent sees of that state; the caller's to keep and to change."""
    reward: float
    """The sum of rewards on the way."""
    terminated: bool
    """Whether the task itself ended the episode."""
    env_steps: int
    """The environment steps since the episode's start."""


class PackedTask:
    """A task at a cycle time; copies and pickles of it share its compiled programs (see `packed_task`)."""

    def __init__(self, task: ClosedFormTask, cycle_steps: int) -> None:
        """Prepare programs, which are compiled when they are called first."""
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
        """As what it is made of."""
        return packed_task, self._made_of

    def start(self, numbers: Numbers) -> PackedStep:
        """An episode that begins with given numbers."""
        return self._read(self._start(np.array(numbers, self._float)))

    def cycle(self, row: Row, action: Sequence[float]) -> PackedStep:
        """Hold an action for the cycle, or until the episode ends."""
        given = np.empty(self._size + len(action), self._float)
        given[: self._size], given[self._size :] = row, action
        return self._read(self._cycle(given))

    def state(self, row: Row) -> State:
        """The state in a row, of NumPy's numbers."""
        leaves = [
            number if np.issubdtype(dtype, np.floating) else number.view(self._word).astype(dtype)
            for number, dtype in zip(row, self._dtypes, strict=True)
        ]
        return jax.tree.unflatten(self._tree, leaves)

    def _read(self, told: jax.Array) -> PackedStep:
        numbers = np.asarray(told)
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
        step = task.cycle(self._unpack(given[: self._size]), given[self._size :], cycle_steps)
        return self._pack(step.state, step.observation, step.reward, step.terminated)

    def _pack(self, state: State, observation: jax.Array, reward: jax.Array, terminated: jax.Array) -> jax.Array:
        numbers = [*jax.tree.leaves(state), *observation, reward, terminated, state.env_steps]
        return jnp.stack([self._in_a_row(number) for number in numbers])

    def _unpack(self, row: jax.Array) -> State:
        leaves = [self._from_a_row(number, dtype) for number, dtype in zip(row, self._dtypes, strict=True)]
        return jax.tree.unflatten(self._tree, leaves)

    def _in_a_row(self, number: jax.Array) -> jax.Array:
        """The bits and not the value: a float32 counts no further than 2**24."""
        if jnp.issubdtype(number.dtype, jnp.floating):
            return number
        return lax.bitcast_convert_type(number.astype(self._word), self._float)

    def _from_a_row(self, number: jax.Array, dtype: Any) -> jax.Array:  # noqa: ANN401 - NumPy's type of a number
        if jnp.issubdtype(dtype, jnp.floating):
            return number
        return lax.bitcast_convert_type(number, self._word).astype(dtype)


@lru_cache
def packed_task(task: ClosedFormTask, cycle_steps: int) -> PackedTask:
    """The one for all environments of a task and a cycle time, so that its programs are compiled once."""
    return PackedTask(task, cycle_steps)
