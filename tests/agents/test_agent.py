"""What all agents share: trees of rates, actions of every size, and the random start."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents import ActorCriticAgent, Buffer, PPOAgent, SACAgent
from cycletime.agents.agent import choose_action
from cycletime.agents.networks import PolicyNetwork
from tests.agents.conftest import (
    Dense,
    arrays_of,
    assert_trees_close,
    filled_buffer,
    random_transitions,
    randomized,
    shapes_of,
)

pytestmark = pytest.mark.usefixtures("compiled_quickly")
PPO_AGENT = PPOAgent(batch=6, minibatch=6, epochs=1, hidden=(4,))
SAC_AGENT = SACAgent(minibatch=4, replay_capacity=6, hidden=(4,), warmup_steps=100)
ACTOR_CRITIC_AGENT = ActorCriticAgent(hidden=(4,))
AGENTS: list[Any] = [PPO_AGENT, SAC_AGENT, ACTOR_CRITIC_AGENT]
EACH = pytest.mark.parametrize("agent", AGENTS, ids=["PPO", "SAC", "actor-critic"])
RATES = {
    PPOAgent: {"discount": 0.5, "trace_decay": 0.25, "learning_rate": 0.1, "clip": 0.3},
    SACAgent: {"discount": 0.5, "learning_rate": 0.1, "target_smoothing": 0.3},
    ActorCriticAgent: {"discount": 0.5, "policy_rate": 0.1, "value_rate": 0.2},
}


@EACH
def test_agents_that_differ_in_rates_only_are_the_same_tree(agent: Any) -> None:  # noqa: ANN401
    rates = RATES[type(agent)]
    other = replace(agent, **rates)
    assert structure_of(agent) == structure_of(other)
    assert sorted(jax.tree.leaves(other)) == sorted(rates.values())
    assert structure_of(agent) != structure_of(replace(agent, hidden=(5,)))
    assert structure_of(agent) != structure_of(replace(agent, time_limit=flipped(agent.time_limit)))


def structure_of(tree: object) -> Any:  # noqa: ANN401 - JAX's type of structures does not tell that they compare
    return jax.tree.structure(tree)


def flipped(time_limit: str) -> str:
    return "bootstrap" if time_limit == "terminal" else "terminal"


@EACH
def test_a_tree_gives_back_the_agent(agent: Any) -> None:  # noqa: ANN401
    other = replace(agent, **RATES[type(agent)])
    leaves, structure = jax.tree.flatten(other)
    assert jax.tree.unflatten(structure, leaves) == other


@EACH
def test_a_tree_is_put_together_without_checks(agent: Any) -> None:  # noqa: ANN401
    leaves, structure = jax.tree.flatten(agent)
    made = jax.tree.unflatten(structure, [jnp.full(3, 7.0) for _ in leaves])
    np.testing.assert_array_equal(made.discount, [7.0, 7.0, 7.0])
    assert jax.tree.map(lambda _: None, agent).discount is None


def test_agents_side_by_side_learn_as_each_alone() -> None:
    """PPO's and SAC's lanes are held against Algorithm 1 where the compiled loop is tested."""
    with jax.enable_x64(True):
        pair = [ACTOR_CRITIC_AGENT, replace(ACTOR_CRITIC_AGENT, discount=0.5, policy_rate=0.1, value_rate=0.2)]
        states = [randomized(shapes_of(each), seed=seed) for seed, each in enumerate(pair)]
        buffers = [filled_buffer(random_transitions(1, seed=seed)) for seed in range(2)]
        together = (jax.tree.map(lambda *leaves: np.stack(leaves), *each) for each in (pair, states, buffers))
        found = jax.jit(jax.vmap(ActorCriticAgent.learn, in_axes=(0, 0, 0, None)))(*together, None)
        alone = [jax.jit(ActorCriticAgent.learn)(*each, None) for each in zip(pair, states, buffers, strict=True)]
        for lane, expected in enumerate(alone):
            assert_trees_close(jax.tree.map(lambda leaf, lane=lane: leaf[lane], found), arrays_of(expected), 1e-10)
        first, second = (np.concatenate([np.ravel(each) for each in arrays_of(one)]) for one in alone)
        assert not np.allclose(first, second)


@EACH
def test_new_rates_need_no_new_compilation(agent: Any) -> None:  # noqa: ANN401
    traced = []

    @jax.jit
    def count(agent: Any) -> Any:  # noqa: ANN401
        traced.append(agent)
        return agent.discount

    assert count(agent) == np.float32(agent.discount)
    assert count(replace(agent, discount=0.125)) == 0.125
    assert len(traced) == 1


@EACH
@pytest.mark.parametrize("action_size", [1, 7])
def test_agents_and_their_policies_act_by_the_formulas(agent: Any, action_size: int) -> None:  # noqa: ANN401
    """With noise, and without it by the policy's mean."""
    with jax.enable_x64(True):
        psi = randomized(shapes_of(agent, 3, action_size))
        policy: PolicyNetwork = agent.policy(psi)
        assert (policy.observation_size, policy.action_size) == (3, action_size)
        random = np.random.default_rng(1)
        observation, noise = random.normal(size=(20, 3)), random.normal(size=(20, action_size))
        numbers = Dense(arrays_of(policy.layers), policy.activation).forward(observation)
        mean, free = numbers[:, :action_size], numbers[:, action_size:]
        log_std = np.clip(free, -20, 2) if isinstance(agent, SACAgent) else np.asarray(policy.log_std)
        for each in (np.zeros_like(noise), noise):
            expected = mean + np.exp(log_std) * each
            expected = np.tanh(expected) if isinstance(agent, SACAgent) else expected
            np.testing.assert_allclose(policy.act(observation, each), expected, atol=1e-12)  # type: ignore[arg-type]
            np.testing.assert_allclose(agent.act(psi, observation, each), expected, atol=1e-12)


