"""Networks, their initial weights, and the distributions of actions against densities and integrals written out."""

from functools import partial
from itertools import pairwise
from math import log, sqrt
from typing import Literal

import jax
import numpy as np
import pytest

from cycletime.agents.networks import (
    Layer,
    NewLayer,
    Parameters,
    fan_in_uniform,
    forward,
    gaussian_entropy,
    gaussian_kl,
    gaussian_log_probability,
    new_network,
    new_parameters,
    policy_log_probability,
    squashed_sample,
    state_value,
    with_small_last_layer,
    xavier_uniform,
)
from tests.agents.conftest import Array, Dense, arrays_of, normal_log_density, randomized

pytestmark = pytest.mark.usefixtures("float64")
quick = pytest.mark.usefixtures("compiled_quickly")


# First of all, since all that follows is compiled quickly, and this is about what XLA makes of the formula for users.


@pytest.mark.parametrize("double", [True, False])
def test_no_digits_are_lost_where_tanh_is_near_one(double: bool) -> None:
    raw = np.array([-200.0, -20.0, -5.0, 5.0, 20.0, 200.0])
    with jax.enable_x64(double):
        epsilon = float(np.finfo(np.float64 if double else np.float32).eps)
        zero = np.zeros(1)
        both = jax.jit(jax.vmap(jax.value_and_grad(lambda mean: squashed_sample(mean[None], zero, zero)[1])))  # type: ignore[arg-type]
        found, slope = both(raw)
    # 1 - tanh(x)^2 = 4 exp(-2 |x|) / (1 + exp(-2 |x|))^2.
    log_slope = np.log(4) - 2 * np.abs(raw) - 2 * np.log1p(np.exp(-2 * np.abs(raw)))
    np.testing.assert_allclose(found, -np.log(2 * np.pi) / 2 - log_slope, rtol=8 * epsilon)
    np.testing.assert_allclose(slope, 2 * np.tanh(raw), rtol=8 * epsilon)


# Networks.


def assert_uniform(numbers: jax.Array, bound: float) -> None:
    """Within the bound, and spread as a uniform distribution is."""
    flat = np.sort(np.ravel(numbers)) / bound
    assert np.all(np.abs(flat) <= 1)
    distance = np.max(np.abs((flat + 1) / 2 - (np.arange(flat.size) + 0.5) / flat.size))
    assert distance < 1.95 / sqrt(flat.size)  # Kolmogorov and Smirnov: once in a thousand times


def a_layer(new_layer: NewLayer) -> Layer:
    """From 4 inputs to 900 outputs."""
    layer: Layer = jax.jit(lambda key: new_layer(key, 4, 900))(jax.random.key(0))
    assert (layer.weight.shape, layer.bias.shape) == ((4, 900), (900,))
    return layer


@quick
def test_fan_in_uniform_is_pytorchs_default() -> None:
    layer = a_layer(fan_in_uniform)
    assert_uniform(layer.weight, 1 / 2)
    assert_uniform(layer.bias, 1 / 2)


@quick
def test_xavier_uniform_is_glorots() -> None:
    layer = a_layer(xavier_uniform)
    assert_uniform(layer.weight, sqrt(6 / 904))
    np.testing.assert_array_equal(layer.bias, np.zeros(900))


@quick
def test_a_networks_layers_fit_together_and_differ() -> None:
    network = jax.jit(lambda key: new_network(key, (8, 8, 8, 2), fan_in_uniform))(jax.random.key(0))
    assert [layer.weight.shape for layer in network] == [(8, 8), (8, 8), (8, 2)]
    assert not np.array_equal(network[0].weight, network[1].weight)


@pytest.mark.parametrize(("inputs", "outputs"), [(9, 64), (5, 3), (1, 33), (64, 1)])
def test_layers_begin_with_the_numbers_that_they_always_had(inputs: int, outputs: int) -> None:
    """Weights and biases as drawn apart, to the bit: they are part of every run's identity."""
    key, bound = jax.random.key(3), inputs**-0.5
    found = jax.jit(fan_in_uniform, static_argnums=(1, 2))(key, inputs, outputs)
    shapes = ((inputs, outputs), (outputs,))
    for array, key_of_it, shape in zip(found, jax.random.split(key), shapes, strict=True):
        apart = jax.jit(partial(jax.random.uniform, shape=shape, minval=-bound, maxval=bound))(key_of_it)
        np.testing.assert_array_equal(array, apart)


