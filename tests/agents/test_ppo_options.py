"""What PPO has for many environments: each against its formula in NumPy, and off where nobody asks for it."""

from dataclasses import fields, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax  # type: ignore[import-untyped]
import pytest

from cycletime import rules
from cycletime.agents import Buffer, PPOAgent, Transition, agent_for
from cycletime.agents.networks import Moments, limit_norm, no_moments
from cycletime.agents.ppo import PPOState, Sample
from cycletime.errors import InputError
from cycletime.training.make_specs import transfer_agent
from cycletime.training.spec import RunSpec
from cycletime.training.worlds import ClosedFormWorld

pytestmark = pytest.mark.usefixtures("compiled_quickly")
SIZES, ROWS, ENVS = (3, 2), 8, 4
SMALL: dict[str, Any] = {"batch": ROWS * ENVS, "minibatch": 8, "hidden": (5,), "epochs": 2}


def make_batch(seed: int = 0) -> Buffer:
    random = np.random.default_rng(seed)
    buffer = Buffer.empty(ROWS, *SIZES, ENVS)
    for _ in range(ROWS):
        seen, successor = 3 + 5 * random.normal(size=(2, ENVS, SIZES[0]))
        ended = (random.uniform(size=ENVS) < 0.2).astype(np.float32)
        parts = (seen, random.normal(size=(ENVS, SIZES[1])), random.normal(size=ENVS), successor, ended, 0 * ended)
        buffer = buffer.store(Transition(*(jnp.asarray(part, jnp.float32) for part in parts)))
    return buffer


def start(**options: Any) -> tuple[PPOAgent, PPOState]:  # noqa: ANN401
    agent = PPOAgent(**{**SMALL, **options})
    return agent, jax.jit(agent.initialize, static_argnums=(1, 2, 3))(jax.random.key(1), *SIZES, ENVS)


def learn(agent: PPOAgent, psi: PPOState, buffer: Buffer) -> tuple[PPOState, dict[str, Any]]:
    learned: tuple[PPOState, dict[str, Any]] = jax.jit(agent.learn)(
        psi, buffer, agent.draw(jax.random.key(2), SIZES[1])
    )
    return learned


def assert_close(one: object, other: object, tolerance: float = 1e-5) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_nothing_of_it_is_in_the_identity_or_the_state_by_default() -> None:
    spec = RunSpec(world=ClosedFormWorld("reacher"), agent=PPOAgent(), dt="16ms", env_steps=2400, seed=0)
    options = {each.name for each in fields(PPOAgent) if each.metadata.get("option")}
    assert len(options) == 10
    assert not options & spec.as_json()["agent"].keys()
    assert len(jax.tree.leaves(start()[1])) == len(jax.tree.leaves(start()[1][:2]))
    chosen = replace(spec, agent=PPOAgent(normalize_observations=True, entropy_bonus=0.01, minibatches=40))
    said = chosen.as_json()["agent"]
    assert {name: said[name] for name in options & said.keys()} == {
        "normalize_observations": True, "entropy_bonus": 0.01, "minibatches": 40,
    }  # fmt: skip
    assert RunSpec.from_json(chosen.as_json()) == chosen
    assert chosen.identity != spec.identity


def test_moments_are_those_of_all_observations_so_far() -> None:
    random = np.random.default_rng(0)
    parts = [random.normal(loc, 3, size=(count, 4)).astype(np.float32) for loc, count in ((2, 50), (-1, 7), (9, 300))]
    moments = no_moments(4, jnp.dtype("float32"))
    for part in parts:
        moments = moments.plus(jnp.asarray(part))
    seen = np.concatenate(parts)
    assert_close(moments, Moments(jnp.float32(357), seen.mean(0), seen.var(0)))


