"""Soft actor-critic as in the paper's Algorithm 5.

Where the paper is silent or cannot run as written this follows its released code: actions squashed by tanh, Adam on
log alpha, uniform actions at the start, Xavier-uniform weights, a time limit that is not terminal.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from cycletime.agents.agent import AgentState, Buffer, LearnWhen, Metrics, TimeLimit, Transition, pytree_of_rates, rate
from cycletime.agents.checks import check_common_fields, check_counts, check_fractions, check_positive, check_size
from cycletime.agents.exploration import CoherentNoise
from cycletime.agents.networks import (
    AdamState,
    Network,
    PolicyNetwork,
    adam_start,
    adam_step,
    forward,
    new_network,
    squashed_sample,
    xavier_uniform,
)
from cycletime.errors import InputError


class Critics(NamedTuple):
    first: Network
    second: Network


class StackedCritics(NamedTuple):
    """w_1 and w_2 along the first axis of every array: half as many products of matrices, each twice as large."""

    both: Network


class SACState(NamedTuple):
    policy: Network
    """theta."""
    policy_optimizer: AdamState
    critics: Critics
    """w_1, w_2; a StackedCritics while many runs advance."""
    critics_optimizer: AdamState
    targets: Critics
    """w-bar_1, w-bar_2."""
    temperature: jax.Array
    """log alpha, or alpha itself where `temperature` says so."""
    temperature_optimizer: AdamState
    acting: Network | None
    """The policy from before the last update, where that one acts."""


class SACDraws(NamedTuple):
    samples: jax.Array
    """[g, m] words that choose from the buffer."""
    next_noise: jax.Array
    """[g, m, |A|] for A~ at S'."""
    noise: jax.Array
    """[g, m, |A|], the epsilon of the reparameterisation at S."""


