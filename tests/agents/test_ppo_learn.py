"""A whole `learn` of PPO against Algorithm 4 in plain NumPy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import pytest

from cycletime.agents import PPOAgent, Transition
from cycletime.agents.ppo import PPOState
from tests.agents.conftest import (
    Dense,
    KingmaBa,
    Weights,
    arrays_of,
    assert_trees_close,
    filled_buffer,
    lambda_returns,
    normal_log_density,
    random_transitions,
    stored,
)

pytestmark = pytest.mark.usefixtures("compiled_quickly", "float64")
learn = jax.jit(PPOAgent.learn)


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


def start(agent: PPOAgent, observation_size: int, action_size: int) -> PPOState:
    psi = agent.initialize(jax.random.key(1), observation_size, action_size)
    random = np.random.default_rng(1)
    # From other weights than the initial ones, whose last layers are next to zero.
    return psi._replace(
        parameters=jax.tree.map(lambda leaf: jnp.asarray(0.6 * random.normal(size=leaf.shape)), psi.parameters)
    )


@pytest.mark.parametrize(
    ("overrides", "slices"),
    [
        ({}, [[0, 3], [3, 6], [6, 7]]),
        ({"slices": "even", "minibatch": 4, "time_limit": "bootstrap"}, [[0, 7]]),
    ],
    ids=["short last mini-batch", "even slices, the time limit bootstraps"],
)
def test_learn_is_algorithm_4(overrides: dict[str, Any], slices: list[list[int]]) -> None:
    options: dict[str, Any] = {"batch": 7, "minibatch": 3, "epochs": 2, "learning_rate": 0.02, "hidden": (5, 4)}
    agent = PPOAgent(**{**options, **overrides}, discount=0.9, trace_decay=0.8, clip=0.1)
    psi = start(agent, 3, 2)
    batch = random_transitions(7, terminated=[1], truncated=[4])
    draws = agent.draw(jax.random.key(3), 2)
    terminal = [0, 1, 0, 0, int(agent.time_limit == "terminal"), 0, 0]

    paper = Algorithm4(arrays_of(psi.parameters), 0.02, 0.1)
    paper.data(batch, [0, 1, 0, 0, 1, 0, 0], terminal, 0.9, 0.8)
    clipped_away = 0
    for order in np.asarray(draws):
        for first, last in slices:
            paper.step(order[first:last])
            clipped_away += paper.clipped_away
    assert clipped_away > 0  # else the case distinction was not tried

    # The ring has gone round, so that the oldest transition is not in the first row.
    buffer = filled_buffer(random_transitions(4, seed=9), capacity=7)
    buffer = stored(buffer, batch)
    after, metrics = learn(agent, psi, buffer, draws)
    assert_trees_close(after.parameters, paper.weights)
    assert after.optimizer.taken == len(slices) * agent.epochs

    check_metrics(metrics, paper, psi)

    # Adam's memory lives on: learn again from there.
    again, _ = learn(agent, after, buffer, draws)
    paper.data(batch, [0, 1, 0, 0, 1, 0, 0], terminal, 0.9, 0.8)
    for order in np.asarray(draws):
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


def test_learn_from_copies_is_learn_from_their_rows_together() -> None:
    agent = PPOAgent(batch=4, minibatch=4, epochs=1, hidden=(5, 4), discount=0.9, trace_decay=0.8, learning_rate=0.02)
    psi = start(agent, 3, 2)
    columns = [random_transitions(4, terminated=[1], seed=1), random_transitions(4, terminated=[3], seed=2)]
    paper = Algorithm4(arrays_of(psi.parameters), 0.02, 0.2)
    paper.data(columns[0], [0, 1, 0, 0], [0, 1, 0, 0], 0.9, 0.8)
    first = paper.s, paper.a, paper.g
    paper.data(columns[1], [0, 0, 0, 1], [0, 0, 0, 1], 0.9, 0.8)
    paper.s, paper.a, paper.g = (np.concatenate(both) for both in zip(first, (paper.s, paper.a, paper.g), strict=True))
    h = paper.g - paper.value.forward(paper.s)[:, 0]
    paper.h = (h - h.mean()) / (h.std() + 1e-8)
    paper.old = normal_log_density(paper.mean.forward(paper.s), paper.log_std, paper.a)
    paper.step(np.arange(8))
    # A batch of 4 rows of 2 copies is 8 samples; one mini-batch of all of them has no order.
    data = jax.jit(PPOAgent.samples)(agent, psi.parameters, filled_buffer(*columns))
    assert_trees_close(jax.jit(PPOAgent.update)(agent, psi, data).parameters, paper.weights)
