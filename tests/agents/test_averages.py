"""Averages with and without weights."""

import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents.averages import mean_of, normalized

pytestmark = pytest.mark.usefixtures("float64")
NUMBERS = np.array([3.0, -1.0, 100.0, 4.5, 7.0])
WEIGHT = np.array([1.0, 1.0, 0.0, 1.0, 0.0])


def test_the_mean_is_of_what_has_weight() -> None:
    assert mean_of(jnp.asarray(NUMBERS), None) == pytest.approx(113.5 / 5)
    assert mean_of(jnp.asarray(NUMBERS), jnp.asarray(WEIGHT)) == pytest.approx(6.5 / 3)


def test_where_nothing_has_weight_the_mean_is_zero() -> None:
    assert mean_of(jnp.asarray(NUMBERS), jnp.zeros(5)) == 0


def test_normalized_has_mean_zero_and_population_deviation_one() -> None:
    found = np.asarray(normalized(jnp.asarray(NUMBERS), None))
    assert found.mean() == pytest.approx(0, abs=1e-12)
    assert np.sqrt(np.mean(found**2)) == pytest.approx(1, abs=1e-8)
    np.testing.assert_allclose(found, (NUMBERS - 22.7) / np.std([3, -1, 100, 4.5, 7], ddof=0), rtol=1e-8)


def test_normalizing_ignores_what_has_no_weight() -> None:
    real = WEIGHT > 0
    found = np.asarray(normalized(jnp.asarray(NUMBERS), jnp.asarray(WEIGHT)))[real]
    kept = NUMBERS[real]
    np.testing.assert_allclose(found, (kept - kept.mean()) / kept.std(), rtol=1e-8)


def test_equal_numbers_are_normalized_to_zero() -> None:
    np.testing.assert_array_equal(normalized(jnp.full(4, 2.5), None), np.zeros(4))


def test_copies_are_normalized_together() -> None:
    both = normalized(jnp.array([[0.0, 2.0], [4.0, 6.0]]), None)
    np.testing.assert_allclose(both, np.array([[-3, -1], [1, 3]]) / np.sqrt(5), rtol=1e-8)
