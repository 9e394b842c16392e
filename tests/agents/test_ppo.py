"""PPO against the paper's Algorithm 4 and its gradient equation: its parts, and a whole `learn` in plain NumPy."""

from dataclasses import replace
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import pytest

from cycletime.agents import Buffer, PPOAgent, Transition
from cycletime.agents.networks import GaussianPolicy, Parameters
from cycletime.agents.ppo import PPOState, Sample
from cycletime.errors import InputError
from tests.agents.conftest import (
    Array,
    Dense,
    KingmaBa,
    Weights,
    arrays_of,
    assert_trees_close,
    filled_buffer,
    lambda_returns,
    normal_log_density,
    random_transitions,
    randomized,
    rows_of,
    shapes_of,
    slopes,
    zeros,
)

pytestmark = pytest.mark.usefixtures("compiled_quickly", "float64")
learn, update, samples = jax.jit(PPOAgent.learn), jax.jit(PPOAgent.update), jax.jit(PPOAgent.samples)
policy_gradient = jax.jit(jax.grad(PPOAgent.policy_loss, argnums=1))


def make_ppo(**overrides: Any) -> PPOAgent:  # noqa: ANN401
    return PPOAgent(**{"batch": 7, "minibatch": 3, "epochs": 2, "hidden": (5, 4), **overrides})


def make_state() -> PPOState:
    """Weights large enough for the networks to bend, and two different sigmas."""
    shapes = shapes_of(make_ppo())
    return PPOState(randomized(shapes.parameters), zeros(shapes.optimizer))


def make_parameters() -> Parameters:
    return make_state().parameters


def samples_of(agent: PPOAgent, parameters: Parameters, buffer: Buffer) -> Sample:
    found: Sample = samples(agent, make_state()._replace(parameters=parameters), buffer)
    return found


# Gradients.


def values(parameters: Parameters, observation: Array) -> Array:
    return Dense(arrays_of(parameters.value), "tanh").forward(np.atleast_2d(observation))[..., 0]


def log_densities(weights: Weights, observation: Array, action: Array) -> Array:
    """The log-density of actions, under the policy's network followed by its log sigma."""
    return normal_log_density(Dense(weights[:-1], "tanh").forward(observation), weights[-1], action)


def samples_at(ratio: Array, advantage: Array, policy: GaussianPolicy) -> Sample:
    """Samples for which the ratio of probabilities is as given."""
    random = np.random.default_rng(3)
    observation, action = random.normal(size=(len(ratio), 3)), random.normal(size=(len(ratio), 2))
    old = log_densities(arrays_of(policy), observation, action) - np.log(ratio)
    target = random.normal(size=len(ratio))
    parts: list[Any] = [jnp.asarray(each) for each in (observation, action, advantage, target, old)]
    return Sample._make([*parts, None, None])


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


def test_the_policy_loss_is_averaged_over_the_samples() -> None:
    policy = make_parameters().policy
    ratio, advantage = (np.array(each) for each in zip(*SIDES, strict=True))
    expected = -np.mean(np.minimum(ratio * advantage, np.clip(ratio, 0.9, 1.1) * advantage))
    found = jax.jit(PPOAgent.policy_loss)(make_ppo(clip=0.1), policy, samples_at(ratio, advantage, policy))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_values_gradient_is_the_papers() -> None:
    parameters = make_parameters()
    minibatch = samples_at(np.ones(6), np.ones(6), parameters.policy)
    weights, observation = arrays_of(parameters.value), np.asarray(minibatch.observation)
    network, target = Dense(weights, "tanh"), np.asarray(minibatch.lambda_return)
    # The paper adds eta / m times the sum of 2 (G - v) grad v.
    error = target - network.forward(observation)[:, 0]
    expected, _ = network.backward((-2 * error / 6)[:, None])
    gradient = jax.jit(jax.grad(make_ppo().value_loss))(parameters.value, minibatch)
    assert_trees_close(gradient, expected, atol=1e-12)

    def loss(weights: Weights) -> float:
        return float(np.mean((target - Dense(weights, "tanh").forward(observation)[:, 0]) ** 2))

    assert_trees_close(gradient, slopes(loss, weights), atol=1e-7)


