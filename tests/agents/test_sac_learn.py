"""Whole updates of SAC against Algorithm 5 in plain NumPy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents import PPOAgent, SACAgent, Transition
from cycletime.agents.networks import Network
from cycletime.agents.sac import SACState, StackedCritics, apart, stacked
from tests.agents.conftest import (
    Array,
    Dense,
    KingmaBa,
    Weights,
    arrays_of,
    assert_trees_close,
    filled_buffer,
    normal_log_density,
    random_transitions,
)

pytestmark = pytest.mark.usefixtures("compiled_quickly", "float64")
RATE, GAMMA, TAU = 0.01, 0.9, 0.1


class Algorithm5:
    """The paper's gradient step, with actions squashed by tanh and the choices of the released code."""

    def __init__(self, psi: SACState, *, log_alpha: bool, time_limit_ends: bool, critic_weight: float) -> None:
        self.policy = Dense(arrays_of(psi.policy), "relu")
        self.critics = [Dense(arrays_of(each), "relu") for each in psi.critics]
        self.targets = [arrays_of(each) for each in psi.targets]
        self.temperature = [np.array(float(psi.temperature))]
        self.policy_adam = KingmaBa(self.policy.weights, RATE)
        self.critic_adams = [KingmaBa(each.weights, RATE) for each in self.critics]
        self.temperature_adam = KingmaBa(self.temperature, RATE)
        self.log_alpha, self.time_limit_ends, self.critic_weight = log_alpha, time_limit_ends, critic_weight

    def sample(self, weights: Weights, state: Array, noise: Array) -> tuple[Array, Array, Array]:
        """The action, its log-density, and sigma."""
        mean, log_std = np.split(Dense(weights, "relu").forward(state), 2, axis=-1)
        assert np.all((log_std > -20) & (log_std < 2))  # the clipping is tested elsewhere
        action = np.tanh(mean + noise * np.exp(log_std))
        log_density = normal_log_density(mean, log_std, np.arctanh(action)) - np.log(1 - action**2).sum(axis=-1)
        return action, log_density, np.exp(log_std)

    def step(self, data: Transition, next_noise: Array, noise: Array) -> dict[str, float]:
        s, a, reward, successor, terminated, truncated = (np.asarray(each) for each in data[:6])
        m = len(reward)
        alpha = float(np.exp(self.temperature[0]) if self.log_alpha else self.temperature[0])
        ended = np.maximum(terminated, truncated) if self.time_limit_ends else terminated

        action, log_density, _ = self.sample(self.policy.weights, successor, next_noise)
        q = [Dense(each, "relu").forward(np.hstack([successor, action]))[:, 0] for each in self.targets]
        y = reward + (1 - ended) * GAMMA * (np.minimum(*q) - alpha * log_density)
        critics_loss = 0.0
        for critic, adam in zip(self.critics, self.critic_adams, strict=True):
            error = critic.forward(np.hstack([s, a]))[:, 0] - y
            critics_loss += self.critic_weight * float(np.mean(error**2))
            gradient, _ = critic.backward((2 * self.critic_weight * error / m)[:, None])
            critic.weights = adam.step(critic.weights, gradient)

        # The policy's equation, with the critics as they are now.
        action, log_density, std = self.sample(self.policy.weights, s, noise)
        values = [critic.forward(np.hstack([s, action])) for critic in self.critics]
        in_actions = [critic.backward(np.ones((m, 1)))[1][:, s.shape[1] :] for critic in self.critics]
        in_action = np.where(values[0] <= values[1], *in_actions)
        squash = 1 - action**2
        bracket = alpha * (2 * action - noise / std) / squash - in_action
        in_mean = alpha * noise / std + squash * bracket
        in_log_std = alpha * (noise**2 - 1) + squash * noise * std * bracket
        self.policy.forward(s)
        gradient, _ = self.policy.backward(np.hstack([in_mean, in_log_std]) / m)
        policy_loss = float(np.mean(alpha * log_density - np.minimum(*values)[:, 0]))
        self.policy.weights = self.policy_adam.step(self.policy.weights, gradient)

        # H-bar = -|A|.
        in_temperature = np.array(np.mean(-log_density + a.shape[1]))
        self.temperature = self.temperature_adam.step(self.temperature, [in_temperature])
        self.targets = [
            [TAU * w + (1 - TAU) * old for w, old in zip(critic.weights, target, strict=True)]
            for critic, target in zip(self.critics, self.targets, strict=True)
        ]
        return {
            "critics_loss": critics_loss,
            "policy_loss": policy_loss,
            "entropy": float(-log_density.mean()),
            "alpha": alpha,
            "action_value": float(y.mean()),
        }

    def check(self, psi: SACState) -> None:
        assert_trees_close(psi.critics, [each for critic in self.critics for each in critic.weights])
        assert_trees_close(psi.policy, self.policy.weights)
        assert_trees_close(psi.targets, [each for target in self.targets for each in target])
        assert_trees_close(psi.temperature, self.temperature)