def test_networks_see_observations_that_are_normalised_by_what_was_seen_before() -> None:
    """Learning from raw observations with moments is learning from normalised ones without."""
    agent, psi = start(normalize_observations=True)
    seen = Moments(jnp.float32(100), jnp.array([3.0, 1.0, -2.0]), jnp.array([25.0, 4.0, 1.0]))
    psi, buffer = psi._replace(observed=seen), make_batch()
    after, _ = learn(agent, psi, buffer)
    columns = np.array(buffer.rows)
    for first in (0, SIZES[0] + SIZES[1] + 1):
        part = columns[..., first : first + SIZES[0]]
        columns[..., first : first + SIZES[0]] = (part - seen.mean) / (np.sqrt(seen.variance) + 0.01)
    plain, begun = start()
    expected, _ = learn(plain, begun, replace(buffer, rows=jnp.asarray(columns)))
    assert_close(after.parameters, expected.parameters, 1e-4)
    assert after.observed is not None
    assert float(after.observed.number) == 100 + ROWS * ENVS


def test_a_policy_elsewhere_has_the_normalisation_in_its_first_layer() -> None:
    agent, psi = start(normalize_observations=True)
    psi, _ = learn(agent, psi, make_batch())
    random = np.random.default_rng(5)
    observation = (3 + 5 * random.normal(size=(50, SIZES[0]))).astype(np.float32)
    noise = random.normal(size=(50, SIZES[1])).astype(np.float32)
    expected = np.asarray(agent.act(psi, jnp.asarray(observation), jnp.asarray(noise)))
    policy = agent.policy(psi)
    assert policy.observed is None
    np.testing.assert_allclose(policy.act(jnp.asarray(observation), jnp.asarray(noise)), expected, atol=1e-5)
    np.testing.assert_allclose(agent.acting(psi).in_numpy().act(observation, noise), expected, atol=1e-5)


def test_scaled_rewards_are_smaller_rewards() -> None:
    buffer = make_batch()
    scaled = np.array(buffer.rows)
    scaled[..., sum(SIZES)] *= 0.1
    agent, psi = start(reward_scale=0.1)
    plain, _ = start()
    assert_close(learn(agent, psi, buffer), learn(plain, psi, replace(buffer, rows=jnp.asarray(scaled))))


def vec_normalized(
    rewards: np.ndarray[Any, Any], ended: np.ndarray[Any, Any], discount: float
) -> list[np.ndarray[Any, Any]]:
    """The discounted returns that Stable-Baselines3's VecNormalize has after each step, [steps, environments]."""
    passed, running = [], np.zeros(rewards.shape[1])
    for reward, end in zip(rewards, ended, strict=True):
        running = running * discount + reward
        passed.append(running.copy())
        running[end > 0] = 0
    return passed


def test_rewards_are_normalised_by_the_discounted_returns_of_all_batches() -> None:
    agent, psi = start(normalize_rewards=True, discount=0.9)
    batches = [make_batch(seed) for seed in (0, 1, 2)]
    rows = np.concatenate([np.asarray(each.rows) for each in batches])
    rewards, ended = rows[..., sum(SIZES)], rows[..., -2]
    passed = np.array(vec_normalized(rewards, ended, 0.9))
    for count, batch in enumerate(batches, 1):
        before = psi
        psi, _ = learn(agent, psi, batch)
        known = passed[: count * ROWS]
        assert psi.returns is not None
        assert_close(
            psi.returns.moments, Moments(jnp.float32(known.size), known.mean(keepdims=True)[0], known.var()[None])
        )
    assert psi.returns is not None
    np.testing.assert_allclose(psi.returns.newest, np.where(ended[-1] > 0, 0, passed[-1]), rtol=1e-5)
    # The last learning was one from rewards divided by that deviation.
    scaled = np.array(batches[-1].rows)
    scaled[..., sum(SIZES)] = np.clip(scaled[..., sum(SIZES)] / passed.std(), -10, 10)
    plain = PPOAgent(**SMALL, discount=0.9)
    after, _ = learn(plain, before._replace(returns=None), replace(batches[-1], rows=jnp.asarray(scaled)))
    assert_close(psi.parameters, after.parameters, 1e-4)


