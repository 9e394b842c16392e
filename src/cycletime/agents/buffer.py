"""The buffer B of Algorithm 1: transitions (S, A, R, S', T) in the order of time, the oldest overwritten when full.

One row of one array holds a transition, so that storing is one write and sampling one gather. Several copies of an
environment fill columns side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax


class Transition(NamedTuple):
    """One agent step, or an array of them."""

    observation: jax.Array
    """S, what the agent saw."""
    action: jax.Array
    """A, what it did."""
    reward: jax.Array
    """R, the sum of rewards until the next action."""
    next_observation: jax.Array
    """S', what came of it; at an episode's end its last observation, not the first of the next."""
    terminated: jax.Array
    """Whether the task itself ended the episode."""
    truncated: jax.Array
    """Whether a time limit did."""
    weight: jax.Array | None = None
    """0 for a step that only reset its environment, else 1; None where all steps are real."""

    @property
    def ended(self) -> jax.Array:
        """Whether the episode ended, either way."""
        return jnp.maximum(self.terminated, self.truncated)


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["rows", "stored", "newest_successor"],
    meta_fields=["observation_size", "action_size", "has_gaps"],
)
@dataclass(frozen=True)
class Buffer:
    """Transitions of one or several copies of an environment."""

    rows: jax.Array
    """[capacity, copies, numbers of a transition]."""
    stored: jax.Array
    """How many rows were stored since the buffer was last empty; those overwritten count, those refused do not."""
    newest_successor: jax.Array
    """[copies, observation_size]: S' of the newest transition, also of one that found no room."""
    observation_size: int
    action_size: int
    has_gaps: bool = False
    """Whether some rows only reset their environment, and weigh nothing."""

    @classmethod
    def empty(
        cls, capacity: int, observation_size: int, action_size: int, copies: int = 1, *, has_gaps: bool = False
    ) -> Buffer:
        """A buffer for so many rows of so many copies."""
        numbers = 2 * observation_size + action_size + 3 + has_gaps
        return cls(
            rows=jnp.zeros((capacity, copies, numbers)),
            stored=jnp.zeros((), jnp.int32),
            newest_successor=jnp.zeros((copies, observation_size)),
            observation_size=observation_size,
            action_size=action_size,
            has_gaps=has_gaps,
        )

    @property
    def capacity(self) -> int:
        """How many rows there is room for."""
        return self.rows.shape[0]

    @property
    def filled(self) -> jax.Array:
        """How many rows hold a transition."""
        return jnp.minimum(self.stored, self.capacity)

    def store(self, transition: Transition) -> Buffer:
        """Add one agent step of each copy; when the buffer is full, in place of the oldest."""
        row = self._row(transition)
        rows = lax.dynamic_update_slice_in_dim(self.rows, row[None], self.stored % self.capacity, axis=0)
        return replace(self, rows=rows, stored=self.stored + 1, newest_successor=self._successor(transition))

    def store_first(self, transition: Transition) -> Buffer:
        """Add one agent step of each copy; when the buffer is full, nowhere."""
        rows = self.rows.at[self.stored].set(self._row(transition), mode="drop")
        stored = jnp.minimum(self.stored + 1, self.capacity)
        return replace(self, rows=rows, stored=stored, newest_successor=self._successor(transition))

    def emptied(self) -> Buffer:
        """The buffer with nothing in it."""
        return replace(self, stored=jnp.zeros_like(self.stored))

    def oldest_first(self) -> Transition:
        """All transitions of a full buffer in the order of time, [capacity, copies, ...]."""
        return self.read(jnp.roll(self.rows, -(self.stored % self.capacity), axis=0))

    def sample(self, bits: jax.Array) -> Transition:
        """One transition for each random word, uniformly from those stored."""
        copies = self.rows.shape[1]
        # The remainder favours small numbers by less than one part in a thousand, for up to four million rows.
        chosen = (bits % (self.filled * copies).astype(jnp.uint32)).astype(jnp.int32)
        return self.read(self.rows.reshape(-1, self.rows.shape[-1])[chosen])

    def read(self, rows: jax.Array) -> Transition:
        """The transitions that rows hold."""
        s, a = self.observation_size, self.action_size
        return Transition(
            observation=rows[..., :s],
            action=rows[..., s : s + a],
            reward=rows[..., s + a],
            next_observation=rows[..., s + a + 1 : 2 * s + a + 1],
            terminated=rows[..., 2 * s + a + 1],
            truncated=rows[..., 2 * s + a + 2],
            weight=rows[..., 2 * s + a + 3] if self.has_gaps else None,
        )

    def _row(self, transition: Transition) -> jax.Array:
        parts = [part for part in transition if part is not None]
        return jnp.concatenate([self._per_copy(part) for part in parts], axis=1)

    def _successor(self, transition: Transition) -> jax.Array:
        return self._per_copy(transition.next_observation)

    def _per_copy(self, part: jax.Array) -> jax.Array:
        return jnp.asarray(part, self.rows.dtype).reshape(self.rows.shape[1], -1)
