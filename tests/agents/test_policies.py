"""A policy by itself acts as its agent does."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents import ActorCriticAgent, PPOAgent, SACAgent
from cycletime.agents.policies import PolicyNetwork
from tests.agents.conftest import Dense, arrays_of

AGENTS: list[Any] = [PPOAgent(), SACAgent(), ActorCriticAgent()]
EACH = pytest.mark.parametrize("agent", AGENTS, ids=["PPO", "SAC", "actor-critic"])


def some_psi(agent: Any, observation_size: int = 3, action_size: int = 2) -> Any:  # noqa: ANN401
    """A state with weights that reach far, since those of a fresh agent are nearly zero in the last layer."""
    random = np.random.default_rng(0)
    shapes = jax.eval_shape(lambda: agent.initialize(jax.random.key(0), observation_size, action_size))
    return jax.tree.map(lambda leaf: random.normal(scale=0.7, size=leaf.shape).astype(np.float32), shapes)


@EACH
@pytest.mark.parametrize("hidden", [(4,), (16, 8), (32, 8, 8)])
def test_it_acts_as_the_agent_does_with_noise_and_without(agent: Any, hidden: tuple[int, ...]) -> None:  # noqa: ANN401
    agent = replace(agent, hidden=hidden)
    psi = some_psi(agent)
    policy: PolicyNetwork = agent.policy(psi)
    random = np.random.default_rng(1)
    observation = jnp.asarray(random.normal(size=(20, 3)))
    for noise in (jnp.zeros((20, 2)), jnp.asarray(random.normal(size=(20, 2)))):
        np.testing.assert_allclose(policy.act(observation, noise), agent.act(psi, observation, noise), atol=1e-6)
    assert (policy.observation_size, policy.action_size) == (3, 2)


@EACH
def test_its_mean_and_sigma_are_those_of_the_formulas(agent: Any) -> None:  # noqa: ANN401
    agent = replace(agent, hidden=(5,))
    psi = some_psi(agent)
    policy: PolicyNetwork = agent.policy(psi)
    observation = np.random.default_rng(1).normal(size=(20, 3))
    numbers = Dense(arrays_of(policy.layers), policy.activation).forward(observation)
    mean, log_std = policy.mean_and_log_std(jnp.asarray(observation))
    if isinstance(agent, SACAgent):
        expected_log_std = np.clip(numbers[:, 2:], -20, 2)
    else:
        assert policy.log_std is not None
        expected_log_std = np.broadcast_to(np.asarray(policy.log_std), (20, 2))
    np.testing.assert_allclose(mean, numbers[:, :2], atol=1e-5)
    np.testing.assert_allclose(log_std, expected_log_std, atol=1e-5)


def test_log_sigma_of_sac_is_clipped() -> None:
    agent = SACAgent(hidden=(5,))
    psi = some_psi(agent)
    bias = np.array([0, 0, 100, -100], np.float32)
    psi = psi._replace(policy=(psi.policy[0], psi.policy[1]._replace(bias=bias)))
    log_std = agent.policy(psi).mean_and_log_std(jnp.zeros(3))[1]
    assert np.asarray(log_std).tolist() == [2, -20]


def test_it_is_the_newest_policy_also_where_the_one_before_it_acts() -> None:
    agent = SACAgent(hidden=(5,), acts="before_learning")
    psi = some_psi(agent)
    observation, noise = jnp.ones(3), jnp.zeros(2)
    newest = replace(agent, acts="after_learning").act(psi._replace(acting=None), observation, noise)
    np.testing.assert_allclose(agent.policy(psi).act(observation, noise), newest, atol=1e-6)
    assert not np.allclose(agent.act(psi, observation, noise), newest)
