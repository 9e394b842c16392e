"""Lambda-returns, computed backwards, against the paper's explicit sum."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime.agents.lambda_returns import lambda_advantages
from tests.agents.conftest import Array, lambda_returns

pytestmark = pytest.mark.usefixtures("float64")
advantages = jax.jit(lambda_advantages)


def check(
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
    given_arrays = (jnp.asarray(each) for each in (reward, value, next_value, ended))
    found = np.asarray(advantages(*given_arrays, gamma, lam)) + value
    expected = lambda_returns(reward, value, follows, [int(each) for each in ended], gamma, lam)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("gamma", [0.0, 0.9, 1.0])
@pytest.mark.parametrize("lam", [0.0, 0.5, 0.95, 1.0])
@pytest.mark.parametrize(
    ("terminal", "time_limit"),
    [([], []), ([8], []), ([0], []), ([3], []), ([], [8]), ([], [4]), ([2], [5]), (list(range(9)), []), ([0, 8], [1])],
    ids=[
        "cut inside the only episode",
        "terminal at the last",
        "terminal at the first",
        "cut inside the second",
        "time limit at the last",
        "time limit",
        "one of each",
        "episodes of one step",
        "neighbours",
    ],
)
def test_they_equal_the_explicit_sum(gamma: float, lam: float, terminal: list[int], time_limit: list[int]) -> None:
    check(9, terminal, time_limit, gamma, lam)


@given(
    ends=st.lists(st.sampled_from(["no", "terminal", "time limit"]), min_size=1, max_size=12),
    gamma=st.floats(0, 1),
    lam=st.floats(0, 1),
    seed=st.integers(0, 1000),
)
def test_they_equal_the_explicit_sum_wherever_episodes_end(
    ends: list[str], gamma: float, lam: float, seed: int
) -> None:
    # One length only, since each length is compiled anew.
    ends = (ends + ["no"] * 12)[:12]
    terminal = [place for place, end in enumerate(ends) if end == "terminal"]
    time_limit = [place for place, end in enumerate(ends) if end == "time limit"]
    check(12, terminal, time_limit, gamma, lam, seed)


def test_numbers_worked_out_by_hand() -> None:
    # v = 1, 2; R = 10, 20; terminal: G_1 = 20, G_0 = 0.5 (10 + 0.8 20) + 0.5 (10 + 0.8 2).
    found = lambda_advantages(
        jnp.array([10.0, 20.0]), jnp.array([1.0, 2.0]), jnp.array([2.0, 0.0]), jnp.array([0.0, 1.0]), 0.8, 0.5
    )
    np.testing.assert_allclose(found, [0.5 * 26 + 0.5 * 11.6 - 1, 18.0])


def test_copies_side_by_side_do_not_mix() -> None:
    random = np.random.default_rng(2)
    reward, value, next_value = (jnp.asarray(each) for each in random.normal(size=(3, 7, 2)))
    ended = jnp.zeros((7, 2)).at[2, 0].set(1).at[5, 1].set(1)
    both = advantages(reward, value, next_value, ended, 0.9, 0.7)
    for copy in range(2):
        alone = advantages(reward[:, copy], value[:, copy], next_value[:, copy], ended[:, copy], 0.9, 0.7)
        np.testing.assert_allclose(both[:, copy], alone, rtol=1e-14)