def start(agent: SACAgent) -> SACState:
    psi, random = agent.initialize(jax.random.key(2), 3, 2), np.random.default_rng(2)
    moved: SACState = psi._replace(
        **{
            name: jax.tree.map(lambda leaf: jnp.asarray(0.4 * random.normal(size=leaf.shape)), getattr(psi, name))
            for name in ("policy", "critics", "targets")
        },
        temperature=jnp.asarray(0.2),
    )
    return moved if psi.acting is None else moved._replace(acting=moved.policy)


def check_metrics(told: dict[str, jax.Array], expected: dict[str, float]) -> None:
    assert told.keys() == expected.keys()
    for name, number in expected.items():
        np.testing.assert_allclose(told[name], number, atol=1e-9, err_msg=name)


OTHERS = {"temperature": "alpha", "time_limit": "terminal", "critic_weight": 1.0, "acts": "before_learning"}


@pytest.mark.parametrize(("choices", "gradient_steps"), [({}, 2), (OTHERS, 1)], ids=["defaults", "the other choices"])
def test_learn_is_algorithm_5(choices: dict[str, Any], gradient_steps: int) -> None:
    agent = SACAgent(
        minibatch=6,
        replay_capacity=9,
        gradient_steps=gradient_steps,
        hidden=(7, 5),
        learning_rate=RATE,
        discount=GAMMA,
        target_smoothing=TAU,
        **choices,
    )
    psi = start(agent)
    # Seven transitions in a buffer for nine: two rows are never drawn.
    data = random_transitions(7, terminated=[1], truncated=[3])
    buffer = filled_buffer(data, capacity=9)
    paper = Algorithm5(
        psi,
        log_alpha=agent.temperature == "log_alpha",
        time_limit_ends=agent.time_limit == "terminal",
        critic_weight=agent.critic_weight,
    )
    learn = jax.jit(SACAgent.learn)
    for seed in range(2):  # twice, since Adam's memory and the targets live on
        draws = agent.draw(jax.random.key(seed), 2)
        before = psi.policy
        psi, told = learn(agent, psi, buffer, draws)
        each = []
        for bits, next_noise, noise in zip(*(np.asarray(part) for part in draws), strict=True):
            minibatch: Transition = jax.tree.map(lambda part, bits=bits: part[bits % 7], data)
            each.append(paper.step(minibatch, next_noise, noise))
        paper.check(psi)
        check_metrics(told, {name: float(np.mean([one[name] for one in each])) for name in each[0]})
        assert np.abs(np.asarray(psi.policy[0].weight) - np.asarray(before[0].weight)).max() > RATE / 2
        check_action(agent, psi, before if agent.acts == "before_learning" else psi.policy)


def test_stacked_critics_learn_the_same() -> None:
    agent = SACAgent(minibatch=6, replay_capacity=9, hidden=(7, 5), learning_rate=RATE)
    psi, buffer = start(agent), filled_buffer(random_transitions(7, terminated=[1]), capacity=9)
    draws = agent.draw(jax.random.key(0), 2)
    expected, told = jax.jit(SACAgent.learn)(agent, psi, buffer, draws)
    found, same = jax.jit(SACAgent.learn)(agent, stacked(psi), buffer, draws)
    assert isinstance(found.critics, StackedCritics)
    assert isinstance(found.critics_optimizer.mean, StackedCritics)
    assert_trees_close(apart(found), jax.tree.leaves(expected))
    check_metrics(same, {name: float(number) for name, number in told.items()})


def test_stacking_can_be_undone_and_leaves_other_agents_alone() -> None:
    psi = start(SACAgent(hidden=(7, 5)))
    back = apart(stacked(psi))
    assert str(jax.tree.structure(back)) == str(jax.tree.structure(psi))
    assert all(jax.tree.leaves(jax.tree.map(np.array_equal, back, psi)))
    other = PPOAgent(hidden=(4,)).initialize(jax.random.key(0), 3, 2)
    assert str(jax.tree.structure(stacked(other))) == str(jax.tree.structure(other))


def check_action(agent: SACAgent, psi: SACState, policy: Network) -> None:
    """Hold the action against the policy that should give it."""
    observation, noise = np.array([0.3, -1.0, 0.5]), np.array([0.4, -0.7])
    mean, log_std = np.split(Dense(arrays_of(policy), "relu").forward(observation[None])[0], 2)
    found = agent.act(psi, jnp.asarray(observation), jnp.asarray(noise))
    np.testing.assert_allclose(found, np.tanh(mean + np.exp(log_std) * noise), atol=1e-12)
