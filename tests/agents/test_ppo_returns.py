"""What PPO makes of a batch: lambda-returns against the paper's explicit sum, normalised advantages, random orders."""

from collections.abc import Sequence

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime.agents.ppo import lambda_advantages, normalize, shuffles
from tests.agents.conftest import Array, lambda_returns

pytestmark = pytest.mark.usefixtures("compiled_quickly", "float64")
advantages = jax.jit(lambda_advantages)


def check_lambda_returns(
    length: int, terminal: Sequence[int], time_limit: Sequence[int], gamma: float, lam: float, seed: int = 0
) -> None:
    """Hold both against each other; the time limit's ends go on with v(S')."""
    random = np.random.default_rng(seed)
    reward, value, successor_value = random.normal(size=(3, length))
    places = np.arange(length)
    ended = np.isin(places, [*terminal, *time_limit]).astype(float)
    follows: Array = np.where(np.isin(places, terminal), 0.0, successor_value)
    inside = (ended == 0) & (places < length - 1)
    next_value = np.where(inside, np.roll(value, -1), follows)
    found = np.asarray(advantages(reward, value, next_value, ended, gamma, lam)) + value
    expected = lambda_returns(reward, value, follows, [int(each) for each in ended], gamma, lam)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


ENDS = {
    "cut inside the only episode": ([], []),
    "terminal at the last": ([8], []),
    "terminal at the first": ([0], []),
    "cut inside the second": ([3], []),
    "time limit at the last": ([], [8]),
    "time limit": ([], [4]),
    "one of each": ([2], [5]),
    "episodes of one step": (list(range(9)), []),
    "neighbours": ([0, 8], [1]),
}


@pytest.mark.parametrize("ends", ENDS)
def test_lambda_returns_equal_the_explicit_sum(ends: str) -> None:
    for gamma in (0.0, 0.9, 1.0):
        for lam in (0.0, 0.5, 0.95, 1.0):
            check_lambda_returns(9, *ENDS[ends], gamma, lam)


@given(
    ends=st.lists(st.sampled_from(["no", "terminal", "time limit"]), min_size=9, max_size=9),
    gamma=st.floats(0, 1),
    lam=st.floats(0, 1),
    seed=st.integers(0, 1000),
)
def test_lambda_returns_equal_the_explicit_sum_wherever_episodes_end(
    ends: list[str], gamma: float, lam: float, seed: int
) -> None:
    terminal = [place for place, end in enumerate(ends) if end == "terminal"]
    time_limit = [place for place, end in enumerate(ends) if end == "time limit"]
    check_lambda_returns(9, terminal, time_limit, gamma, lam, seed)


def test_numbers_worked_out_by_hand() -> None:
    # v = 1, 2; R = 10, 20; terminal: G_1 = 20, G_0 = 0.5 (10 + 0.8 20) + 0.5 (10 + 0.8 2).
    found = advantages(np.array([10.0, 20]), np.array([1.0, 2]), np.array([2.0, 0]), np.array([0.0, 1]), 0.8, 0.5)
    np.testing.assert_allclose(found, [0.5 * 26 + 0.5 * 11.6 - 1, 18.0])


def test_normalizing_gives_mean_zero_and_population_deviation_one() -> None:
    numbers = np.array([3.0, -1.0, 100.0, 4.5, 7.0])
    found = np.asarray(jax.jit(normalize)(numbers))
    np.testing.assert_allclose(found, (numbers - numbers.mean()) / numbers.std(ddof=0), rtol=1e-8)


def test_equal_numbers_are_normalized_to_zero() -> None:
    np.testing.assert_array_equal(jax.jit(normalize)(np.full(4, 2.5)), np.zeros(4))


@pytest.mark.parametrize("length", [1, 9, 2000])
def test_each_shuffle_is_a_permutation_of_its_own(length: int) -> None:
    orders = shuffles(jax.random.key(length), 4, length)
    assert orders.shape == (4, length)
    np.testing.assert_array_equal(np.sort(orders, axis=1), np.tile(np.arange(length), (4, 1)))
    assert length < 9 or not np.array_equal(orders[0], orders[1])


def test_all_orders_are_equally_likely_and_follow_from_the_key() -> None:
    orders = shuffles(jax.random.key(3), 24_000, 4)
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 24
    # Of 23 degrees of freedom, once in a thousand times.
    assert np.sum((counts - 1000) ** 2 / 1000) < 49.7
    np.testing.assert_array_equal(orders, shuffles(jax.random.key(3), 24_000, 4))
    assert not np.array_equal(orders, shuffles(jax.random.key(4), 24_000, 4))
