"""SAC's gradients against the paper's three equations, its choices and its refusals."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents import SACAgent
from cycletime.agents.buffer import Transition
from cycletime.agents.sac import SACState, policy_loss_of
from cycletime.errors import InputError
from tests.agents.conftest import (
    Array,
    Dense,
    Weights,
    arrays_of,
    assert_trees_close,
    normal_log_density,
    random_transitions,
    slopes,
)

pytestmark = pytest.mark.usefixtures("compiled_quickly", "float64")
policy_gradient = jax.jit(jax.grad(policy_loss_of, has_aux=True))
update = jax.jit(SACAgent.update)


def make_sac(**overrides: Any) -> SACAgent:  # noqa: ANN401
    options: dict[str, Any] = {"minibatch": 6, "replay_capacity": 10, "hidden": (7, 5), "warmup_steps": 0}
    return SACAgent(**{**options, **overrides})


def make_state(agent: SACAgent, seed: int = 0) -> SACState:
    """Critics that disagree, targets unlike the critics, and an alpha that is not 1."""
    fresh, random = agent.initialize(jax.random.key(seed), 3, 2), np.random.default_rng(seed)
    moved: SACState = fresh._replace(
        **{
            name: jax.tree.map(lambda leaf: jnp.asarray(0.5 * random.normal(size=leaf.shape)), getattr(fresh, name))
            for name in ("policy", "critics", "targets")
        },
        temperature=jnp.asarray(0.3),
    )
    return moved


def make_minibatch() -> Transition:
    data: Transition = jax.tree.map(jnp.asarray, random_transitions(6, terminated=[1], truncated=[3]))
    return data


def mean_and_std(weights: Weights, observation: Array) -> tuple[Array, Array]:
    mean, log_std = np.split(Dense(weights, "relu").forward(observation), 2, axis=-1)
    return mean, np.exp(np.clip(log_std, -20, 2))


def squashed_log_density(mean: Array, std: Array, action: Array) -> Array:
    """By the change of variables a = tanh(u)."""
    slope: Array = np.sum(np.log(1 - action**2), axis=-1)
    density: Array = normal_log_density(mean, np.log(std), np.arctanh(action)) - slope
    return density


def action_values(weights: Weights, observation: Array, action: Array) -> Array:
    """The action value and, in its columns after the first, its slope in the action."""
    network = Dense(weights, "relu")
    value = network.forward(np.hstack([observation, action]))
    _, slope = network.backward(np.ones_like(value))
    return np.hstack([value, slope[:, observation.shape[1] :]])


def test_the_policys_gradient_is_the_papers() -> None:
    psi, data = make_state(make_sac()), make_minibatch()
    observation = np.asarray(data.observation)
    noise = np.random.default_rng(4).normal(size=(6, 2))
    alpha, weights = 0.7, arrays_of(psi.policy)
    critics = [arrays_of(psi.critics.first), arrays_of(psi.critics.second)]

    mean, std = mean_and_std(weights, observation)
    action = np.tanh(mean + noise * std)
    first, second = (action_values(critic, observation, action) for critic in critics)
    smaller = np.where(first[:, :1] <= second[:, :1], first, second)
    assert 0 < np.sum(first[:, 0] <= second[:, 0]) < 6  # both critics are the smaller one somewhere
    squash = 1 - action**2
    # alpha grad log pi at a fixed action, in mu and in log sigma.
    direct = np.hstack([alpha * noise / std, alpha * (noise**2 - 1)])
    # grad f (alpha grad_a log pi - grad_a q_min).
    in_action = alpha * (-noise / std / squash + 2 * action / squash) - smaller[:, 1:]
    through_f = np.hstack([squash, squash * noise * std]) * np.hstack([in_action, in_action])
    network = Dense(weights, "relu")
    network.forward(observation)
    expected, _ = network.backward((direct + through_f) / 6)

    gradient, log_probability = policy_gradient(psi.policy, psi.critics, alpha, data, jnp.asarray(noise))
    assert_trees_close(gradient, expected, atol=1e-10)
    np.testing.assert_allclose(log_probability, squashed_log_density(mean, std, action), atol=1e-10)

    def loss(weights: Weights) -> float:
        mean, std = mean_and_std(weights, observation)
        action = np.tanh(mean + noise * std)
        q = np.minimum(*(action_values(critic, observation, action)[:, 0] for critic in critics))
        return float(np.mean(alpha * squashed_log_density(mean, std, action) - q))

    assert_trees_close(gradient, slopes(loss, weights), atol=1e-6)


def test_sigma_outside_of_its_range_does_not_move() -> None:
    psi, data = make_state(make_sac()), make_minibatch()
    *hidden, last = psi.policy
    # log sigma of the first component far above its range, of the second far below.
    pinned = (*hidden, last._replace(weight=0 * last.weight, bias=jnp.array([0.1, 0.2, 50.0, -50.0])))
    noise = jnp.zeros((6, 2)).at[:, 1].set(1.0)
    gradient, log_probability = policy_gradient(pinned, psi.critics, 1.0, data, noise)
    np.testing.assert_array_equal(gradient[-1].bias[2:], 0)
    assert np.all(np.asarray(gradient[-1].bias[:2]) != 0)
    slope = np.log(1 - np.tanh([0.1, 0.2]) ** 2).sum()
    np.testing.assert_allclose(log_probability, -0.5 - np.log(2 * np.pi) - (2 - 20) - slope, atol=1e-7)


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_the_critics_gradients_are_the_papers(weight: float) -> None:
    agent, data = make_sac(critic_weight=weight), make_minibatch()
    critics = make_state(agent).critics
    backup = np.random.default_rng(5).normal(size=6)
    both = np.hstack([data.observation, data.action])
    expected: Weights = []
    for critic in critics:
        network = Dense(arrays_of(critic), "relu")
        q = network.forward(both)[:, 0]
        # The paper's (q - y) grad q; the released code has no 1/2 in its loss, thus twice that.
        in_critic, _ = network.backward((2 * weight * (q - backup) / 6)[:, None])
        expected += in_critic
    gradient = jax.jit(jax.grad(SACAgent.critics_loss, argnums=1))(agent, critics, data, jnp.asarray(backup))
    assert_trees_close(gradient, expected, atol=1e-12)

    def loss(weights: Weights) -> float:
        half = len(weights) // 2
        q = [Dense(each, "relu").forward(both)[:, 0] for each in (weights[:half], weights[half:])]
        return float(weight * sum(np.mean((each - backup) ** 2) for each in q))

    assert_trees_close(gradient, slopes(loss, arrays_of(critics)), atol=1e-7)


@pytest.mark.parametrize("time_limit", ["terminal", "bootstrap"])
@pytest.mark.parametrize("temperature", ["log_alpha", "alpha"])
def test_the_backup_is_the_papers(time_limit: Any, temperature: Any) -> None:  # noqa: ANN401
    agent, data = make_sac(time_limit=time_limit, temperature=temperature, discount=0.9), make_minibatch()
    psi, noise = make_state(agent), np.random.default_rng(6).normal(size=(6, 2))
    successor = np.asarray(data.next_observation)
    mean, std = mean_and_std(arrays_of(psi.policy), successor)
    action = np.tanh(mean + noise * std)
    q = [action_values(arrays_of(target), successor, action)[:, 0] for target in psi.targets]
    alpha = np.exp(0.3) if temperature == "log_alpha" else 0.3
    value = np.minimum(*q) - alpha * squashed_log_density(mean, std, action)
    terminal = np.array([0, 1, 0, time_limit == "terminal", 0, 0])
    found = jax.jit(SACAgent.backup)(agent, psi, data, jnp.asarray(noise))
    np.testing.assert_allclose(found, np.asarray(data.reward) + (1 - terminal) * 0.9 * value, atol=1e-10)


def test_the_temperatures_gradient_is_the_papers() -> None:
    agent, data = make_sac(target_entropy=0.7), make_minibatch()
    psi, noise = make_state(agent), np.random.default_rng(7).normal(size=(6, 2))
    mean, std = mean_and_std(arrays_of(psi.policy), np.asarray(data.observation))
    log_density = squashed_log_density(mean, std, np.tanh(mean + noise * std))
    after, _ = update(agent, psi, data, jnp.zeros((6, 2)), jnp.asarray(noise))
    # Adam's first mean is a tenth of the gradient.
    np.testing.assert_allclose(10 * after.temperature_optimizer.mean, np.mean(-log_density - 0.7), atol=1e-10)


def test_rows_without_weight_have_no_influence() -> None:
    agent = make_sac()
    psi, data, noise = make_state(agent), make_minibatch(), jnp.asarray(np.random.default_rng(8).normal(size=(6, 2)))
    weighted = data._replace(weight=jnp.array([1.0, 1, 0, 1, 0, 1]))
    real = np.array([0, 1, 3, 5])
    fewer = jax.tree.map(lambda part: part[real], data)
    found, told = update(agent, psi, weighted, noise, noise)
    expected, expected_told = update(agent, psi, fewer, noise[real], noise[real])
    assert_trees_close((found, told), arrays_of((expected, expected_told)), atol=1e-12)


def test_a_fresh_state_is_the_papers() -> None:
    for temperature, stored in (("log_alpha", 0.0), ("alpha", 1.0)):
        agent = make_sac(temperature=temperature)
        psi = agent.initialize(jax.random.key(0), 3, 2)
        assert psi.temperature == stored
        assert agent.alpha(psi.temperature) == 1
        assert_trees_close(psi.targets, arrays_of(psi.critics), atol=0)
        assert not np.array_equal(psi.critics.first[0].weight, psi.critics.second[0].weight)
        assert psi.acting is None


def test_draws_are_fresh_for_each_gradient_step_and_purpose() -> None:
    draws = make_sac(gradient_steps=3, minibatch=10).draw(jax.random.key(0), 4)
    assert draws.samples.shape == (3, 10)
    assert draws.noise.shape == draws.next_noise.shape == (3, 10, 4)
    numbers = np.concatenate([np.ravel(draws.noise), np.ravel(draws.next_noise)])
    assert len(np.unique(numbers)) == numbers.size
    assert len(np.unique(draws.samples)) == 30


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"minibatch": 0}, "minibatch is 0: it must be a whole number of at least 1."),
        ({"replay_capacity": 1e6}, "replay_capacity is 1000000.0: it must be a whole number of at least 1."),
        ({"learning_period": 0}, "learning_period is 0: it must be a whole number of at least 1."),
        ({"gradient_steps": "2"}, "gradient_steps is '2': it must be a whole number of at least 1."),
        ({"warmup_steps": -1}, "warmup_steps is -1: it must be a whole number of at least 0."),
        ({"discount": -0.1}, "discount is -0.1: it must lie between 0 and 1."),
        ({"target_smoothing": 1.5}, "target_smoothing is 1.5: it must lie between 0 and 1."),
        ({"learning_rate": -1e-3}, "learning_rate is -0.001: it must be above 0."),
        ({"critic_weight": 0}, "critic_weight is 0: it must be above 0."),
        ({"hidden": [256]}, "hidden is [256]: it must be a tuple of layer sizes, such as (64, 64)."),
        ({"time_limit": 1}, "time_limit is 1: it must be 'terminal' or 'bootstrap'."),
        ({"temperature": "beta"}, "temperature is 'beta': it must be 'log_alpha' or 'alpha'."),
        ({"acts": "never"}, "acts is 'never': it must be 'after_learning' or 'before_learning'."),
        ({"minibatch": 11}, "minibatch is 11: it must be at most the replay's capacity, 10."),
    ],
)
def test_wrong_values_are_refused_in_one_sentence(overrides: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        make_sac(**overrides)
    assert str(refusal.value) == sentence


def test_what_the_loop_asks() -> None:
    agent = SACAgent(learning_period=4)
    assert (agent.capacity, agent.period, agent.learns_from, agent.random_steps) == (1_000_000, 4, 256, 10_000)
