"""What all loops begin with, to the bit, and compiled as users have it."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from cycletime.agents import Agent, PPOAgent, SACAgent
from cycletime.loops import beginning, program
from cycletime.loops.beginning import first_psi
from cycletime.loops.randomness import Purpose, key_for, seed_key
from cycletime.loops.rollout import TimedTask
from tests.loops.conftest import Wander

KEY = seed_key(3)
PPO = PPOAgent(batch=20, minibatch=5, hidden=(16,))


@pytest.mark.parametrize("agent", [PPO, SACAgent(minibatch=4, hidden=(16,))], ids=["ppo", "sac"])
def test_it_is_what_the_agent_initializes_with_all_optimisations(agent: Agent) -> None:
    usual = jax.jit(agent.initialize, static_argnums=(1, 2))(key_for(KEY, Purpose.INITIALIZE), 1, 1)
    jax.tree.map(np.testing.assert_array_equal, first_psi(agent, KEY, 1, 1), usual)


def test_the_compiled_loop_begins_with_it() -> None:
    shape = program.Shape(TimedTask(Wander(), 4), capacity=20, periods=1, alone=True)
    found = program.initialize(shape, PPO, KEY).psi
    jax.tree.map(np.testing.assert_array_equal, found, first_psi(PPO, KEY, 1, 1))


def test_one_program_serves_all_batches_and_rates() -> None:
    lower = beginning._program("cpu").lower  # type: ignore[attr-defined]
    others = [replace(PPO, batch=50, minibatch=10, epochs=3), replace(PPO, discount=0.5, time_limit="bootstrap")]
    assert {lower(agent, KEY, 3, 2).as_text() for agent in (PPO, *others)} == {lower(PPO, KEY, 3, 2).as_text()}
    assert lower(replace(PPO, hidden=(8,)), KEY, 3, 2).as_text() != lower(PPO, KEY, 3, 2).as_text()


def test_options_that_this_version_of_xla_does_not_have_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = first_psi(PPO, KEY, 1, 1)
    monkeypatch.setitem(beginning._SOON, "xla_cpu_no_such_option", True)
    beginning._program.cache_clear()
    try:
        jax.tree.map(np.testing.assert_array_equal, first_psi(PPO, KEY, 1, 1), expected)
    finally:
        beginning._program.cache_clear()
