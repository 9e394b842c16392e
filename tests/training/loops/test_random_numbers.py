"""A run's random numbers, to the bit, and compiled as users have them."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents import ActorCriticAgent, Agent, PPOAgent, SACAgent
from cycletime.errors import InputError
from cycletime.training import stepped_agent
from cycletime.training.random_numbers import Purpose, key_for, keys_for, numbers_per_update, seed_key
from cycletime.training.stepped_agent import RandomNumbers

KEY = seed_key(3)
SAC_AGENT, PPO_AGENT = SACAgent(minibatch=2), PPOAgent(batch=6, minibatch=3)
random_bits = jax.jit(lambda seed, purpose, count: jax.random.key_data(key_for(jax.random.key(seed), purpose, count)))


def test_no_two_purposes_counts_or_seeds_share_a_key() -> None:
    keys = {
        tuple(np.asarray(random_bits(seed, purpose, count)).tolist())
        for seed in range(3)
        for purpose in Purpose
        for count in range(50)
    }
    assert len(keys) == 3 * 4 * 50


def test_the_streams_stay_as_they_are() -> None:
    """A change here would change every run that was ever recorded."""
    drawn = [float(jax.random.normal(key_for(jax.random.key(7), purpose, 5))) for purpose in Purpose]
    np.testing.assert_allclose(drawn, [0.007083, 1.27646, 0.522775, -1.503185], atol=2e-6)


def test_keys_in_bulk_are_the_same_keys() -> None:
    wanted = {Purpose.NOISE: jnp.arange(3), Purpose.STARTS: 5 + jnp.arange(2)}
    found = keys_for(KEY, wanted)
    assert list(found) == list(wanted)
    for purpose, counts in wanted.items():
        for key, count in zip(found[purpose], counts, strict=True):
            assert key == key_for(KEY, purpose, int(count))


@pytest.mark.parametrize("seed", [0, 1, 7, 2**31 - 1, 2**31, 2**32 - 1, np.int64(5)])
def test_the_key_of_a_seed_is_that_of_jax(seed: int) -> None:
    assert seed_key(seed) == jax.random.key(np.uint32(seed), impl="threefry2x32")


@pytest.mark.parametrize("seed", [-1, 2**32, 0.5, None, True])
def test_what_is_no_seed_is_refused(seed: Any) -> None:  # noqa: ANN401
    with pytest.raises(InputError, match=f"seed is {seed}"):
        seed_key(seed)


# Those of the stepped loop are drawn for many periods at once, and are the same.


@cache
def noise_of(period: int, steps: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.asarray(jax.random.normal(key_for(KEY, Purpose.NOISE, period), (steps, 2)))


@pytest.fixture
def _four_periods_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepped_agent, "MOST_PERIODS", 4)


@pytest.mark.usefixtures("_four_periods_at_once")
@pytest.mark.parametrize("agent", [PPO_AGENT, SAC_AGENT], ids=["period 6", "period 1"])
def test_noise_is_that_of_the_agent_step_in_its_period(agent: Agent) -> None:
    numbers = RandomNumbers(agent, KEY, 2, 1)
    for period in range(6):
        for row in range(agent.period):
            np.testing.assert_array_equal(numbers.noise(period, row)[0], noise_of(period, agent.period)[row])
    # From the middle, as after a resumption.
    last = agent.period - 1
    np.testing.assert_array_equal(RandomNumbers(agent, KEY, 2, 1).noise(5, last)[0], noise_of(5, agent.period)[last])


def test_noise_of_a_period_that_waits_for_an_episode_goes_on() -> None:
    numbers = RandomNumbers(PPOAgent(batch=6, minibatch=3, learn_when="episode_end"), KEY, 2, 1)
    for period, length in enumerate((23, 5)):
        for row in range(length):
            np.testing.assert_array_equal(numbers.noise(period, row)[0], noise_of(period, 24)[row])


@pytest.mark.usefixtures("_four_periods_at_once")
def test_copies_take_the_noise_of_steps_that_follow_each_other() -> None:
    several = RandomNumbers(PPO_AGENT, KEY, 2, num_envs=3)
    np.testing.assert_array_equal(several.noise(1, 1), noise_of(1, 6)[3:])
    each_learns = RandomNumbers(SAC_AGENT, KEY, 2, num_envs=2)
    np.testing.assert_array_equal(each_learns.noise(4, 0), [noise_of(period, 1)[0] for period in (4, 5)])


@pytest.mark.usefixtures("_four_periods_at_once")
def test_draws_are_those_of_the_learning_period() -> None:
    numbers = RandomNumbers(SAC_AGENT, KEY, 2, 1)
    draw = jax.jit(lambda period: SAC_AGENT.draw(key_for(KEY, Purpose.LEARNING, period), 2))
    for period in (0, 1, 3, 4, 9):
        draws, index = numbers.draws(period)
        jax.tree.map(lambda got, want: np.testing.assert_array_equal(got[index], want), draws, draw(period))  # noqa: B023


@pytest.mark.parametrize("agent", [ActorCriticAgent(), PPOAgent(batch=30, minibatch=7), SACAgent(minibatch=9)])
def test_the_numbers_of_a_learning_are_counted_without_drawing_them(agent: Agent) -> None:
    drawn = jax.tree.leaves(agent.draw(KEY, 3))
    assert numbers_per_update(jax.tree.structure(agent), 3) == sum(map(np.size, drawn))


def test_the_numbers_of_a_learning_are_counted_once_for_all_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    count = numbers_per_update(jax.tree.structure(PPOAgent(batch=31, minibatch=8)), 2)
    monkeypatch.setattr(PPOAgent, "draw", None)
    assert numbers_per_update(jax.tree.structure(PPOAgent(batch=31, minibatch=8, discount=0.5)), 2) == count == 310
