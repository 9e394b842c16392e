"""SAC against the paper's Algorithm 5 and its three equations: gradients, and whole updates in plain NumPy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents import PPOAgent, SACAgent, Transition
from cycletime.agents.networks import Network
from cycletime.agents.sac import SACDraws, SACState, StackedCritics, policy_loss_of, stack_critics, unstack_critics
from cycletime.errors import InputError
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
    randomized,
    shapes_of,
    slopes,
    zeros,
)

pytestmark = pytest.mark.usefixtures("compiled_quickly", "float64")
policy_gradient = jax.jit(jax.grad(policy_loss_of, has_aux=True))
update, learn, act = jax.jit(SACAgent.update), jax.jit(SACAgent.learn), jax.jit(SACAgent.act)
RATE, GAMMA, TAU = 0.01, 0.9, 0.1


def make_sac(**overrides: Any) -> SACAgent:  # noqa: ANN401
    options: dict[str, Any] = {"minibatch": 6, "replay_capacity": 10, "hidden": (7, 5), "warmup_steps": 0}
    return SACAgent(**{**options, **overrides})


def make_state(agent: SACAgent, seed: int = 0) -> SACState:
    """Critics that disagree, targets unlike the critics, and an alpha that is not 1."""
    shapes = shapes_of(agent)
    parts = {name: getattr(shapes, name) for name in ("policy", "critics", "targets")}
    moved: SACState = zeros(shapes)._replace(**randomized(parts, 0.4, seed), temperature=jnp.asarray(0.3))
    return moved if shapes.acting is None else moved._replace(acting=moved.policy)


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
    psi, data = make_state(make_sac(), seed=2), make_minibatch()
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


class Algorithm5:
    """The paper's gradient step, with actions squashed by tanh and the choices of the released code."""

    def __init__(self, psi: SACState, agent: SACAgent) -> None:
        self.policy = Dense(arrays_of(psi.policy), "relu")
        self.critics = [Dense(arrays_of(each), "relu") for each in psi.critics]
        self.targets = [arrays_of(each) for each in psi.targets]
        self.temperature = [np.array(float(psi.temperature))]
        self.policy_adam = KingmaBa(self.policy.weights, RATE)
        self.critic_adams = [KingmaBa(each.weights, RATE) for each in self.critics]
        self.temperature_adam = KingmaBa(self.temperature, RATE)
        self.log_alpha, self.time_limit_ends = agent.temperature == "log_alpha", agent.time_limit == "terminal"
        self.critic_weight = agent.critic_weight
        self.target_entropy = -2.0 if agent.target_entropy is None else agent.target_entropy  # by default -|A|

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

        in_temperature = np.array(np.mean(-log_density - self.target_entropy))
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


def check_metrics(metrics: dict[str, jax.Array], expected: dict[str, float]) -> None:
    assert metrics.keys() == expected.keys()
    for name, number in expected.items():
        np.testing.assert_allclose(metrics[name], number, atol=1e-9, err_msg=name)


def some_draws(agent: SACAgent, seed: int = 0) -> SACDraws:
    random, shape = np.random.default_rng(seed), (agent.gradient_steps, agent.minibatch)
    samples = jnp.asarray(random.integers(2**32, size=shape, dtype=np.uint32))
    return SACDraws(samples, *(jnp.asarray(random.normal(size=(*shape, 2))) for _ in range(2)))


OTHERS = {
    "temperature": "alpha",
    "time_limit": "terminal",
    "critic_weight": 1.0,
    "acts": "before_learning",
    "target_entropy": 0.7,
}


@pytest.mark.parametrize(("choices", "gradient_steps"), [({}, 2), (OTHERS, 1)], ids=["defaults", "the other choices"])
def test_learn_is_algorithm_5(choices: dict[str, Any], gradient_steps: int) -> None:
    agent = make_sac(gradient_steps=gradient_steps, learning_rate=RATE, discount=GAMMA, target_smoothing=TAU, **choices)
    psi = make_state(agent, seed=2)
    # Seven transitions in a buffer for nine: two rows are never drawn.
    data = random_transitions(7, terminated=[1], truncated=[3])
    buffer = filled_buffer(data, capacity=9)
    paper = Algorithm5(psi, agent)
    for seed in range(2):  # twice, since Adam's memory and the targets live on
        draws = some_draws(agent, seed)
        before = psi.policy
        psi, metrics = learn(agent, psi, buffer, draws)
        each = []
        for bits, next_noise, noise in zip(*(np.asarray(part) for part in draws), strict=True):
            minibatch: Transition = jax.tree.map(lambda part, bits=bits: part[bits % 7], data)
            each.append(paper.step(minibatch, next_noise, noise))
        paper.check(psi)
        check_metrics(metrics, {name: float(np.mean([one[name] for one in each])) for name in each[0]})
        assert np.abs(np.asarray(psi.policy[0].weight) - np.asarray(before[0].weight)).max() > RATE / 2
        check_action(agent, psi, before if agent.acts == "before_learning" else psi.policy)


