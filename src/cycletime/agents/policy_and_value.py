"""What one-step actor-critic and PPO share: a normal policy pi_theta and a state value v_w."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import NamedTuple

import jax
import jax.numpy as jnp

from cycletime.agents.gaussians import log_probability
from cycletime.agents.networks import Network, fan_in_uniform, new_network, outputs, with_small_last_layer


class Policy(NamedTuple):
    """theta: a network for mu, and a sigma that does not depend on the state."""

    network: Network
    log_std: jax.Array


class Parameters(NamedTuple):
    """theta and w."""

    policy: Policy
    value: Network


def new_parameters(
    key: jax.Array, observation_size: int, action_size: int, hidden: Sequence[int], noise_std: float
) -> Parameters:
    """Weights as the released code's PPO begins with."""
    policy_key, value_key = jax.random.split(key)
    mean = new_network(policy_key, (observation_size, *hidden, action_size), fan_in_uniform)
    value = new_network(value_key, (observation_size, *hidden, 1), fan_in_uniform)
    log_std = jnp.full((action_size,), log(noise_std), mean[-1].bias.dtype)
    return Parameters(Policy(with_small_last_layer(mean), log_std), with_small_last_layer(value))


def policy_mean(policy: Policy, observation: jax.Array) -> jax.Array:
    """mu(S)."""
    return outputs(policy.network, observation, jnp.tanh)


def log_probability_of(policy: Policy, observation: jax.Array, action: jax.Array) -> jax.Array:
    """The policy's log pi(A|S)."""
    return log_probability(policy_mean(policy, observation), policy.log_std, action)


def state_value(value: Network, observation: jax.Array) -> jax.Array:
    """v(S)."""
    return outputs(value, observation, jnp.tanh)[..., 0]
