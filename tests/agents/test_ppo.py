"""PPO's parts against the paper's Algorithm 4 and its gradient equation."""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents import Buffer, PPOAgent, Transition
from cycletime.agents.policy_and_value import Parameters, Policy
from cycletime.agents.ppo import Sample, value_loss
from cycletime.errors import InputError
from tests.agents.conftest import (
    Array,
    Dense,
    Weights,
    arrays_of,
    assert_trees_close,
    filled_buffer,
    lambda_returns,
    normal_log_density,
    random_transitions,
    row_of,
    slopes,
)

pytestmark = pytest.mark.usefixtures("compiled_quickly", "float64")
HIDDEN = (5, 4)
samples_of = jax.jit(PPOAgent.samples)
policy_gradient = jax.jit(jax.grad(PPOAgent.policy_loss, argnums=1))


def make_ppo(**overrides: Any) -> PPOAgent:  # noqa: ANN401
    return PPOAgent(**{"batch": 7, "minibatch": 3, "epochs": 2, "hidden": HIDDEN, **overrides})


def make_parameters(seed: int = 0) -> Parameters:
    """Weights large enough for the networks to bend, and two different sigmas."""
    fresh = make_ppo().initialize(jax.random.key(seed), 3, 2).parameters
    random = np.random.default_rng(seed)
    moved: Parameters = jax.tree.map(lambda leaf: jnp.asarray(random.normal(size=leaf.shape) * 0.5), fresh)
    return moved


def values(parameters: Parameters, observation: Array) -> Array:
    return Dense(arrays_of(parameters.value), "tanh").forward(np.atleast_2d(observation))[..., 0]


def log_densities(weights: Weights, observation: Array, action: Array) -> Array:
    """The log-density of actions, under the policy's network followed by its log sigma."""
    return normal_log_density(Dense(weights[:-1], "tanh").forward(observation), weights[-1], action)


def samples_at(ratio: Array, advantage: Array, policy: Policy) -> Sample:
    """Samples for which the ratio of probabilities is as given."""
    random = np.random.default_rng(3)
    observation, action = random.normal(size=(len(ratio), 3)), random.normal(size=(len(ratio), 2))
    old = log_densities(arrays_of(policy), observation, action) - np.log(ratio)
    target = random.normal(size=len(ratio))
    parts: list[Any] = [jnp.asarray(each) for each in (observation, action, advantage, target, old)]
    return Sample._make([*parts, None])


SIDES = [(ratio, advantage) for ratio in (0.3, 0.79, 0.81, 1.0, 1.19, 1.21, 3.0) for advantage in (1.7, -0.6)]


@pytest.mark.parametrize(("ratio", "advantage"), SIDES)
def test_a_samples_policy_gradient_is_the_papers(ratio: float, advantage: float) -> None:
    policy = make_parameters().policy
    sample = samples_at(np.array([ratio]), np.array([advantage]), policy)
    weights = arrays_of(policy)
    network, std = Dense(weights[:-1], "tanh"), np.exp(weights[-1])
    away = np.asarray(sample.action) - network.forward(np.asarray(sample.observation))
    density = float(np.exp(log_densities(weights, np.asarray(sample.observation), np.asarray(sample.action)))[0])
    old_density = density / ratio

    clipped = min(max(ratio, 1 - 0.2), 1 + 0.2)
    counts = ratio * advantage <= clipped * advantage or 1 - 0.2 <= ratio <= 1 + 0.2
    # grad pi = pi grad log pi, with d log pi / d mu = (a - mu) / sigma^2 and d log pi / d log sigma as below.
    factor = -advantage / old_density * density if counts else 0.0
    in_network, _ = network.backward(factor * away / std**2)
    in_log_std = factor * (away[0] ** 2 / std**2 - 1)
    gradient = policy_gradient(make_ppo(clip=0.2), policy, sample)
    assert_trees_close(gradient, [*in_network, in_log_std], atol=1e-12)

    def loss(weights: Weights) -> float:
        new = np.exp(log_densities(weights, np.asarray(sample.observation), np.asarray(sample.action)))[0]
        rho = float(new / old_density)
        return -min(rho * advantage, min(max(rho, 0.8), 1.2) * advantage)

    assert_trees_close(gradient, slopes(loss, weights), atol=1e-7)


def test_which_sides_of_the_clip_range_still_count() -> None:
    counting = []
    policy = make_parameters().policy
    for ratio, advantage in SIDES:
        sample = samples_at(np.array([ratio]), np.array([advantage]), policy)
        gradient = policy_gradient(make_ppo(), policy, sample)
        counting.append(any(np.any(np.asarray(leaf) != 0) for leaf in jax.tree.leaves(gradient)))
    below, inside, above = [True, False] * 2, [True, True] * 3, [False, True] * 2
    assert counting == below + inside + above