@pytree_of_rates
@dataclass(frozen=True, kw_only=True)
class SACAgent:
    """SAC's hyper-parameters; the defaults are the paper's baseline."""

    discount: float = rate(0.99)
    """gamma, per agent step."""
    learning_rate: float = rate(3e-4)
    """eta, of policy, action values and temperature alike."""
    target_smoothing: float = rate(0.005)
    """tau, how far the targets move at each gradient step."""
    minibatch: int = 256
    """m, the samples of one gradient step."""
    replay_capacity: int = 1_000_000
    """b, the transitions that the buffer holds."""
    learning_period: int = 1
    """U, the agent steps between two updates."""
    gradient_steps: int = 1
    """g, the gradient steps of one learning."""
    warmup_steps: int = 10_000
    """The agent steps of uniform actions at the start: the released code's 160 s, at 16 ms. `agent_for` knows how many
    they are at another cycle time."""
    hidden: tuple[int, ...] = (256, 256)
    """Sizes of the ReLU layers, of the policy's network and of each critic."""
    target_entropy: float | None = None
    """H-bar; by default -|A|."""
    time_limit: TimeLimit = "bootstrap"
    """Whether an episode that the time limit ended counts as terminal, or its value goes on."""
    temperature: Literal["log_alpha", "alpha"] = "log_alpha"
    """What Adam works on: log alpha, which keeps alpha above zero, or alpha itself as the paper writes."""
    critic_weight: float = 0.5
    """The factor of the critics' squared error: the paper's 1/2, or the released code's 1."""
    acts: Literal["after_learning", "before_learning"] = "after_learning"
    """Whether an action comes from the policy after the last update or, as in the released code, before it."""
    exploration: CoherentNoise | None = None
    """What makes the noise of its actions coherent in time; None leaves it white. The uniform actions
    at the start are coherent as well."""

    learn_when: ClassVar[LearnWhen] = "batch"

    def __post_init__(self) -> None:
        check_counts(self, "minibatch", "replay_capacity", "learning_period", "gradient_steps")
        check_counts(self, "warmup_steps", least=0)
        check_fractions(self, "discount", "target_smoothing")
        check_positive(self, "learning_rate", "critic_weight")
        if self.target_entropy is not None and not isfinite(self.target_entropy):
            raise InputError(f"target_entropy is {self.target_entropy!r}: it must be finite, or None for -|A|.")
        check_common_fields(self)
        check_size(f"gradient_steps is {self.gradient_steps}", self.gradient_steps * self.minibatch)
        if self.minibatch > self.replay_capacity:
            raise InputError(
                f"minibatch is {self.minibatch}: it must be at most the replay's capacity, {self.replay_capacity}."
            )

    @property
    def capacity(self) -> int:
        return self.replay_capacity

    @property
    def period(self) -> int:
        return self.learning_period

    @property
    def updates_per_step(self) -> float:
        return self.gradient_steps / self.learning_period

    @property
    def learns_from(self) -> int:
        """Updates begin once a mini-batch is stored."""
        return self.minibatch

    @property
    def random_steps(self) -> int:
        return self.warmup_steps

    def initialize(self, key: jax.Array, observation_size: int, action_size: int, num_envs: int = 1) -> SACState:
        """Initialize parameters theta, w_1 and w_2; the targets equal the critics, and alpha is 1."""
        keys = jax.random.split(key, 3)
        policy = new_network(keys[0], (observation_size, *self.hidden, 2 * action_size), xavier_uniform)
        critic_sizes = (observation_size + action_size, *self.hidden, 1)
        critics = Critics(*(new_network(key, critic_sizes, xavier_uniform) for key in keys[1:]))
        temperature = jnp.zeros(()) if self.temperature == "log_alpha" else jnp.ones(())
        return SACState(
            policy=policy,
            policy_optimizer=adam_start(policy),
            critics=critics,
            critics_optimizer=adam_start(critics),
            targets=critics,
            temperature=temperature,
            temperature_optimizer=adam_start(temperature),
            acting=policy if self.acts == "before_learning" else None,
        )

    def act(self, psi: SACState, observation: jax.Array, noise: jax.Array) -> jax.Array:
        """A = tanh(mu(S) + epsilon sigma(S))."""
        return squashed_sample(*self.acting(psi).mean_and_log_std(observation), noise)[0]

    def acting(self, psi: SACState) -> PolicyNetwork:
        """The newest policy, or the one before the last update."""
        return _policy(psi.policy if psi.acting is None else psi.acting)

    def policy(self, psi: SACState) -> PolicyNetwork:
        """The newest policy by itself, also where the one before it acts."""
        return _policy(psi.policy)

    def draw(self, key: jax.Array, action_size: int) -> SACDraws:
        """Which samples, and the noise of their actions."""
        sample_key, noise_key = jax.random.split(key)
        shape = (self.gradient_steps, self.minibatch)
        next_noise, noise = jax.random.normal(noise_key, (2, *shape, action_size))
        return SACDraws(jax.random.bits(sample_key, shape, jnp.uint32), next_noise, noise)

    def learn(self, psi: SACState, buffer: Buffer, draws: SACDraws) -> tuple[SACState, Metrics]:
        def gradient_step(state: SACState, draws: SACDraws) -> tuple[SACState, Metrics]:
            return self.update(state, buffer.sample(draws.samples), draws.next_noise, draws.noise)

        if self.gradient_steps == 1:
            after, metrics = gradient_step(psi, jax.tree.map(lambda each: each[0], draws))
        else:
            after, metrics = lax.scan(gradient_step, psi, draws)
            metrics = jax.tree.map(jnp.mean, metrics)
        return after._replace(acting=psi.policy if self.acts == "before_learning" else None), metrics

    def update(
        self, psi: SACState, minibatch: Transition, next_noise: jax.Array, noise: jax.Array
    ) -> tuple[SACState, Metrics]:
        """One gradient step of w_1 and w_2, theta, alpha and the targets, in this order."""
        alpha = self.alpha(psi.temperature)
        backup = self.backup(psi, minibatch, next_noise)
        critics_loss, gradient = jax.value_and_grad(self.critics_loss)(psi.critics, minibatch, backup)
        critics, critics_optimizer = adam_step(psi.critics, gradient, psi.critics_optimizer, self.learning_rate)
        (policy_loss, log_probability), policy_gradient = jax.value_and_grad(policy_loss_of, has_aux=True)(
            psi.policy, critics, alpha, minibatch, noise
        )
        policy, policy_optimizer = adam_step(psi.policy, policy_gradient, psi.policy_optimizer, self.learning_rate)
        mean_log_probability = jnp.mean(log_probability)
        target_entropy = -float(noise.shape[-1]) if self.target_entropy is None else self.target_entropy
        temperature, temperature_optimizer = adam_step(
            psi.temperature, -mean_log_probability - target_entropy, psi.temperature_optimizer, self.learning_rate
        )
        tau = self.target_smoothing
        targets = jax.tree.map(lambda w, target: tau * w + (1 - tau) * target, critics, psi.targets)
        after = psi._replace(
            policy=policy,
            policy_optimizer=policy_optimizer,
            critics=critics,
            critics_optimizer=critics_optimizer,
            targets=targets,
            temperature=temperature,
            temperature_optimizer=temperature_optimizer,
        )
        metrics = {
            "critics_loss": critics_loss,
            "policy_loss": policy_loss,
            "entropy": -mean_log_probability,
            "alpha": alpha,
            "action_value": jnp.mean(backup),
        }
        return after, metrics

    def alpha(self, temperature: jax.Array) -> jax.Array:
        """The temperature itself, whatever Adam works on."""
        return jnp.exp(temperature) if self.temperature == "log_alpha" else temperature

    def backup(self, psi: SACState, minibatch: Transition, next_noise: jax.Array) -> jax.Array:
        """R + (1 - T) gamma V(S'), with V(S') = min of the targets at A~ minus alpha log pi(A~|S')."""
        state = minibatch.next_observation
        action, log_probability = squashed_sample(*_policy(psi.policy).mean_and_log_std(state), next_noise)
        smaller = jnp.minimum(*_action_values(psi.targets, state, action))
        value = smaller - self.alpha(psi.temperature) * log_probability
        terminal = minibatch.ended if self.time_limit == "terminal" else minibatch.terminated
        return minibatch.reward + (1 - terminal) * self.discount * value

    def critics_loss(self, critics: Critics, minibatch: Transition, backup: jax.Array) -> jax.Array:
        """L_w1 + L_w2, each half the squared error."""
        first, second = _action_values(critics, minibatch.observation, minibatch.action)
        return self.critic_weight * jnp.mean((first - backup) ** 2 + (second - backup) ** 2)


