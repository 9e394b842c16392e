"""The policies' distributions: a normal one, and one squashed into [-1, 1] by tanh."""

from __future__ import annotations

from math import log, pi

import jax
import jax.numpy as jnp

_LOG_SQRT_2_PI = log(2 * pi) / 2


def log_probability(mean: jax.Array, log_std: jax.Array, action: jax.Array) -> jax.Array:
    """The log-probability of an action whose components are independent and normal."""
    away = (action - mean) * jnp.exp(-log_std)
    return jnp.sum(-0.5 * away**2 - log_std - _LOG_SQRT_2_PI, axis=-1)


def entropy(log_std: jax.Array) -> jax.Array:
    """The entropy of independent normal components."""
    return jnp.sum(log_std + 0.5 + _LOG_SQRT_2_PI, axis=-1)


def divergence(mean: jax.Array, log_std: jax.Array, new_mean: jax.Array, new_log_std: jax.Array) -> jax.Array:
    """The Kullback-Leibler divergence from the first of two normal distributions to the second."""
    ratio = jnp.exp(2 * (log_std - new_log_std))
    away = ((new_mean - mean) * jnp.exp(-new_log_std)) ** 2
    return 0.5 * jnp.sum(ratio + away - 1 - 2 * (log_std - new_log_std), axis=-1)


def squashed_sample(mean: jax.Array, log_std: jax.Array, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
    """f(S, epsilon, theta) = tanh(mu + epsilon sigma), and its log-probability."""
    raw = mean + noise * jnp.exp(log_std)
    # log(1 - tanh(x)^2), in a form that does not lose its digits where tanh is near 1.
    log_slope = 2 * (log(2) - raw - jax.nn.softplus(-2 * raw))
    log_normal = -0.5 * noise**2 - log_std - _LOG_SQRT_2_PI
    return jnp.tanh(raw), jnp.sum(log_normal - log_slope, axis=-1)