def test_the_policy_loss_is_averaged_over_the_samples() -> None:
    policy = make_parameters().policy
    ratio, advantage = (np.array(each) for each in zip(*SIDES, strict=True))
    expected = -np.mean(np.minimum(ratio * advantage, np.clip(ratio, 0.9, 1.1) * advantage))
    found = make_ppo(clip=0.1).policy_loss(policy, samples_at(ratio, advantage, policy))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_values_gradient_is_the_papers() -> None:
    parameters = make_parameters()
    minibatch = samples_at(np.ones(6), np.ones(6), parameters.policy)
    weights, observation = arrays_of(parameters.value), np.asarray(minibatch.observation)
    network, target = Dense(weights, "tanh"), np.asarray(minibatch.lambda_return)
    # The paper adds eta / m times the sum of 2 (G - v) grad v.
    error = target - network.forward(observation)[:, 0]
    expected, _ = network.backward((-2 * error / 6)[:, None])
    gradient = jax.jit(jax.grad(value_loss))(parameters.value, minibatch)
    assert_trees_close(gradient, expected, atol=1e-12)

    def loss(weights: Weights) -> float:
        return float(np.mean((target - Dense(weights, "tanh").forward(observation)[:, 0]) ** 2))

    assert_trees_close(gradient, slopes(loss, weights), atol=1e-7)


@pytest.mark.parametrize("time_limit", ["terminal", "bootstrap"])
def test_samples_hold_lambda_returns_and_advantages_of_the_whole_batch(
    time_limit: Literal["terminal", "bootstrap"],
) -> None:
    parameters = make_parameters()
    data = random_transitions(7, terminated=[1], truncated=[3])
    agent = make_ppo(time_limit=time_limit, discount=0.9, trace_decay=0.8)
    found = samples_of(agent, parameters, filled_buffer(data))

    value, follows = (
        values(parameters, np.asarray(data.observation)),
        values(parameters, np.asarray(data.next_observation)),
    )
    follows[1] = 0
    if time_limit == "terminal":
        follows[3] = 0
    returns = lambda_returns(np.asarray(data.reward), value, follows, [0, 1, 0, 1, 0, 0, 0], 0.9, 0.8)
    advantage = returns - value
    np.testing.assert_allclose(found.lambda_return, returns, atol=1e-12)
    np.testing.assert_allclose(found.advantage, (advantage - advantage.mean()) / advantage.std(ddof=0), atol=1e-6)
    np.testing.assert_allclose(found.observation, data.observation)
    np.testing.assert_allclose(found.action, data.action)
    old = log_densities(arrays_of(parameters.policy), np.asarray(data.observation), np.asarray(data.action))
    np.testing.assert_allclose(found.old_log_probability, old, atol=1e-12)


def test_a_batch_cut_inside_an_episode_may_end_in_the_episodes_last_observation() -> None:
    parameters = make_parameters()
    agent = make_ppo(learn_when="episode_end", batch_end="episode_end", discount=0.9, trace_decay=0.8)
    data = random_transitions(10, terminated=[2, 9])
    buffer = Buffer.empty(7, 3, 2)
    for row in range(10):
        buffer = buffer.store_first(row_of(data, row))
    value = values(parameters, np.asarray(data.observation[:7]))
    follows = np.zeros(7)
    follows[6] = values(parameters, np.asarray(data.next_observation[9]))[0]
    returns = lambda_returns(np.asarray(data.reward[:7]), value, follows, [0, 0, 1, 0, 0, 0, 0], 0.9, 0.8)
    found = samples_of(agent, parameters, buffer)
    np.testing.assert_allclose(found.observation, data.observation[:7])
    np.testing.assert_allclose(found.lambda_return, returns, atol=1e-12)


def test_a_terminal_last_sample_ends_in_zero_with_either_batch_end() -> None:
    parameters, data = make_parameters(), random_transitions(7, terminated=[6])
    buffer = filled_buffer(data)
    returns = [
        np.asarray(samples_of(make_ppo(learn_when="episode_end", batch_end=end), parameters, buffer).lambda_return)
        for end in ("successor", "episode_end")
    ]
    np.testing.assert_array_equal(returns[0], returns[1])
    np.testing.assert_allclose(returns[0][-1], data.reward[-1], atol=1e-12)


def test_copies_have_the_lambda_returns_that_each_has_alone() -> None:
    parameters, agent = make_parameters(), make_ppo()
    columns = [random_transitions(7, terminated=[2], seed=1), random_transitions(7, truncated=[5], seed=2)]
    both = samples_of(agent, parameters, filled_buffer(*columns))
    alone = [samples_of(agent, parameters, filled_buffer(column)) for column in columns]
    assert both.observation.shape == (14, 3)
    for copy in range(2):
        np.testing.assert_allclose(both.lambda_return[copy::2], alone[copy].lambda_return, atol=1e-12)
        np.testing.assert_array_equal(both.observation[copy::2], alone[copy].observation)
    raw = np.asarray(both.lambda_return) - values(parameters, np.asarray(both.observation))
    np.testing.assert_allclose(both.advantage, (raw - raw.mean()) / raw.std(), atol=1e-6)