# Samples.


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
    # The first seven of ten, the last of which is the episode's end.
    data = random_transitions(10, terminated=[2, 9])
    last = jnp.asarray(data.next_observation[-1:])
    buffer = replace(filled_buffer(rows_of(data, 0, 7)), newest_successor=last)
    value, follows = values(parameters, np.asarray(data.observation[:7])), np.zeros(7)
    follows[6] = values(parameters, np.asarray(last))[0]
    returns = lambda_returns(np.asarray(data.reward[:7]), value, follows, [0, 0, 1, 0, 0, 0, 0], 0.9, 0.8)
    found = samples_of(agent, parameters, buffer)
    np.testing.assert_allclose(found.observation, data.observation[:7])
    np.testing.assert_allclose(found.lambda_return, returns, atol=1e-12)
    # A terminal last sample is followed by nothing, whatever came after it.
    ended = replace(filled_buffer(random_transitions(7, terminated=[6])), newest_successor=last)
    np.testing.assert_allclose(samples_of(agent, parameters, ended).lambda_return[-1], ended.rows[-1, 0, 5], atol=1e-12)


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


# Learning.


class Algorithm4:
    """The paper's Learn; one network for mu with log sigma behind it, one for the value."""

    def __init__(self, weights: Weights, rate: float, clip: float) -> None:
        middle = (len(weights) - 1) // 2
        self.mean, self.value = Dense(weights[:middle], "tanh"), Dense(weights[middle + 1 :], "tanh")
        self.log_std = weights[middle]
        # Two optimisers of the same rate, as the paper says; Adam works number by number.
        self.policy_adam = KingmaBa([*self.mean.weights, self.log_std], rate)
        self.value_adam = KingmaBa(self.value.weights, rate)
        self.clip = clip

    @property
    def weights(self) -> Weights:
        return [*self.mean.weights, self.log_std, *self.value.weights]

    def data(self, batch: Transition, ended: list[int], terminal: list[int], gamma: float, lam: float) -> None:
        """S, A, h~ and G^lambda, and the density under theta_old."""
        self.s, self.a = np.asarray(batch.observation), np.asarray(batch.action)
        value = self.value.forward(self.s)[:, 0]
        follows = self.value.forward(np.asarray(batch.next_observation))[:, 0] * (1 - np.array(terminal))
        self.g = lambda_returns(np.asarray(batch.reward), value, follows, ended, gamma, lam)
        h = self.g - value
        self.h = (h - h.mean()) / (np.sqrt(np.mean((h - h.mean()) ** 2)) + 1e-8)
        self.old = normal_log_density(self.mean.forward(self.s), self.log_std, self.a)

    def step(self, chosen: npt.NDArray[np.integer]) -> None:
        """One mini-batch."""
        s, a, h, g = self.s[chosen], self.a[chosen], self.h[chosen], self.g[chosen]
        m, std = len(chosen), np.exp(self.log_std)
        mean = self.mean.forward(s)
        rho = np.exp(normal_log_density(mean, self.log_std, a) - self.old[chosen])
        clipped = np.clip(rho, 1 - self.clip, 1 + self.clip)
        counts = (rho * h <= clipped * h) | (np.abs(rho - 1) <= self.clip)
        self.clipped_away = int(np.sum(~counts))
        factor = np.where(counts, -rho * h, 0)[:, None] / m
        in_mean, _ = self.mean.backward(factor * (a - mean) / std**2)
        in_log_std = np.sum(factor * ((a - mean) ** 2 / std**2 - 1), axis=0)
        error = g - self.value.forward(s)[:, 0]
        in_value, _ = self.value.backward((-2 * error / m)[:, None])
        *self.mean.weights, self.log_std = self.policy_adam.step(
            [*self.mean.weights, self.log_std], [*in_mean, in_log_std]
        )
        self.value.weights = self.value_adam.step(self.value.weights, in_value)


@pytest.mark.parametrize(
    ("overrides", "slices"),
    [
        ({}, [[0, 3], [3, 6], [6, 7]]),
        ({"slices": "even", "minibatch": 4, "time_limit": "bootstrap"}, [[0, 7]]),
    ],
    ids=["short last mini-batch", "even slices, the time limit bootstraps"],
)
def test_learn_is_algorithm_4(overrides: dict[str, Any], slices: list[list[int]]) -> None:
    agent = make_ppo(learning_rate=0.02, discount=0.9, trace_decay=0.8, clip=0.1, **overrides)
    psi = make_state()
    batch = random_transitions(7, terminated=[1], truncated=[4])
    draws = np.array([[2, 4, 0, 6, 5, 1, 3], [6, 0, 3, 5, 2, 4, 1]])
    terminal = [0, 1, 0, 0, int(agent.time_limit == "terminal"), 0, 0]

    paper = Algorithm4(arrays_of(psi.parameters), 0.02, 0.1)
    paper.data(batch, [0, 1, 0, 0, 1, 0, 0], terminal, 0.9, 0.8)
    clipped_away = 0
    for order in draws:
        for first, last in slices:
            paper.step(order[first:last])
            clipped_away += paper.clipped_away
    assert clipped_away > 0  # else the case distinction was not tried

    # The ring has gone round, so that the oldest transition is not in the first row.
    earlier = random_transitions(4, seed=9)
    buffer = filled_buffer(jax.tree.map(lambda *both: np.concatenate(both), earlier, batch), capacity=7)
    after, metrics = learn(agent, psi, buffer, draws)
    assert_trees_close(after.parameters, paper.weights)
    assert after.optimizer.taken == len(slices) * agent.epochs

    check_metrics(metrics, paper, psi)

    # Adam's memory lives on: learn again from there.
    again, _ = learn(agent, after, buffer, draws)
    paper.data(batch, [0, 1, 0, 0, 1, 0, 0], terminal, 0.9, 0.8)
    for order in draws:
        for first, last in slices:
            paper.step(order[first:last])
    assert_trees_close(again.parameters, paper.weights)


