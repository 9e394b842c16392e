"""The policy in NumPy does what the agent does in JAX, with the same random numbers."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents import ActorCriticAgent, Agent, Pink, PPOAgent, SACAgent
from cycletime.agents.agent import choose_action
from cycletime.agents.exploration import explore, initial_noise_state
from cycletime.training.algorithm_1 import initial_agent_state
from cycletime.training.random_numbers import seed_key
from cycletime.training.stepped_agent import Actor, PackedAgentState, uniform_from_normal

pytestmark = pytest.mark.usefixtures("compiled_quickly")

KEY, RNG = seed_key(3), np.random.default_rng(0)
OBSERVATION = RNG.normal(size=(3, 5)).astype(np.float32)
NORMALS = RNG.normal(size=(3, 2)).astype(np.float32)
PPO = PPOAgent(batch=4, minibatch=4, epochs=1, hidden=(4,))
SAC = SACAgent(minibatch=4, hidden=(4,), warmup_steps=5, replay_capacity=200)


@pytest.mark.parametrize("agent", [PPO, SAC, ActorCriticAgent(hidden=(4,))], ids=["ppo", "sac", "ac"])
def test_an_actor_acts_as_its_agent_before_and_after_learning(agent: Agent) -> None:
    first = initial_agent_state(agent, KEY, 5, 2)
    actor, choose = Actor(agent, PackedAgentState.of(first), 3, 2), jax.jit(partial(choose_action, agent))
    for psi in (first, jax.tree.map(lambda leaf: 2 * leaf, first)):
        packed = PackedAgentState.of(psi)
        for steps in (1, 3, 100):  # of three, all or the first two are still taken at random, by SAC
            each = [choose(psi, OBSERVATION[copy], NORMALS[copy], steps + copy) for copy in range(3)]
            acted = actor.act(packed, OBSERVATION, NORMALS, steps)
            assert acted.dtype == np.float32
            np.testing.assert_allclose(acted, each, rtol=1e-5, atol=1e-6)


def test_the_policy_from_before_the_last_update_acts_where_the_agent_says_so() -> None:
    agent = replace(SAC, warmup_steps=0, acts="before_learning")
    psi = initial_agent_state(agent, KEY, 5, 2)
    later = psi._replace(policy=jax.tree.map(lambda leaf: leaf + 1, psi.policy))
    before, after = (
        Actor(agent, PackedAgentState.of(psi), 3, 2).act(PackedAgentState.of(each), OBSERVATION, NORMALS, 0)
        for each in (psi, later)
    )
    np.testing.assert_array_equal(before, after)


def test_coherent_noise_goes_on_from_step_to_step_as_in_a_compiled_program() -> None:
    coherent = Pink("50ms", "20ms").at("10ms")
    agent = replace(PPO, exploration=coherent)
    psi = initial_agent_state(agent, KEY, 5, 2)
    actor, state = Actor(agent, PackedAgentState.of(psi), 3, 2), initial_noise_state(coherent, 3, 2)
    for step in range(4):
        normals = RNG.normal(size=(3, 4)).astype(np.float32)
        begins = np.array([step == 0, step in (0, 2), step == 0])
        noise, state = explore(coherent, state, jnp.asarray(normals), jnp.asarray(begins))
        acted = actor.act(PackedAgentState.of(psi), OBSERVATION, normals, step, begins)
        np.testing.assert_allclose(acted, agent.act(psi, jnp.asarray(OBSERVATION), noise), rtol=1e-5, atol=1e-6)


def test_weights_that_are_no_numbers_make_actions_that_are_none_without_a_warning() -> None:
    psi = initial_agent_state(PPO, KEY, 5, 2)
    for wrong in (np.nan, np.inf, 3e38):
        parameters = jax.tree.map(lambda leaf: jnp.full_like(leaf, wrong), psi.parameters)  # noqa: B023
        diverged = PackedAgentState.of(psi._replace(parameters=parameters))
        assert not np.isfinite(Actor(PPO, diverged, 3, 2).act(diverged, OBSERVATION, NORMALS, 0)).any()


def test_uniform_actions_are_uniform() -> None:
    drawn = np.sort(uniform_from_normal(RNG.normal(size=(100, 100)).astype(np.float32)).ravel())
    assert np.abs(drawn - np.linspace(-1, 1, 10_000)).max() < 0.05  # Kolmogorov and Smirnov's, of about 2e-2