def test_stacked_critics_learn_the_same_and_leave_no_trace() -> None:
    agent = make_sac(learning_rate=RATE)
    psi, buffer = make_state(agent), filled_buffer(random_transitions(7, terminated=[1]), capacity=9)
    stack, unstack = jax.jit(stack_critics), jax.jit(unstack_critics)
    stacked = stack(psi)
    expected, metrics = learn(agent, psi, buffer, some_draws(agent))
    found, same = learn(agent, stacked, buffer, some_draws(agent))
    assert isinstance(found.critics, StackedCritics)
    assert isinstance(found.critics_optimizer.mean, StackedCritics)
    assert_trees_close(unstack(found), jax.tree.leaves(expected))
    check_metrics(same, {name: float(number) for name, number in metrics.items()})
    back = unstack(stacked)
    assert str(jax.tree.structure(back)) == str(jax.tree.structure(psi))
    assert all(jax.tree.leaves(jax.tree.map(np.array_equal, back, psi)))
    other = shapes_of(PPOAgent(hidden=(4,)))
    assert str(jax.tree.structure(stack_critics(other))) == str(jax.tree.structure(other))


def check_action(agent: SACAgent, psi: SACState, policy: Network) -> None:
    """Hold the action against the policy that should give it."""
    observation, noise = np.array([0.3, -1.0, 0.5]), np.array([0.4, -0.7])
    mean, log_std = np.split(Dense(arrays_of(policy), "relu").forward(observation[None])[0], 2)
    found = act(agent, psi, observation, noise)
    np.testing.assert_allclose(found, np.tanh(mean + np.exp(log_std) * noise), atol=1e-12)


@pytest.mark.parametrize(("temperature", "stored"), [("log_alpha", 0.0), ("alpha", 1.0)])
def test_a_fresh_state_is_the_papers(temperature: str, stored: float) -> None:
    agent = make_sac(temperature=temperature, hidden=(4,))
    psi = jax.jit(lambda key: agent.initialize(key, 3, 2))(jax.random.key(0))
    assert psi.temperature == stored
    assert agent.alpha(psi.temperature) == 1
    assert_trees_close(psi.targets, arrays_of(psi.critics), atol=0)
    assert not np.array_equal(psi.critics.first[0].weight, psi.critics.second[0].weight)
    assert psi.acting is None


def test_draws_are_fresh_for_each_gradient_step_and_purpose() -> None:
    draws = jax.jit(lambda key: make_sac(gradient_steps=3, minibatch=10).draw(key, 4))(jax.random.key(0))
    assert draws.samples.shape == (3, 10)
    assert draws.noise.shape == draws.next_noise.shape == (3, 10, 4)
    numbers = np.concatenate([np.ravel(draws.noise), np.ravel(draws.next_noise)])
    assert len(np.unique(numbers)) == numbers.size
    assert len(np.unique(draws.samples)) == 30


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"minibatch": 0}, "minibatch is 0: it must be a whole number of at least 1"),
        ({"replay_capacity": 1e6}, "replay_capacity is 1000000.0: it must be a whole number"),
        ({"learning_period": 0}, "learning_period is 0: it must be a whole number"),
        ({"gradient_steps": "2"}, "gradient_steps is '2': it must be a whole number"),
        ({"warmup_steps": -1}, "warmup_steps is -1: it must be a whole number of at least 0"),
        ({"discount": -0.1}, "discount is -0.1: .* between 0 and 1"),
        ({"target_smoothing": 1.5}, "target_smoothing is 1.5: .* between 0 and 1"),
        ({"learning_rate": -1e-3}, "learning_rate is -0.001: .* above 0"),
        ({"critic_weight": 0}, "critic_weight is 0: .* above 0"),
        ({"target_entropy": float("nan")}, "target_entropy is nan: .* finite"),
        ({"hidden": [256]}, r"hidden is \[256\]: .* layer sizes"),
        ({"time_limit": 1}, "time_limit is 1: .* 'terminal' or 'bootstrap'"),
        ({"temperature": "beta"}, "temperature is 'beta': .* 'log_alpha' or 'alpha'"),
        ({"acts": "never"}, "acts is 'never': .* 'after_learning' or 'before_learning'"),
        ({"minibatch": 11}, "minibatch is 11: .* at most the replay's capacity, 10"),
    ],
)
def test_wrong_values_are_refused(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_sac(**overrides)


def test_what_the_loop_asks() -> None:
    agent = SACAgent(learning_period=4)
    assert (agent.capacity, agent.period, agent.learns_from, agent.random_steps) == (1_000_000, 4, 256, 10_000)