@quick
def test_a_small_last_layer_is_ten_times_smaller_without_bias() -> None:
    network = (Layer(np.ones((2, 2)), np.ones(2)), Layer(np.full((2, 1), 3.0), np.full(1, 4.0)))  # type: ignore[arg-type]
    first, last = with_small_last_layer(network)
    assert first is network[0]
    np.testing.assert_allclose(last.weight, np.full((2, 1), 0.3))
    np.testing.assert_array_equal(last.bias, [0])


@quick
@pytest.mark.parametrize("kind", ["tanh", "relu"])
@pytest.mark.parametrize("sizes", [(3, 5, 4, 2), (3, 1)])
def test_outputs_are_the_layers_multiplied_out(kind: Literal["tanh", "relu"], sizes: tuple[int, ...]) -> None:
    """The last layer has no activation."""
    random = np.random.default_rng(0)
    network = tuple(Layer(random.normal(size=each), random.normal(size=each[1])) for each in pairwise(sizes))  # type: ignore[arg-type]
    inputs = 3 * random.normal(size=(6, 3))
    found = jax.jit(forward, static_argnums=2)(network, inputs, kind)
    expected = Dense(arrays_of(network), kind).forward(inputs)
    assert (expected < 0).any()
    np.testing.assert_allclose(found, expected, atol=1e-12)


# What PPO and actor-critic begin with, and what they read from it.


def parameters_of(kind: Literal["released", "pytorch", "orthogonal"]) -> Parameters:
    made: Parameters = jax.jit(lambda key: new_parameters(key, 3, 2, (8, 8), 0.5, kind))(jax.random.key(3))
    return made


@quick
def test_networks_begin_as_the_released_code_has_them_or_with_full_last_layers() -> None:
    released, plain = parameters_of("released"), parameters_of("pytorch")
    for small, full, size in (
        (released.policy.network, plain.policy.network, 2),
        (released.value, plain.value, 1),
    ):
        assert [layer.weight.shape for layer in full] == [(3, 8), (8, 8), (8, size)]
        for layer, inputs in zip(full, (3, 8, 8), strict=True):
            most = np.max(np.abs(np.asarray(layer.weight)))
            assert 0.7 / sqrt(inputs) < most <= 1 / sqrt(inputs)
            assert np.all(np.asarray(layer.bias) != 0)
        jax.tree.map(np.testing.assert_array_equal, small[:-1], full[:-1])
        np.testing.assert_allclose(small[-1].weight, 0.1 * full[-1].weight)
        np.testing.assert_array_equal(small[-1].bias, np.zeros(size))
    np.testing.assert_allclose(released.policy.log_std, np.full(2, log(0.5)))
    assert not np.array_equal(released.policy.network[0].weight, released.value[0].weight)


@quick
def test_orthogonal_weights_keep_lengths_up_to_their_gain() -> None:
    parameters = parameters_of("orthogonal")
    for network, last_gain in ((parameters.policy.network, 0.01), (parameters.value, 1.0)):
        for layer, gain in zip(network, (sqrt(2), sqrt(2), last_gain), strict=True):
            weight = np.asarray(layer.weight)
            gram = weight @ weight.T if weight.shape[0] < weight.shape[1] else weight.T @ weight
            np.testing.assert_allclose(gram, gain**2 * np.eye(len(gram)), atol=1e-9)
            np.testing.assert_array_equal(layer.bias, np.zeros_like(layer.bias))


