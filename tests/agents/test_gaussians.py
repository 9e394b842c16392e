"""The policies' distributions against densities, integrals and divergences written out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents.gaussians import divergence, entropy, log_probability, squashed_sample
from tests.agents.conftest import Array, normal_log_density

pytestmark = pytest.mark.usefixtures("float64")


def integral(heights: Array, places: Array) -> float:
    return float(np.sum((heights[1:] + heights[:-1]) / 2 * np.diff(places)))


@pytest.mark.parametrize("size", [1, 2, 7])
def test_the_log_probability_is_the_normal_densitys(size: int) -> None:
    mean, log_std, action = np.random.default_rng(size).normal(size=(3, 5, size))
    found = log_probability(jnp.asarray(mean), jnp.asarray(log_std), jnp.asarray(action))
    np.testing.assert_allclose(found, normal_log_density(mean, log_std, action), atol=1e-12)


def test_the_normal_density_integrates_to_one_and_its_entropy_is_right() -> None:
    places = np.linspace(-12, 12, 20_001)
    log_density = np.asarray(log_probability(jnp.array([0.4]), jnp.array([0.3]), jnp.asarray(places[:, None])))
    assert integral(np.exp(log_density), places) == pytest.approx(1, abs=1e-9)
    assert entropy(jnp.array([0.3])) == pytest.approx(integral(-log_density * np.exp(log_density), places), abs=1e-9)
    assert entropy(jnp.array([0.3, -1.0])) == pytest.approx(2 * np.log(np.sqrt(2 * np.pi * np.e)) - 0.7)


def test_the_divergence_is_the_integral_of_its_definition() -> None:
    places = np.linspace(-15, 15, 30_001)
    first, second = (np.array([0.2]), np.array([-0.3])), (np.array([-0.5]), np.array([0.4]))
    p, q = (normal_log_density(*each, places[:, None]) for each in (first, second))
    found = divergence(*(jnp.asarray(each) for each in (*first, *second)))
    assert found == pytest.approx(integral(np.exp(p) * (p - q), places), abs=1e-9)
    assert divergence(*(jnp.asarray(each) for each in (*first, *first))) == pytest.approx(0, abs=1e-15)


def test_divergences_of_components_add_up() -> None:
    old, old_log, new, new_log = np.random.default_rng(0).normal(size=(4, 3, 2))
    std, new_std = np.exp(old_log), np.exp(new_log)
    each = np.log(new_std / std) + (std**2 + (old - new) ** 2) / (2 * new_std**2) - 0.5
    found = divergence(*(jnp.asarray(part) for part in (old, old_log, new, new_log)))
    np.testing.assert_allclose(found, each.sum(axis=-1), atol=1e-12)


@pytest.mark.parametrize(("mean", "log_std"), [(0.0, 0.0), (0.8, -1.0), (-1.5, 0.5)])
def test_the_squashed_density_integrates_to_one_over_actions(mean: float, log_std: float) -> None:
    noise = np.linspace(-9, 9, 40_001)
    action, log_density = squashed_sample(jnp.full((1,), mean), jnp.full((1,), log_std), jnp.asarray(noise[:, None]))
    actions = np.asarray(action)[:, 0]
    assert integral(np.exp(np.asarray(log_density)), actions) == pytest.approx(1, abs=1e-5)
    # And not only as a whole: up to each action it is the normal distribution function of the noise.
    middle = noise.size // 2
    half = integral(np.exp(np.asarray(log_density))[: middle + 1], actions[: middle + 1])
    assert half == pytest.approx(0.5, abs=1e-5)


def test_the_squashed_log_probability_is_the_change_of_variables() -> None:
    mean, log_std, noise = 0.7 * np.random.default_rng(1).normal(size=(3, 6, 2))
    action, found = squashed_sample(jnp.asarray(mean), jnp.asarray(log_std), jnp.asarray(noise))
    expected = np.tanh(mean + noise * np.exp(log_std))
    np.testing.assert_allclose(action, expected, atol=1e-14)
    slope = np.log(1 - expected**2).sum(axis=-1)
    np.testing.assert_allclose(found, normal_log_density(mean, log_std, np.arctanh(expected)) - slope, atol=1e-10)


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("raw", [-200.0, -20.0, -5.0, 5.0, 20.0, 200.0])
def test_no_digits_are_lost_where_tanh_is_near_one(raw: float, double: bool) -> None:
    with jax.enable_x64(double):
        epsilon = float(np.finfo(np.float64 if double else np.float32).eps)
        mean, zero = jnp.array([raw]), jnp.zeros(1)
        _, found = squashed_sample(mean, zero, zero)
        # 1 - tanh(x)^2 = 4 exp(-2 |x|) / (1 + exp(-2 |x|))^2.
        log_slope = np.log(4) - 2 * abs(raw) - 2 * np.log1p(np.exp(-2 * abs(raw)))
        assert float(found) == pytest.approx(-np.log(2 * np.pi) / 2 - log_slope, rel=8 * epsilon)
        slope = jax.grad(lambda mean: squashed_sample(mean, zero, zero)[1])(mean)
        assert float(slope[0]) == pytest.approx(2 * np.tanh(raw), rel=8 * epsilon)
