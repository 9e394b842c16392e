"""Networks of dense layers, and the weights that the paper's released code begins with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp


class Layer(NamedTuple):
    """A dense layer: inputs @ weight + bias."""

    weight: jax.Array
    bias: jax.Array


Network: TypeAlias = tuple[Layer, ...]
NewLayer: TypeAlias = Callable[[jax.Array, int, int], Layer]
Activation: TypeAlias = Callable[[jax.Array], jax.Array]


def new_network(key: jax.Array, sizes: Sequence[int], new_layer: NewLayer) -> Network:
    """Layers from sizes[0] inputs to sizes[-1] outputs."""
    keys = jax.random.split(key, len(sizes) - 1)
    return tuple(new_layer(*shape) for shape in zip(keys, sizes[:-1], sizes[1:], strict=True))


def outputs(network: Network, inputs: jax.Array, activation: Activation) -> jax.Array:
    """What the last layer gives, without an activation of its own."""
    *hidden, last = network
    for layer in hidden:
        inputs = activation(inputs @ layer.weight + layer.bias)
    return inputs @ last.weight + last.bias


def fan_in_uniform(key: jax.Array, inputs: int, outputs: int) -> Layer:
    """Weights and biases uniform within 1 / sqrt(inputs): PyTorch's default, which the released PPO has."""
    weight_key, bias_key = jax.random.split(key)
    bound = 1 / sqrt(inputs)
    return Layer(
        jax.random.uniform(weight_key, (inputs, outputs), minval=-bound, maxval=bound),
        jax.random.uniform(bias_key, (outputs,), minval=-bound, maxval=bound),
    )


def xavier_uniform(key: jax.Array, inputs: int, outputs: int) -> Layer:
    """Weights uniform within sqrt(6 / (inputs + outputs)), biases zero: the released SAC's."""
    bound = sqrt(6 / (inputs + outputs))
    return Layer(jax.random.uniform(key, (inputs, outputs), minval=-bound, maxval=bound), jnp.zeros((outputs,)))


def orthogonal(gain: float) -> NewLayer:
    """Orthogonal weights times a gain, biases zero."""
    new_weight = jax.nn.initializers.orthogonal(gain)
    return lambda key, inputs, outputs: Layer(new_weight(key, (inputs, outputs)), jnp.zeros((outputs,)))


def with_small_last_layer(network: Network) -> Network:
    """The released PPO's: the last layer's weights ten times smaller, its biases zero, so that it begins near zero."""
    *hidden, last = network
    return (*hidden, Layer(0.1 * last.weight, jnp.zeros_like(last.bias)))
