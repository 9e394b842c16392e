"""The agent's side of the stepped loop: its calls of JAX, and when it learns from what."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from cycletime.agents import Buffer, PPOAgent, SACAgent
from cycletime.agents.agent import choose_action
from cycletime.training.algorithm_1 import initial_agent_state
from cycletime.training.random_numbers import Purpose, key_for, seed_key
from cycletime.training.stepped_agent import PackedAgentState, RandomNumbers, store_and_learn, store_rows
from cycletime.training.stepped_loop import SteppedChunk, SteppedLoop
from tests.training.loops.conftest import Counter, Spy

pytestmark = pytest.mark.usefixtures("compiled_quickly")

KEY = seed_key(3)
SMALL_PPO = PPOAgent(batch=4, minibatch=4, epochs=1, hidden=(4,))
SMALL_SAC = SACAgent(minibatch=4, hidden=(4,), warmup_steps=5, replay_capacity=200_000)


def test_storing_and_learning_write_a_replay_in_place() -> None:
    psi, buffer = PackedAgentState.of(initial_agent_state(SMALL_SAC, KEY, 3, 1)), Buffer.empty(200_000, 3, 1)
    address = buffer.rows.unsafe_buffer_pointer()
    row = np.arange(10, dtype=np.float32).reshape(1, 1, 10)
    draws, index = RandomNumbers(SMALL_SAC, KEY, 1, 1).draws(0)
    for _ in range(3):
        buffer = store_rows(buffer, row, np.int32(1), first_only=False)
        psi, buffer, _ = store_and_learn(SMALL_SAC, psi, buffer, row, np.int32(1), draws, index, updates=1)
    assert buffer.rows.unsafe_buffer_pointer() == address
    assert int(buffer.stored) == 6
    np.testing.assert_array_equal(buffer.rows[:7, 0, 1], [1, 1, 1, 1, 1, 1, 0])


def test_a_second_loop_compiles_nothing_anew() -> None:
    block, buffer = np.zeros((4, 1, 10), np.float32), Buffer.empty(4, 3, 1)
    psi, before = PackedAgentState.of(initial_agent_state(SMALL_PPO, KEY, 3, 1)), store_and_learn._cache_size()  # type: ignore[attr-defined]
    for rate in (1e-3, 2e-3):
        other = replace(SMALL_PPO, learning_rate=rate)
        draws, index = RandomNumbers(other, KEY, 1, 1).draws(0)
        buffer = store_and_learn(other, psi, buffer, block, np.int32(4), draws, index, updates=1).buffer
    assert store_and_learn._cache_size() == before + 1  # type: ignore[attr-defined]


# When it learns, and from what.


def spy(**overrides: Any) -> Spy:  # noqa: ANN401 - any of its fields
    return Spy(**{"minibatch": 1, "hidden": (4,), **overrides})


def trained(loop: SteppedLoop, seed: int = 0) -> SteppedChunk:
    (chunk,) = loop.run(seed)
    return chunk


def told(loop: SteppedLoop) -> list[tuple[float, ...]]:
    return [tuple(map(float, row)) for row in zip(*trained(loop).metrics.values(), strict=True)]


def test_learning_period_shorter_than_the_batch_learns_from_the_last_batch_at_each_period() -> None:
    numbers = told(SteppedLoop(env=Counter(100), agent=spy(batch=6, learning_period=3), env_steps=14))
    # The first period ends before a batch is there; the last is the one in which 14 steps are reached.
    assert [row[:2] for row in numbers] == [(0, 5), (3, 8), (6, 11), (9, 14)]


def test_learning_period_longer_than_the_batch_forgets_the_oldest() -> None:
    numbers = told(SteppedLoop(env=Counter(100), agent=spy(batch=6, learning_period=9), env_steps=19))
    assert [row[:2] for row in numbers] == [(3, 8), (12, 17), (21, 26)]


def test_more_rows_than_are_gathered_at_once_arrive_in_order() -> None:
    numbers = told(SteppedLoop(env=Counter(1000), agent=spy(batch=700), env_steps=1400))
    assert [row[:2] for row in numbers] == [(0, 699), (700, 1399)]


def test_learning_at_episode_ends_takes_the_first_batch_and_the_last_observation() -> None:
    # Episodes of 7 and a batch of 10: each learning waits for two episodes, whose last four samples are dropped.
    loop = SteppedLoop(env=Counter(), agent=spy(batch=10, learn_when="episode_end"), env_steps=29)
    assert told(loop) == [(0, 9, 7, 14), (14, 23, 7, 28), (28, 37, 7, 42)]


def test_episodes_longer_than_the_drawn_noise_go_on_with_the_same_numbers() -> None:
    loop = SteppedLoop(env=Counter(25), agent=spy(batch=3, learn_when="episode_end"), env_steps=1)
    last = trained(loop, seed=7)
    assert last.position.agent_steps == 25
    noise = jax.random.normal(key_for(jax.random.key(7), Purpose.NOISE, 0), (25, 1))
    expected = choose_action(loop.agent, last.finished, jnp.array([0.0, 1.0]), noise[1], jnp.int32(1))
    # The batch keeps only its first three, and learning emptied it: its rows are still there to be read.
    np.testing.assert_allclose(last.position.buffer.read(last.position.buffer.rows[1, 0]).action, expected, rtol=1e-6)


def test_nothing_is_learned_before_there_is_enough() -> None:
    chunk = trained(SteppedLoop(env=Counter(), agent=SACAgent(minibatch=8, hidden=(4,)), env_steps=12))
    assert len(chunk.metrics["alpha"]) == 12 - 7
    np.testing.assert_array_equal(chunk.metrics["agent_steps"], [8, 9, 10, 11, 12])


def test_learnings_tell_the_agent_steps_as_whole_numbers() -> None:
    loop = SteppedLoop(env=Counter(100), agent=spy(batch=4), env_steps=12)
    far = loop.start(0)._replace(agent_steps=2**25 + 1)  # beyond what a float32 can count
    (chunk,) = loop.run(0, far)
    assert chunk.metrics["agent_steps"].dtype == np.int64
    assert (chunk.metrics["agent_steps"] - 2**25 - 1).tolist() == [4, 8, 12]


def test_learnings_after_a_row_of_copies_share_its_agent_steps() -> None:
    env = SyncVectorEnv([partial(Counter, length) for length in (2, 9)], autoreset_mode=AutoresetMode.DISABLED)
    agent = SACAgent(minibatch=2, hidden=(4,), warmup_steps=0)
    chunk = trained(SteppedLoop(env=env, agent=agent, env_steps=9))
    np.testing.assert_array_equal(chunk.metrics["agent_steps"], [2, 2, 4, 4, 6, 6, 8, 8, 10, 10])
    assert chunk.position.agent_steps == 10
