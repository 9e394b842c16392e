"""Networks of dense layers and their initial weights."""

from math import sqrt

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents.networks import (
    Layer,
    fan_in_uniform,
    new_network,
    outputs,
    with_small_last_layer,
    xavier_uniform,
)
from tests.agents.conftest import Dense, arrays_of


def assert_uniform(numbers: jax.Array, bound: float) -> None:
    """Within the bound, and spread as a uniform distribution is."""
    flat = np.sort(np.ravel(numbers)) / bound
    assert np.all(np.abs(flat) <= 1)
    distance = np.max(np.abs((flat + 1) / 2 - (np.arange(flat.size) + 0.5) / flat.size))
    assert distance < 1.95 / sqrt(flat.size)  # Kolmogorov and Smirnov: once in a thousand times


@pytest.mark.parametrize(("inputs", "units"), [(4, 3000), (100, 200), (1, 500)])
def test_fan_in_uniform_is_pytorchs_default(inputs: int, units: int) -> None:
    layer = fan_in_uniform(jax.random.key(0), inputs, units)
    assert layer.weight.shape == (inputs, units)
    assert layer.bias.shape == (units,)
    assert_uniform(layer.weight, 1 / sqrt(inputs))
    assert_uniform(layer.bias, 1 / sqrt(inputs))


@pytest.mark.parametrize(("inputs", "units"), [(4, 3000), (100, 200), (256, 1)])
def test_xavier_uniform_is_glorots(inputs: int, units: int) -> None:
    layer = xavier_uniform(jax.random.key(0), inputs, units)
    assert layer.weight.shape == (inputs, units)
    assert_uniform(layer.weight, sqrt(6 / (inputs + units)))
    np.testing.assert_array_equal(layer.bias, np.zeros(units))


def test_a_networks_layers_fit_together_and_differ() -> None:
    network = new_network(jax.random.key(0), (3, 8, 8, 2), fan_in_uniform)
    assert [layer.weight.shape for layer in network] == [(3, 8), (8, 8), (8, 2)]
    square = new_network(jax.random.key(0), (8, 8, 8), fan_in_uniform)
    assert not np.array_equal(square[0].weight, square[1].weight)


def test_a_small_last_layer_is_ten_times_smaller_without_bias() -> None:
    network = new_network(jax.random.key(1), (3, 5, 4, 2), fan_in_uniform)
    small = with_small_last_layer(network)
    np.testing.assert_allclose(small[-1].weight, np.asarray(network[-1].weight) / 10, rtol=1e-6)
    np.testing.assert_array_equal(small[-1].bias, [0, 0])
    for before, after in zip(network[:-1], small[:-1], strict=True):
        np.testing.assert_array_equal(before.weight, after.weight)
        np.testing.assert_array_equal(before.bias, after.bias)


@pytest.mark.parametrize(("kind", "activation"), [("tanh", jnp.tanh), ("relu", jax.nn.relu)])
@pytest.mark.parametrize("sizes", [(3, 5, 4, 2), (3, 1), (1, 6, 7)])
def test_outputs_are_the_layers_multiplied_out(kind: str, activation: object, sizes: tuple[int, ...]) -> None:
    with jax.enable_x64(True):
        network = new_network(jax.random.key(2), sizes, fan_in_uniform)
        inputs = 3 * np.random.default_rng(0).normal(size=(6, sizes[0]))
        assert callable(activation)
        found = outputs(network, jnp.asarray(inputs), activation)
        np.testing.assert_allclose(found, Dense(arrays_of(network), kind).forward(inputs), atol=1e-12)


def test_the_last_layer_has_no_activation() -> None:
    network = (Layer(jnp.eye(2), jnp.zeros(2)), Layer(jnp.eye(2), jnp.array([0.0, -5.0])))
    np.testing.assert_array_equal(outputs(network, jnp.array([3.0, -1.0]), jax.nn.relu), [3.0, -5.0])
