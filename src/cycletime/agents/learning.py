"""What PPO and SAC learn with: the Adam optimiser (Kingma & Ba 2014, Algorithm 1), and means over weighted samples.

Adam is ours rather than optax's, since GPU machines with nothing but JAX must train too; tests hold it against both
optax and the paper's formulas.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp

MEAN_DECAY, SQUARE_DECAY, EPSILON = 0.9, 0.999, 1e-8
"""beta_1, beta_2 and epsilon, the values that Kingma & Ba suggest."""

_Tree = TypeVar("_Tree")


class AdamState(NamedTuple):
    """The optimiser's memory of the gradients so far."""

    taken: jax.Array
    """t, the steps taken."""
    mean: object
    """m, shaped as the parameters."""
    square: object
    """v, shaped as the parameters."""


def adam_start(parameters: object) -> AdamState:
    """No gradients seen yet."""
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    return AdamState(jnp.zeros((), jnp.int32), zeros, zeros)


def adam_step(
    parameters: _Tree, gradient: _Tree, state: AdamState, learning_rate: jax.Array | float
) -> tuple[_Tree, AdamState]:
    """The parameters after one step down the gradient."""
    count = state.taken + 1
    mean = jax.tree.map(lambda m, g: MEAN_DECAY * m + (1 - MEAN_DECAY) * g, state.mean, gradient)
    square = jax.tree.map(lambda v, g: SQUARE_DECAY * v + (1 - SQUARE_DECAY) * g**2, state.square, gradient)
    scale, whiten = adam_scales(count, learning_rate)
    parameters = jax.tree.map(
        lambda p, m, v: p - scale * m / (jnp.sqrt(v) * whiten + EPSILON), parameters, mean, square
    )
    return parameters, AdamState(count, mean, square)


def adam_scales(count: jax.Array, learning_rate: jax.Array | float) -> tuple[jax.Array, jax.Array]:
    """What the t-th step scales m and the root of v by: 1 / (1 - beta^t) undoes that both averages start at zero."""
    return learning_rate / (1 - MEAN_DECAY**count), 1 / jnp.sqrt(1 - SQUARE_DECAY**count)


def weighted_mean(numbers: jax.Array, weight: jax.Array | None) -> jax.Array:
    """The mean of what has weight; of everything, where no weights are given."""
    if weight is None:
        return jnp.mean(numbers)
    return jnp.sum(numbers * weight) / jnp.maximum(jnp.sum(weight), 1)