@quick
def test_mean_value_and_log_probability_are_the_networks() -> None:
    parameters = randomized(jax.eval_shape(lambda: new_parameters(jax.random.key(1), 3, 2, (6, 5), 0.5)), 1.0)
    observation, action = np.random.default_rng(0).normal(size=(4, 3)), np.random.default_rng(1).normal(size=(4, 2))

    @jax.jit
    def read(parameters: Parameters, observation: jax.Array, action: jax.Array) -> tuple[jax.Array, ...]:
        policy, value = parameters
        return (
            forward(policy.network, observation, "tanh"),
            state_value(value, observation),
            policy_log_probability(policy, observation, action),
        )

    mean = Dense(arrays_of(parameters.policy.network), "tanh").forward(observation)
    value = Dense(arrays_of(parameters.value), "tanh").forward(observation)[:, 0]
    log_density = normal_log_density(mean, np.asarray(parameters.policy.log_std), action)
    for found, expected in zip(read(parameters, observation, action), (mean, value, log_density), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)


# Distributions.


def integral(heights: Array, places: Array) -> float:
    return float(np.sum((heights[1:] + heights[:-1]) / 2 * np.diff(places)))


@quick
def test_log_probability_entropy_and_divergence_of_several_components() -> None:
    mean, log_std, action, new, new_log_std = np.random.default_rng(2).normal(size=(5, 6, 3))
    found = jax.jit(gaussian_log_probability)(mean, log_std, action)
    np.testing.assert_allclose(found, normal_log_density(mean, log_std, action), atol=1e-12)
    entropy = 3 * np.log(np.sqrt(2 * np.pi * np.e)) + log_std.sum(axis=-1)
    np.testing.assert_allclose(jax.jit(gaussian_entropy)(log_std), entropy, atol=1e-12)
    std, new_std = np.exp(log_std), np.exp(new_log_std)
    each = np.log(new_std / std) + (std**2 + (mean - new) ** 2) / (2 * new_std**2) - 0.5
    kl = jax.jit(gaussian_kl)
    np.testing.assert_allclose(kl(mean, log_std, new, new_log_std), each.sum(axis=-1), atol=1e-12)
    np.testing.assert_allclose(kl(mean, log_std, mean, log_std), np.zeros(6), atol=1e-15)


@quick
def test_the_density_integrates_to_one_and_to_its_entropy_and_divergence() -> None:
    places = np.linspace(-15, 15, 30_001)
    first, second = (np.array([0.2]), np.array([-0.3])), (np.array([-0.5]), np.array([0.4]))
    p, q = (np.asarray(jax.jit(gaussian_log_probability)(*each, places[:, None])) for each in (first, second))
    assert integral(np.exp(p), places) == pytest.approx(1, abs=1e-9)
    assert gaussian_entropy(first[1]) == pytest.approx(integral(-p * np.exp(p), places), abs=1e-9)  # type: ignore[arg-type]
    found = jax.jit(gaussian_kl)(*first, *second)
    assert float(found) == pytest.approx(integral(np.exp(p) * (p - q), places), abs=1e-9)


@quick
@pytest.mark.parametrize(("mean", "log_std"), [(0.0, 0.0), (0.8, -1.0), (-1.5, 0.5)])
def test_the_squashed_density_integrates_to_one_over_actions(mean: float, log_std: float) -> None:
    noise = np.linspace(-9, 9, 40_001)
    action, log_density = jax.jit(squashed_sample)(np.array([mean]), np.array([log_std]), noise[:, None])
    actions, density = np.asarray(action)[:, 0], np.exp(np.asarray(log_density))
    assert integral(density, actions) == pytest.approx(1, abs=1e-5)
    # And not only as a whole: up to each action it is the normal distribution function of the noise.
    middle = noise.size // 2
    assert integral(density[: middle + 1], actions[: middle + 1]) == pytest.approx(0.5, abs=1e-5)


@quick
def test_the_squashed_log_probability_is_the_change_of_variables() -> None:
    mean, log_std, noise = 0.7 * np.random.default_rng(1).normal(size=(3, 6, 2))
    action, found = jax.jit(squashed_sample)(mean, log_std, noise)
    expected = np.tanh(mean + noise * np.exp(log_std))
    np.testing.assert_allclose(action, expected, atol=1e-14)
    slope = np.log(1 - expected**2).sum(axis=-1)
    np.testing.assert_allclose(found, normal_log_density(mean, log_std, np.arctanh(expected)) - slope, atol=1e-10)