def policy_loss_of(
    policy: Network, critics: Critics, alpha: jax.Array, minibatch: Transition, noise: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """L_theta = alpha log pi(f|S) - min(q_w1, q_w2)(S, f), and log pi(f|S) of each sample."""
    state = minibatch.observation
    action, log_probability = squashed_sample(*_policy(policy).mean_and_log_std(state), noise)
    smaller = jnp.minimum(*_action_values(critics, state, action))
    return jnp.mean(alpha * log_probability - smaller), log_probability


def _policy(network: Network) -> PolicyNetwork:
    return PolicyNetwork(network, "relu", log_std=None, squashed=True)


def _action_values(
    critics: Critics | StackedCritics, observation: jax.Array, action: jax.Array
) -> tuple[jax.Array, jax.Array]:
    inputs = jnp.concatenate([observation, action], axis=-1)
    if isinstance(critics, StackedCritics):
        # Both get inputs of their own: shared ones would put the pair between the samples and their numbers.
        twice = jnp.broadcast_to(inputs, (2, *inputs.shape))
        values = jax.vmap(lambda critic, inputs: forward(critic, inputs, "relu")[..., 0])(critics.both, twice)
        return values[0], values[1]
    first, second = (forward(critic, inputs, "relu")[..., 0] for critic in critics)
    return first, second


def stack_critics(psi: AgentState) -> AgentState:
    """Any agent's state with its pairs of critics stacked, for the loop of many runs; CPUs are faster without."""

    def stack(node: Any) -> Any:  # noqa: ANN401 - any node of a tree
        return StackedCritics(jax.tree.map(lambda *both: jnp.stack(both), *node)) if isinstance(node, Critics) else node

    return jax.tree.map(stack, psi, is_leaf=lambda node: isinstance(node, Critics))


def unstack_critics(psi: AgentState) -> AgentState:
    """What `stack_critics` was given."""

    def part(node: Any) -> Any:  # noqa: ANN401
        if not isinstance(node, StackedCritics):
            return node
        return Critics(*(jax.tree.map(lambda both, index=index: both[index], node.both) for index in range(2)))

    return jax.tree.map(part, psi, is_leaf=lambda node: isinstance(node, StackedCritics))