def with_gap(data: Transition, place: int) -> Transition:
    """The transitions with a row in between that only reset its environment, with numbers unlike the others."""
    weight: Any = np.ones(len(data.reward))
    wide = jax.tree.map(lambda part: np.insert(part, place, 3.0, axis=0), data._replace(weight=weight))
    zeros = {name: getattr(wide, name) * (np.arange(len(weight) + 1) != place) for name in ("terminated", "truncated")}
    gapped: Transition = wide._replace(weight=np.insert(weight, place, 0.0), **zeros)
    return gapped


def test_a_row_without_weight_has_no_influence() -> None:
    data = random_transitions(7, terminated=[3])
    psi = make_ppo().initialize(jax.random.key(0), 3, 2)._replace(parameters=make_parameters())
    without, gapped = filled_buffer(data), filled_buffer(with_gap(data, 4))
    plain, wide = make_ppo(minibatch=7), make_ppo(batch=8, minibatch=8)
    expected, found = samples_of(plain, psi.parameters, without), samples_of(wide, psi.parameters, gapped)
    real = np.arange(8) != 4
    np.testing.assert_allclose(found.advantage[real], expected.advantage, atol=1e-12)
    np.testing.assert_allclose(found.lambda_return[real], expected.lambda_return, atol=1e-12)
    update = jax.jit(PPOAgent.update)
    assert_trees_close(update(wide, psi, found).parameters, arrays_of(update(plain, psi, expected).parameters), 1e-12)


@pytest.mark.parametrize(
    ("batch", "minibatch", "slices", "expected"),
    [
        (7, 3, "given", (2, 3, 1)),
        (2000, 50, "given", (40, 50, 0)),
        (500, 200, "given", (2, 200, 100)),
        (500, 200, "even", (2, 250, 0)),
        (1000, 12, "even", (83, 12, 4)),
        (5, 5, "even", (1, 5, 0)),
        (5, 3, "even", (1, 5, 0)),
    ],
)
def test_slices_of_an_epoch(batch: int, minibatch: int, slices: Any, expected: tuple[int, int, int]) -> None:  # noqa: ANN401
    assert PPOAgent(batch=batch, minibatch=minibatch, slices=slices).slice_sizes == expected


def test_draws_are_one_order_of_the_batch_for_each_epoch() -> None:
    draws = make_ppo(batch=40, epochs=3).draw(jax.random.key(5), 2)
    assert draws.shape == (3, 40)
    for order in np.asarray(draws):
        assert sorted(order) == list(range(40))
    assert not np.array_equal(draws[0], draws[1])


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"batch": 0}, "batch is 0: it must be a whole number of at least 1."),
        ({"minibatch": 2.5}, "minibatch is 2.5: it must be a whole number of at least 1."),
        ({"epochs": True}, "epochs is True: it must be a whole number of at least 1."),
        ({"learning_period": -3}, "learning_period is -3: it must be a whole number of at least 1."),
        ({"learning_period": 0}, "learning_period is 0: it must be a whole number of at least 1."),
        ({"discount": 1.01}, "discount is 1.01: it must lie between 0 and 1."),
        ({"trace_decay": float("nan")}, "trace_decay is nan: it must lie between 0 and 1."),
        ({"learning_rate": 0.0}, "learning_rate is 0.0: it must be above 0."),
        ({"clip": -0.2}, "clip is -0.2: it must be above 0."),
        ({"noise_std": float("nan")}, "noise_std is nan: it must be above 0."),
        ({"hidden": (64, 0)}, "hidden is (64, 0): it must be a tuple of layer sizes, such as (64, 64)."),
        ({"learn_when": "never"}, "learn_when is 'never': it must be 'batch' or 'episode_end'."),
        ({"time_limit": "no"}, "time_limit is 'no': it must be 'terminal' or 'bootstrap'."),
        (
            {"batch_end": "x", "learn_when": "episode_end"},
            "batch_end is 'x': it must be 'successor' or 'episode_end'.",
        ),
        ({"slices": "odd"}, "slices is 'odd': it must be 'given' or 'even'."),
        ({"batch": 2**20 + 1}, "batch is 1048577: it must be at most 1048576, to be shuffled well."),
        ({"batch": 4, "minibatch": 5}, "minibatch is 5: it must be at most the batch, 4."),
        (
            {"learn_when": "episode_end", "learning_period": 3},
            "learning_period is 3: with learn_when='episode_end' the batch alone decides, so leave it out or give 7.",
        ),
        ({"batch_end": "episode_end"}, "batch_end is 'episode_end': that needs learn_when='episode_end' as well."),
    ],
)
def test_wrong_values_are_refused_in_one_sentence(overrides: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        make_ppo(**overrides)
    assert str(refusal.value) == sentence


def test_what_the_loop_asks() -> None:
    agent = PPOAgent(batch=100, learning_period=20)
    assert (agent.capacity, agent.period, agent.learns_from, agent.random_steps) == (100, 20, 100, 0)
    assert PPOAgent(batch=100).period == 100
