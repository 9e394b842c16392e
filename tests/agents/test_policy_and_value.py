"""The normal policy and the state value that PPO and actor-critic share."""

from math import log, sqrt

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents.policy_and_value import log_probability_of, new_parameters, policy_mean, state_value
from tests.agents.conftest import Dense, arrays_of, normal_log_density

pytestmark = pytest.mark.usefixtures("compiled_quickly", "float64")


@pytest.mark.parametrize("action_size", [1, 2, 7])
def test_networks_begin_as_the_released_code_has_them(action_size: int) -> None:
    parameters = new_parameters(jax.random.key(0), 3, action_size, (64, 64), 0.5)
    for network, size in ((parameters.policy.network, action_size), (parameters.value, 1)):
        assert [layer.weight.shape for layer in network] == [(3, 64), (64, 64), (64, size)]
        for layer, bound in zip(network, (1 / sqrt(3), 1 / 8, 0.1 / 8), strict=True):
            most = np.max(np.abs(np.asarray(layer.weight)))
            assert 0.8 * bound < most <= bound
        assert np.all(np.asarray(network[0].bias) != 0)
        np.testing.assert_array_equal(network[-1].bias, np.zeros(size))
    np.testing.assert_allclose(parameters.policy.log_std, np.full(action_size, log(0.5)))
    assert not np.array_equal(parameters.policy.network[0].weight, parameters.value[0].weight)


def test_pytorch_s_weights_are_the_released_ones_with_full_last_layers() -> None:
    released, plain = (new_parameters(jax.random.key(3), 3, 2, (8, 8), 1.0, kind) for kind in ("released", "pytorch"))
    for small, full in ((released.policy.network, plain.policy.network), (released.value, plain.value)):
        jax.tree.map(np.testing.assert_array_equal, small[:-1], full[:-1])
        np.testing.assert_allclose(small[-1].weight, 0.1 * full[-1].weight)
        assert np.all(np.asarray(full[-1].bias) != 0)


def test_orthogonal_weights_keep_lengths_up_to_their_gain() -> None:
    parameters = new_parameters(jax.random.key(3), 3, 2, (8, 8), 1.0, "orthogonal")
    for network, last_gain in ((parameters.policy.network, 0.01), (parameters.value, 1.0)):
        for layer, gain in zip(network, (sqrt(2), sqrt(2), last_gain), strict=True):
            weight = np.asarray(layer.weight)
            gram = weight @ weight.T if weight.shape[0] < weight.shape[1] else weight.T @ weight
            np.testing.assert_allclose(gram, gain**2 * np.eye(len(gram)), atol=1e-9)
            np.testing.assert_array_equal(layer.bias, np.zeros_like(layer.bias))


def test_mean_value_and_log_probability_are_the_networks() -> None:
    parameters = new_parameters(jax.random.key(1), 3, 2, (6, 5), 0.5)
    random = np.random.default_rng(0)
    parameters = jax.tree.map(lambda leaf: jnp.asarray(random.normal(size=leaf.shape)), parameters)
    observation, action = random.normal(size=(4, 3)), random.normal(size=(4, 2))
    mean = Dense(arrays_of(parameters.policy.network), "tanh").forward(observation)
    value = Dense(arrays_of(parameters.value), "tanh").forward(observation)[:, 0]
    np.testing.assert_allclose(policy_mean(parameters.policy, jnp.asarray(observation)), mean, atol=1e-12)
    np.testing.assert_allclose(state_value(parameters.value, jnp.asarray(observation)), value, atol=1e-12)
    found = log_probability_of(parameters.policy, jnp.asarray(observation), jnp.asarray(action))
    expected = normal_log_density(mean, np.asarray(parameters.policy.log_std), action)
    np.testing.assert_allclose(found, expected, atol=1e-12)