def test_normalised_rewards_are_within_ten() -> None:
    """The first reward's return has no deviation yet."""
    agent = PPOAgent(batch=2, minibatch=1, epochs=1, hidden=(5,), normalize_rewards=True, discount=0.0)
    psi = jax.jit(agent.initialize, static_argnums=(1, 2))(jax.random.key(1), *SIZES)
    buffer = Buffer.empty(2, *SIZES)
    for _ in range(2):
        parts = np.zeros(3), np.zeros(2), 3.0, np.zeros(3), 1.0, 0.0
        buffer = buffer.store(Transition(*(jnp.asarray(part, jnp.float32) for part in parts)))
    psi = psi._replace(returns=agent.returns_after(psi.returns, buffer.oldest_first()))
    np.testing.assert_array_equal(agent.samples(psi, buffer).lambda_return, [10, 10])


def test_relu_networks_act_and_learn_as_relu_networks() -> None:
    agent, psi = start(activation="relu")
    layers = psi.parameters.policy.network
    assert agent.policy(psi).activation == "relu"
    seen = np.random.default_rng(3).normal(size=(9, SIZES[0])).astype(np.float32)
    hidden = np.maximum(seen @ np.asarray(layers[0].weight) + np.asarray(layers[0].bias), 0)
    mean = hidden @ np.asarray(layers[1].weight) + np.asarray(layers[1].bias)
    np.testing.assert_allclose(agent.act(psi, jnp.asarray(seen), jnp.zeros((9, SIZES[1]))), mean, atol=1e-6)
    np.testing.assert_allclose(
        agent.acting(psi).in_numpy().act(seen, np.zeros((9, SIZES[1]), np.float32)), mean, atol=1e-6
    )
    # Each value, density and loss of a learning is that of these networks.
    data, value = agent.samples(psi, make_batch()), psi.parameters.value
    seen = np.asarray(data.observation)
    body = [np.maximum(seen @ np.asarray(each[0].weight) + np.asarray(each[0].bias), 0) for each in (layers, value)]
    mean, v = (
        h @ np.asarray(each[1].weight) + np.asarray(each[1].bias) for h, each in zip(body, (layers, value), strict=True)
    )
    away = np.asarray(data.action) - mean
    density = np.sum(-0.5 * away**2 - 0.5 * np.log(2 * np.pi), axis=1)
    np.testing.assert_allclose(data.old_log_probability, density, rtol=1e-5)
    np.testing.assert_allclose(
        agent.value_loss(value, data), np.mean((np.asarray(data.lambda_return) - v[:, 0]) ** 2), rtol=1e-5
    )


def test_the_loss_is_schulman_s_equation_9() -> None:
    agent, psi = start(entropy_bonus=0.02, value_coefficient=0.5)
    plain, _ = start()
    data = plain.samples(psi, make_batch())
    of_policy = plain.policy_loss(psi.parameters.policy, data)
    of_value = plain.loss(psi.parameters, data) - of_policy
    entropy = float(np.sum(np.asarray(psi.parameters.policy.log_std) + 0.5 * np.log(2 * np.pi * np.e)))
    np.testing.assert_allclose(agent.loss(psi.parameters, data), of_policy + 0.5 * of_value - 0.02 * entropy, rtol=1e-5)


@pytest.mark.parametrize("longest", [0.1, 1e6])
def test_a_long_gradient_is_cut_as_by_optax(longest: float) -> None:
    gradient = {"a": jnp.arange(6.0), "b": jnp.ones((2, 3))}
    expected, _ = optax.clip_by_global_norm(longest).update(gradient, optax.EmptyState())
    assert_close(limit_norm(gradient, longest), expected)


def test_advantages_of_a_minibatch_have_mean_0_and_variance_1() -> None:
    agent, psi = start(advantages="minibatch")
    plain, _ = start()
    data = agent.samples(psi, make_batch())
    part: Sample = jax.tree.map(lambda each: each[:8], data)
    h = np.asarray(part.advantage)
    normal = part._replace(advantage=jnp.asarray((h - h.mean()) / (h.std() + 1e-8)))
    policy = jax.tree.map(lambda each: 1.1 * each, psi.parameters.policy)
    np.testing.assert_allclose(agent.policy_loss(policy, part), plain.policy_loss(policy, normal), rtol=1e-5)
    whole = np.asarray(plain.samples(psi, make_batch()).advantage)
    assert abs(whole.std() - 1) < 1e-4 < abs(np.asarray(data.advantage).std() - 1)


