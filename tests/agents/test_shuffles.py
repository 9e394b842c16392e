"""Random orders: permutations, all equally likely."""

import jax
import numpy as np
import pytest

from cycletime.agents.shuffles import shuffles


@pytest.mark.parametrize("length", [1, 2, 8, 9, 2000])
def test_each_is_a_permutation(length: int) -> None:
    orders = shuffles(jax.random.key(length), 4, length)
    assert orders.shape == (4, length)
    np.testing.assert_array_equal(np.sort(orders, axis=1), np.tile(np.arange(length), (4, 1)))


def test_orders_differ_from_each_other_and_by_key() -> None:
    first, second = np.asarray(shuffles(jax.random.key(0), 2, 100))
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, shuffles(jax.random.key(1), 2, 100)[0])
    np.testing.assert_array_equal(first, shuffles(jax.random.key(0), 2, 100)[0])


def test_all_orders_are_equally_likely() -> None:
    _, counts = np.unique(shuffles(jax.random.key(3), 24_000, 4), axis=0, return_counts=True)
    assert len(counts) == 24
    # Of 23 degrees of freedom, once in a thousand times.
    assert np.sum((counts - 1000) ** 2 / 1000) < 49.7


def test_each_number_is_equally_often_at_each_place() -> None:
    length, count = 11, 11_000
    orders = np.asarray(shuffles(jax.random.key(4), count, length))
    table = np.array([[np.sum(orders[:, place] == number) for number in range(length)] for place in range(length)])
    # Rows and columns are fixed: (11 - 1)^2 degrees of freedom, of which 149.4 is exceeded once in a thousand times.
    assert np.sum((table - 1000) ** 2 / 1000) * (length - 1) / length < 149.4
