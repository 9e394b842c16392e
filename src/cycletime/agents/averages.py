"""Averages in which some samples may weigh nothing."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def mean_of(numbers: jax.Array, weight: jax.Array | None) -> jax.Array:
    """The mean of what has weight; of everything, where no weights are given."""
    if weight is None:
        return jnp.mean(numbers)
    return jnp.sum(numbers * weight) / jnp.maximum(jnp.sum(weight), 1)


def normalized(numbers: jax.Array, weight: jax.Array | None) -> jax.Array:
    """The numbers shifted and scaled to mean 0 and standard deviation 1."""
    away = numbers - mean_of(numbers, weight)
    return away / (jnp.sqrt(mean_of(away**2, weight)) + 1e-8)
