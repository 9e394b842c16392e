"""What all loops begin with, to the bit, and compiled as users have it."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from cycletime.agents import Agent, PPOAgent, SACAgent
from cycletime.training import algorithm_1, random_numbers
from cycletime.training import algorithm_1 as program
from cycletime.training.algorithm_1 import TimedTask, initial_agent_state
from cycletime.training.random_numbers import Purpose, key_for, seed_key
from tests.training.loops.conftest import Wander

KEY = seed_key(3)
PPO = PPOAgent(batch=20, minibatch=5, hidden=(16,))


@pytest.mark.parametrize("agent", [PPO, SACAgent(minibatch=4, hidden=(16,))], ids=["ppo", "sac"])
def test_it_is_what_the_agent_initializes_with_all_optimisations(agent: Agent) -> None:
    usual = jax.jit(agent.initialize, static_argnums=(1, 2))(key_for(KEY, Purpose.INITIALIZE), 1, 1)
    jax.tree.map(np.testing.assert_array_equal, initial_agent_state(agent, KEY, 1, 1), usual)


def test_the_compiled_loop_begins_with_it() -> None:
    shape = program.ProgramShape(TimedTask(Wander(), 4), capacity=20, periods=1, alone=True)
    found = program.initialize(shape, PPO, KEY).psi
    jax.tree.map(np.testing.assert_array_equal, found, initial_agent_state(PPO, KEY, 1, 1))


def test_one_program_serves_all_batches_and_rates() -> None:
    initial_agent_state(PPO, KEY, 3, 2)
    programs = set(algorithm_1._initial_state_programs)
    for other in (
        replace(PPO, batch=50, minibatch=10, epochs=3),
        replace(PPO, discount=0.5, time_limit="bootstrap"),
    ):
        initial_agent_state(other, KEY, 3, 2)
    assert set(algorithm_1._initial_state_programs) == programs
    initial_agent_state(replace(PPO, hidden=()), KEY, 3, 2)
    assert len(algorithm_1._initial_state_programs) == len(programs) + 1


def test_agents_with_equal_weights_keep_their_own_kind_of_state() -> None:
    """SAC's with and without the policy from before the last update, which begins as the policy does."""
    agent = SACAgent(minibatch=4, hidden=())
    assert initial_agent_state(agent, KEY, 1, 1).acting is None
    assert initial_agent_state(replace(agent, acts="before_learning"), KEY, 1, 1).acting is not None


def test_all_cycle_times_and_batches_begin_with_one_walk() -> None:
    before = algorithm_1.initial_episode_state._cache_size()  # type: ignore[attr-defined]
    for k, agent in ((4, PPO), (2, replace(PPO, batch=30))):
        program.initialize(
            program.ProgramShape(TimedTask(Wander(), k), capacity=20 * k, periods=1, alone=True), agent, KEY
        )
    assert algorithm_1.initial_episode_state._cache_size() <= before + 1  # type: ignore[attr-defined]


def test_a_version_of_xla_without_our_options_begins_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = replace(PPO, hidden=(3,))
    usual = initial_agent_state(agent, KEY, 2, 1)
    monkeypatch.setattr(random_numbers, "_FAST_OPTIONS", (("xla_cpu_no_such_option", True),))
    monkeypatch.setattr(random_numbers, "_unsupported", set())
    monkeypatch.setattr(algorithm_1, "_initial_state_programs", {})
    algorithm_1._initial_state_program.cache_clear()
    jax.tree.map(np.testing.assert_array_equal, initial_agent_state(agent, KEY, 2, 1), usual)
    assert random_numbers._unsupported