@pytest.mark.parametrize(
    ("away", "rate", "expected"),
    [(0, 3e-4, 3e-4), (0.01, 3e-4, 4.5e-4), (0.14, 3e-4, 3e-4), (1, 3e-4, 2e-4), (1, 1.2e-5, 1e-5), (0.01, 9e-3, 1e-2)],
)  # fmt: skip
def test_the_learning_rate_follows_the_kl(away: float, rate: float, expected: float) -> None:
    """A mean that moved by `away` in one action, of sigma 1, is a KL of away^2 / 2; the target is 0.01."""
    agent, psi = start(target_kl=0.01)
    data = agent.samples(psi, make_batch())
    layers = psi.parameters.policy.network
    moved = layers[-1]._replace(bias=layers[-1].bias + jnp.array([away, 0.0]))
    policy = psi.parameters.policy._replace(network=(*layers[:-1], moved))
    psi = psi._replace(parameters=psi.parameters._replace(policy=policy), learning_rate=jnp.float32(rate))
    np.testing.assert_allclose(agent.adapted_rate(psi, data), expected, rtol=1e-5)


def test_an_adapted_rate_is_kept_and_told() -> None:
    agent, psi = start(target_kl=1e-9)
    after, metrics = learn(agent, psi, make_batch())
    assert after.learning_rate is not None
    assert float(metrics["learning_rate"]) == float(after.learning_rate) < 3e-4


@pytest.mark.parametrize(("count", "sizes"), [(4, (4, 8, 0)), (3, (2, 11, 10)), (32, (32, 1, 0))])
def test_minibatches_are_counted_instead(count: int, sizes: tuple[int, int, int]) -> None:
    agent = PPOAgent(batch=32, minibatches=count)
    assert agent.slice_sizes == sizes
    assert agent.minibatch == sizes[1]


def test_a_rule_carries_the_batch_and_leaves_the_number_of_minibatches() -> None:
    values = rules.PPO(dt="16ms", batch=2048).at("8ms")
    assert agent_for(values, minibatches=32).minibatch == 128
    carried = transfer_agent(
        "ppo", {"batch": 2048}, dt="8ms", tuned_at="16ms", rule="dt-aware", others={"minibatches": 32}
    )
    assert (carried.agent.batch, carried.agent.minibatch) == (4096, 128)  # type: ignore[union-attr]
    with pytest.raises(InputError, match="minibatch is 64 and minibatches 32: give one"):
        transfer_agent("ppo", {"minibatch": 64}, dt="8ms", others={"minibatches": 32})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"normalize_observations": 1}, "normalize_observations is 1: it must be true or false"),
        ({"normalize_rewards": "yes"}, "normalize_rewards is 'yes': it must be true or false"),
        ({"normalize_rewards": True, "learning_period": 16, "minibatch": 8}, "leave out learning_period"),
        ({"normalize_rewards": True, "learn_when": "episode_end", "minibatch": 8}, "have learn_when='batch'"),
        ({"activation": "gelu"}, "activation is 'gelu': it must be 'tanh' or 'relu'"),
        ({"target_kl": 0.0}, "target_kl is 0.0: it must be a number above 0"),
        ({"max_gradient_norm": -1.0}, "max_gradient_norm is -1.0"),
        ({"advantages": "row"}, "advantages is 'row': it must be 'batch' or 'minibatch'"),
        ({"minibatches": 33, "batch": 32, "minibatch": 50}, "minibatches is 33: it must be at most the batch, 32"),
        ({"minibatches": 4, "minibatch": 9}, "leave minibatch out, which is 9"),
    ],
)  # fmt: skip
def test_wrong_values_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PPOAgent(**{"batch": 32, **options})
