from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents import ActorCriticAgent, Agent, Buffer, PPOAgent, SACAgent
from cycletime.agents.agent import choose_action
from cycletime.loops import program, stepped_calls
from cycletime.loops.randomness import Purpose, key_for
from cycletime.loops.rollout import World
from cycletime.loops.stepped_calls import Actor, Supply, initialize, store, store_and_learn
from cycletime.tasks import Reacher

KEY = jax.random.key(3)
SMALL_SAC = SACAgent(minibatch=4, hidden=(4,), warmup_steps=5, replay_capacity=200_000)


def noise_of(period: int, steps: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.asarray(jax.random.normal(key_for(KEY, Purpose.NOISE, period), (steps, 2)))


@pytest.mark.parametrize("agent", [PPOAgent(batch=6, minibatch=3), SMALL_SAC], ids=["period 6", "period 1"])
def test_noise_is_that_of_the_agent_step_in_its_period(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepped_calls, "MOST_PERIODS", 4)
    supply = Supply(agent, KEY, 2, 1)
    for period in range(6):
        for row in range(agent.period):
            np.testing.assert_array_equal(supply.noise(period, row)[0], noise_of(period, agent.period)[row])
    # From the middle, as after a resumption.
    last = agent.period - 1
    np.testing.assert_array_equal(Supply(agent, KEY, 2, 1).noise(5, last)[0], noise_of(5, agent.period)[last])


def test_noise_of_a_period_that_waits_for_an_episode_goes_on() -> None:
    supply = Supply(PPOAgent(batch=5, minibatch=5, learn_when="episode_end"), KEY, 2, 1)
    for period, length in enumerate((23, 5, 11)):
        for row in range(length):
            np.testing.assert_array_equal(supply.noise(period, row)[0], noise_of(period, 40)[row])


def test_copies_take_the_noise_of_steps_that_follow_each_other() -> None:
    several = Supply(PPOAgent(batch=6, minibatch=3), KEY, 2, copies=3)
    np.testing.assert_array_equal(several.noise(1, 1), noise_of(1, 6)[3:])
    each_learns = Supply(SMALL_SAC, KEY, 2, copies=3)
    np.testing.assert_array_equal(each_learns.noise(6, 0), [noise_of(period, 1)[0] for period in (6, 7, 8)])


def test_draws_are_those_of_the_learning_period(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepped_calls, "MOST_PERIODS", 3)
    supply = Supply(SMALL_SAC, KEY, 2, 1)
    for period in (0, 1, 2, 3, 7):
        draws, index = supply.draws(period)
        expected = SMALL_SAC.draw(key_for(KEY, Purpose.LEARNING, period), 2)
        jax.tree.map(lambda got, want: np.testing.assert_array_equal(got[index], want), draws, expected)  # noqa: B023


@pytest.mark.parametrize("agent", [PPOAgent(hidden=(4,)), SMALL_SAC], ids=["ppo", "sac"])
def test_a_seed_begins_with_the_same_psi_as_in_the_compiled_loop(agent: Agent) -> None:
    shape = program.Shape(World(Reacher(), 8), capacity=1, periods=1, alone=True)
    compiled = program.initialize(shape, agent, KEY).psi
    jax.tree.map(np.testing.assert_array_equal, initialize(agent, KEY, 9, 2), compiled)


@pytest.mark.parametrize(
    "agent", [PPOAgent(hidden=(4,)), SMALL_SAC, ActorCriticAgent(hidden=(4,))], ids=["ppo", "sac", "ac"]
)
def test_an_actor_acts_as_its_agent_before_and_after_learning(agent: Agent) -> None:
    rng = np.random.default_rng(0)
    observation, noise = rng.normal(size=(3, 5)).astype(np.float32), rng.normal(size=(3, 2)).astype(np.float32)
    first = agent.initialize(KEY, 5, 2)
    actor = Actor(agent, first, 3, 5, 2)
    for psi in (first, jax.tree.map(lambda leaf: leaf + leaf, first)):
        for steps in (3, 100):  # the first two of three are still taken at random, by SAC
            each = [choose_action(agent, psi, observation[i], noise[i], jnp.int32(steps + i)) for i in range(3)]
            np.testing.assert_allclose(actor.act(psi, observation, noise, steps), each, rtol=1e-5, atol=1e-6)


def test_storing_and_learning_write_a_replay_in_place() -> None:
    psi, buffer = SMALL_SAC.initialize(KEY, 3, 1), Buffer.empty(200_000, 3, 1)
    address = buffer.rows.unsafe_buffer_pointer()
    row = np.arange(10, dtype=np.float32).reshape(1, 1, 10)
    draws, index = Supply(SMALL_SAC, KEY, 1, 1).draws(0)
    for _ in range(3):
        buffer = store(buffer, row, np.int32(1), first_only=False)
        psi, buffer, _ = store_and_learn(SMALL_SAC, psi, buffer, row, np.int32(1), draws, index, learnings=1)
    assert buffer.rows.unsafe_buffer_pointer() == address
    assert int(buffer.stored) == 6
    np.testing.assert_array_equal(buffer.rows[:7, 0, 1], [1, 1, 1, 1, 1, 1, 0])


def test_a_second_loop_compiles_nothing_anew() -> None:
    agent = PPOAgent(batch=4, minibatch=2, hidden=(4,))
    block, buffer = np.zeros((4, 1, 10), np.float32), Buffer.empty(4, 3, 1)
    before = store_and_learn._cache_size()  # type: ignore[attr-defined]
    for rate in (1e-3, 2e-3):
        other = PPOAgent(batch=4, minibatch=2, hidden=(4,), learning_rate=rate)
        psi = jax.jit(agent.initialize, static_argnums=(1, 2))(KEY, 3, 1)
        draws, index = Supply(other, KEY, 1, 1).draws(0)
        buffer = store_and_learn(other, psi, buffer, block, np.int32(4), draws, index, learnings=1).buffer
    assert store_and_learn._cache_size() == before + 1  # type: ignore[attr-defined]