def test_log_sigma_of_sac_is_clipped() -> None:
    psi = randomized(shapes_of(SAC_AGENT))
    bias = jnp.array([0.0, 0, 100, -100])
    psi = psi._replace(policy=(psi.policy[0], psi.policy[1]._replace(bias=bias)))
    log_std = SAC_AGENT.policy(psi).mean_and_log_std(jnp.zeros(3))[1]
    assert np.asarray(log_std).tolist() == [2, -20]


def test_the_policy_is_the_newest_also_where_the_one_before_it_acts() -> None:
    agent = replace(SAC_AGENT, acts="before_learning")
    psi = randomized(shapes_of(agent))
    observation, noise = jnp.ones(3), jnp.zeros(2)
    newest = SAC_AGENT.act(psi._replace(acting=None), observation, noise)
    np.testing.assert_allclose(agent.policy(psi).act(observation, noise), newest, atol=1e-6)
    assert not np.allclose(agent.act(psi, observation, noise), newest)


@EACH
def test_single_precision_stays_single(agent: Any) -> None:  # noqa: ANN401
    psi = shapes_of(agent)
    buffer = jax.eval_shape(lambda: Buffer.empty(agent.capacity, 3, 2))
    draws = jax.eval_shape(lambda key: agent.draw(key, 2), jax.random.key(0))
    after, metrics = jax.eval_shape(agent.learn, psi, buffer, draws)
    assert structure_of(after) == structure_of(psi)
    assert [leaf.dtype for leaf in jax.tree.leaves(after)] == [leaf.dtype for leaf in jax.tree.leaves(psi)]
    assert {leaf.dtype for leaf in metrics.values()} == {np.dtype("float32")}
    assert {leaf.shape for leaf in metrics.values()} == {()}


def test_the_random_start_is_uniform_and_ends_on_time() -> None:
    psi = randomized(shapes_of(SAC_AGENT))
    observation = jnp.array([0.5, -2.0, 1.0])
    noise = jnp.asarray(np.random.default_rng(1).normal(size=(5000, 2)), jnp.float32)
    choose = jax.vmap(lambda noise, steps: choose_action(SAC_AGENT, psi, observation, noise, steps), in_axes=(0, None))
    chosen = jax.jit(choose)
    for steps in (0, 99):
        actions = np.sort(np.ravel(chosen(noise, jnp.asarray(steps))))
        assert np.all(np.abs(actions) <= 1)
        # Against the distribution function (a + 1) / 2; Kolmogorov and Smirnov's bound for one in a thousand times.
        ranks = (np.arange(actions.size) + 0.5) / actions.size
        assert np.max(np.abs((actions + 1) / 2 - ranks)) < 1.95 / np.sqrt(actions.size)
    components = np.asarray(chosen(noise, jnp.asarray(0)))
    assert abs(np.corrcoef(components.T)[0, 1]) < 0.05
    policy = jax.jit(jax.vmap(lambda noise: SAC_AGENT.act(psi, observation, noise)))(noise)
    for steps in (100, 101, 10**6):
        np.testing.assert_allclose(chosen(noise, jnp.asarray(steps)), policy, atol=1e-6)
    assert not np.allclose(components, policy, atol=0.05)


@pytest.mark.parametrize("agent", [PPO_AGENT, replace(SAC_AGENT, warmup_steps=0), ACTOR_CRITIC_AGENT])
def test_without_a_random_start_the_policy_acts_at_once(agent: Any) -> None:  # noqa: ANN401
    psi = randomized(shapes_of(agent))
    observation, noise = jnp.array([0.5, -2.0, 1.0]), jnp.array([0.4, -1.0])
    found = choose_action(agent, psi, observation, noise, jnp.asarray(0))
    np.testing.assert_array_equal(found, agent.act(psi, observation, noise))
