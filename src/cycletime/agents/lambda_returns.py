"""The lambda-return of Algorithm 4, computed backwards instead of by its double sum."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax


def lambda_advantages(
    reward: jax.Array,
    value: jax.Array,
    next_value: jax.Array,
    ended: jax.Array,
    discount: jax.Array | float,
    trace_decay: jax.Array | float,
) -> jax.Array:
    """G^lambda - v(S) for transitions in the order of time, along the first axis.

    `next_value` is v(S'), and 0 where S' is terminal; `ended` is 1 where the next transition begins another episode.
    After the last transition nothing follows but its own v(S'), so that a batch that is cut inside an episode ends in
    the n-step return of what there is.
    """
    error = reward + discount * next_value - value
    decay = discount * trace_decay * (1 - ended)

    def backwards(later: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        error, decay = now
        advantage = error + decay * later
        return advantage, advantage

    return lax.scan(backwards, jnp.zeros_like(error[0]), (error, decay), reverse=True)[1]
