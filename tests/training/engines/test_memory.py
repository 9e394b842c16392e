"""What a lane is said to take, against counting and against what XLA says of the compiled program."""

import jax.numpy as jnp
import pytest

from cycletime.agents import Agent, PPOAgent, SACAgent
from cycletime.tasks import Reacher
from cycletime.training.algorithm_1 import advance_with_draws, draw_for_periods
from cycletime.training.compiled_engine import lane_bytes
from cycletime.training.compiled_loop import CompiledLoop


def loop_of(agent: Agent) -> CompiledLoop:
    return CompiledLoop(task=Reacher(), agent=agent, dt="32ms", env_steps=400_000, width=3)


def test_a_replay_counts_twice() -> None:
    small, large = (loop_of(SACAgent(hidden=(4,), minibatch=8, replay_capacity=rows)) for rows in (5_000, 15_000))
    numbers = 2 * small.task.observation_size + small.task.action_size + 3
    assert lane_bytes(large) - lane_bytes(small) == 2 * 10_000 * numbers * 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "agent",
    [
        SACAgent(hidden=(4,), minibatch=8, replay_capacity=30_000),
        PPOAgent(batch=2000, minibatch=1000, epochs=1, hidden=(4,)),
    ],
    ids=["sac", "ppo"],
)
def test_a_lane_takes_no_more_than_is_said_and_not_much_less(agent: Agent) -> None:
    loop = loop_of(agent)
    rates, _ = loop._lanes([0], None)
    state, one = loop.start([0]).state, jnp.int32(1)
    draws = draw_for_periods(loop.shape, rates, state, one, learns=True)
    lowered = advance_with_draws.lower(loop.shape, rates, state, draws, one, learns=True)
    memory = lowered.compile().memory_analysis()
    assert memory
    taken = memory.temp_size_in_bytes + memory.argument_size_in_bytes + memory.output_size_in_bytes
    assert 1 <= lane_bytes(loop) / ((taken - memory.alias_size_in_bytes) / 3) < 2.5