def check_metrics(metrics: dict[str, jax.Array], paper: Algorithm4, before: PPOState) -> None:
    """What learning tells about itself, on the whole batch after it."""
    mean, std = paper.mean.forward(paper.s), np.exp(paper.log_std)
    rho = np.exp(normal_log_density(mean, paper.log_std, paper.a) - paper.old)
    objective = np.minimum(rho * paper.h, np.clip(rho, 1 - paper.clip, 1 + paper.clip) * paper.h)
    old_network = Dense(arrays_of(before.parameters.policy.network), "tanh")
    old_mean, old_std = old_network.forward(paper.s), np.exp(np.asarray(before.parameters.policy.log_std))
    kl = np.log(std / old_std) + (old_std**2 + (old_mean - mean) ** 2) / (2 * std**2) - 0.5
    expected = {
        "policy_loss": -objective.mean(),
        "value_loss": np.mean((paper.g - paper.value.forward(paper.s)[:, 0]) ** 2),
        "entropy": np.sum(0.5 * np.log(2 * np.pi * np.e * std**2)),
        "kl": kl.sum(axis=1).mean(),
        "clip_fraction": np.mean(np.abs(rho - 1) > paper.clip),
    }
    assert metrics.keys() == expected.keys()
    for name, number in expected.items():
        np.testing.assert_allclose(metrics[name], number, atol=1e-9, err_msg=name)


# What it is asked and what it refuses.


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"batch": 0}, "batch is 0: it must be a whole number"),
        ({"minibatch": 2.5}, "minibatch is 2.5: it must be a whole number"),
        ({"epochs": True}, "epochs is True: it must be a whole number"),
        ({"learning_period": 0}, "learning_period is 0: it must be a whole number"),
        ({"discount": 1.01}, "discount is 1.01: .* between 0 and 1"),
        ({"trace_decay": float("nan")}, "trace_decay is nan: .* between 0 and 1"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0: .* above 0"),
        ({"clip": -0.2}, "clip is -0.2: .* above 0"),
        ({"noise_std": float("nan")}, "noise_std is nan: .* above 0"),
        ({"hidden": (64, 0)}, r"hidden is \(64, 0\): .* layer sizes"),
        ({"initial_weights": "zero"}, "initial_weights is 'zero': .* 'released' or 'pytorch' or 'orthogonal'"),
        ({"learn_when": "never"}, "learn_when is 'never': .* 'batch' or 'episode_end'"),
        ({"time_limit": "no"}, "time_limit is 'no': .* 'terminal' or 'bootstrap'"),
        ({"batch_end": "x", "learn_when": "episode_end"}, "batch_end is 'x': .* 'successor' or 'episode_end'"),
        ({"slices": "odd"}, "slices is 'odd': .* 'given' or 'even'"),
        ({"batch": 2**20 + 1}, "batch is 1048577: .* at most 1048576"),
        ({"batch": 4, "minibatch": 5}, "minibatch is 5: .* at most the batch, 4"),
        ({"learn_when": "episode_end", "learning_period": 3}, "learning_period is 3: .* leave it out or give 7"),
        ({"batch_end": "episode_end"}, "batch_end is 'episode_end': .* learn_when='episode_end'"),
    ],
)
def test_wrong_values_are_refused(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_ppo(**overrides)


def test_what_the_loop_asks() -> None:
    agent = PPOAgent(batch=100, learning_period=20)
    assert (agent.capacity, agent.period, agent.learns_from, agent.random_steps) == (100, 20, 100, 0)
    assert PPOAgent(batch=100).period == 100
