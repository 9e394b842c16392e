"""The random numbers of a chunk, to the bit, compiled as users have them, and no more of them than are needed."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents import Agent, PPOAgent, SACAgent
from cycletime.tasks import CLOSED_FORMS, Reacher
from cycletime.tasks.closed_form import ClosedFormTask
from cycletime.training import algorithm_1
from cycletime.training.algorithm_1 import ChunkDraws, DrawPlan, DrawStart, TimedTask, draw_chunk
from cycletime.training.random_numbers import Purpose, key_for, seed_key
from cycletime.training.worlds import task_class
from tests.training.loops.conftest import Wander

KEY = seed_key(3)
PPO, SAC = PPOAgent(batch=12, minibatch=4, epochs=2), SACAgent(minibatch=3)
FIRST_PERIOD, ENDED_EPISODES = 7, 40


def drawn(agent: Agent, periods: int, *, most: int = 20, task: ClosedFormTask | None = None) -> ChunkDraws:
    plan = DrawPlan(TimedTask(task or Wander(), 4), most, alone=True, learns=True)
    return draw_chunk(
        plan, agent, KEY, DrawStart(jnp.int32(FIRST_PERIOD), jnp.int32(ENDED_EPISODES)), jnp.int32(periods)
    )


@pytest.mark.parametrize("agent", [PPO, SAC], ids=["ppo", "sac"])
def test_numbers_are_those_of_their_period(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks of a few periods, and with few optimisations."""
    monkeypatch.setattr(algorithm_1, "BLOCK_NUMBERS", 100)
    found = drawn(agent, 17)
    normal = jax.jit(lambda key: jax.random.normal(key, (agent.period, 1)))
    learning = jax.jit(lambda key: agent.draw(key, 1))
    for index in (0, 1, 9, 16):
        period = FIRST_PERIOD + index
        np.testing.assert_array_equal(found.normals[index], normal(key_for(KEY, Purpose.NOISE, period)))
        wanted = learning(key_for(KEY, Purpose.LEARNING, period))
        jax.tree.map(lambda got, want: np.testing.assert_array_equal(got[index], want), found.learning, wanted)  # noqa: B023


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each == "reacher" else pytest.mark.slow) for each in CLOSED_FORMS]
)
def test_episodes_start_to_the_bit_as_with_all_optimisations(name: str) -> None:
    task = task_class(name)
    found = drawn(PPOAgent(batch=700, minibatch=700, epochs=1), 2, most=2, task=task()).starts
    count = len(jax.tree.leaves(found)[0])
    keys = jax.vmap(lambda episode: key_for(KEY, Purpose.STARTS, episode))(ENDED_EPISODES + 1 + jnp.arange(count))
    jax.tree.map(np.testing.assert_array_equal, found, jax.jit(jax.vmap(task().reset))(keys))


def test_a_short_chunk_draws_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables have room for 20 periods and 240 episodes, of which one period needs a few."""
    monkeypatch.setattr(algorithm_1, "BLOCK_NUMBERS", 90)  # two periods of 36 numbers, or 45 episodes of 2
    little, all_of_it = drawn(PPO, 1, most=22), drawn(PPO, 22, most=22)
    assert little.normals.shape == all_of_it.normals.shape == (22, 12, 1)
    np.testing.assert_array_equal(little.normals[:2], all_of_it.normals[:2])
    assert (np.asarray(little.normals[2:]) == 0).all()
    assert (np.asarray(all_of_it.normals) != 0).all()
    assert np.count_nonzero(little.starts.place) == 45
    assert np.count_nonzero(all_of_it.starts.place) >= 22 * 12 + 1


def text_of(task: ClosedFormTask, k: int, agent: Agent) -> str:
    plan, zero = DrawPlan(TimedTask(task, k), 10, alone=True, learns=True), jnp.int32(0)
    program: Any = algorithm_1._draw_program(())
    text: str = program.lower(plan, agent, KEY, DrawStart(zero, zero), zero).as_text()
    return text


def test_one_program_serves_all_minibatches_and_rates() -> None:
    ours = text_of(Reacher(), 8, PPO)
    assert text_of(Reacher(), 8, replace(PPO, minibatch=3, discount=0.5, hidden=(8,))) == ours
    assert text_of(Reacher(), 8, replace(PPO, batch=13)) != ours
