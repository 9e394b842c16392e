"""What one-step actor-critic and PPO share: a normal policy pi_theta and a state value v_w."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from typing import Literal, NamedTuple, TypeAlias, get_args

import jax
import jax.numpy as jnp

from cycletime.agents.gaussians import log_probability
from cycletime.agents.networks import (
    Network,
    fan_in_uniform,
    new_network,
    orthogonal,
    outputs,
    with_small_last_layer,
)

InitialWeights: TypeAlias = Literal["released", "pytorch", "orthogonal"]
"""What the field `initial_weights` of the agents may be; they say what each means."""
INITIAL_WEIGHTS = get_args(InitialWeights)


class Policy(NamedTuple):
    """theta: a network for mu, and a sigma that does not depend on the state."""

    network: Network
    log_std: jax.Array


class Parameters(NamedTuple):
    """theta and w."""

    policy: Policy
    value: Network


def new_parameters(
    key: jax.Array,
    observation_size: int,
    action_size: int,
    hidden: Sequence[int],
    noise_std: float,
    initial_weights: InitialWeights = "released",
) -> Parameters:
    """Weights before the first learning."""
    policy_key, value_key = jax.random.split(key)
    mean = _new_network(policy_key, (observation_size, *hidden, action_size), initial_weights, last_gain=0.01)
    value = _new_network(value_key, (observation_size, *hidden, 1), initial_weights, last_gain=1.0)
    log_std = jnp.full((action_size,), log(noise_std), mean[-1].bias.dtype)
    return Parameters(Policy(mean, log_std), value)


def _new_network(key: jax.Array, sizes: Sequence[int], kind: InitialWeights, last_gain: float) -> Network:
    if kind == "orthogonal":
        *hidden_keys, last_key = jax.random.split(key, len(sizes) - 1)
        body, last = orthogonal(sqrt(2)), orthogonal(last_gain)
        hidden = [body(*shape) for shape in zip(hidden_keys, sizes[:-2], sizes[1:-1], strict=True)]
        return (*hidden, last(last_key, sizes[-2], sizes[-1]))
    network = new_network(key, sizes, fan_in_uniform)
    return with_small_last_layer(network) if kind == "released" else network


def policy_mean(policy: Policy, observation: jax.Array) -> jax.Array:
    """mu(S)."""
    return outputs(policy.network, observation, jnp.tanh)


def log_probability_of(policy: Policy, observation: jax.Array, action: jax.Array) -> jax.Array:
    """The policy's log pi(A|S)."""
    return log_probability(policy_mean(policy, observation), policy.log_std, action)


def state_value(value: Network, observation: jax.Array) -> jax.Array:
    """v(S)."""
    return outputs(value, observation, jnp.tanh)[..., 0]
