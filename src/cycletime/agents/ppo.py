"""Proximal policy optimisation as in the paper's Algorithm 4.

Where the paper is silent this follows its released code: initial weights, the time limit as a terminal, one Adam for
policy and value (which, as Adam works number by number, is the same as two with one rate).

What others add for many environments is off unless it is asked for: the fields from `normalize_observations` on, each
with its source.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree

from cycletime.agents.agent import Buffer, LearnWhen, Metrics, TimeLimit, Transition, option, pytree_of_rates, rate
from cycletime.agents.checks import check_common_fields, check_counts, check_fractions, check_positive, check_size
from cycletime.agents.exploration import CoherentNoise
from cycletime.agents.networks import (
    AdamState,
    GaussianPolicy,
    InitialWeights,
    Moments,
    Network,
    Parameters,
    PolicyNetwork,
    adam_start,
    adam_step,
    forward,
    gaussian_entropy,
    gaussian_kl,
    gaussian_log_probability,
    limit_norm,
    new_parameters,
    no_moments,
    normalize_by,
    state_value,
)
from cycletime.errors import InputError

MOST_SHUFFLED = 2**20
"""Beyond this a shuffle would have too few random bits left."""
LARGEST_REWARD = 10.0
"""Of normalised rewards, VecNormalize's."""
KL_FACTOR, LOWEST_RATE, HIGHEST_RATE = 1.5, 1e-5, 1e-2
"""Factor and bounds of the adaptive learning rate, rsl_rl's."""


class DiscountedReturns(NamedTuple):
    """What rewards are normalised by."""

    newest: jax.Array
    """Of each environment the discounted sum of its episode's rewards so far, 0 where it has ended."""
    moments: Moments
    """Mean and variance of all such sums, one after each agent step."""


class PPOState(NamedTuple):
    parameters: Parameters
    optimizer: AdamState
    observed: Moments | None = None
    """Running mean and variance of all observations; None unless `normalize_observations`."""
    learning_rate: jax.Array | None = None
    """The current, adapted learning rate; None unless `target_kl` is set."""
    returns: DiscountedReturns | None = None
    """None unless `normalize_rewards`."""


class Sample(NamedTuple):
    """An element of D, or a mini-batch of them."""

    observation: jax.Array
    action: jax.Array
    advantage: jax.Array
    """h~, normalised over the whole batch, or in `policy_loss` over the mini-batch."""
    lambda_return: jax.Array
    """G^lambda."""
    old_log_probability: jax.Array
    """log pi_theta_old(A|S)."""
    old_mean: jax.Array | None = None
    """mu_theta_old(S), where the learning rate adapts to how far the policy moved."""
    old_log_std: jax.Array | None = None


@pytree_of_rates
@dataclass(frozen=True, kw_only=True)
class PPOAgent:
    """PPO's hyper-parameters; the defaults are the paper's baseline."""

    batch: int = 2000
    """b, the transitions that it learns from."""
    minibatch: int = 50
    """m, the samples of one gradient step."""
    discount: float = rate(0.99)
    """gamma, per agent step."""
    trace_decay: float = rate(0.95)
    """lambda, per agent step."""
    learning_rate: float = rate(3e-4)
    """eta, of policy and value alike."""
    clip: float = rate(0.2)
    """epsilon, how far the ratio of probabilities may move before it stops counting."""
    epochs: int = 10
    """N, how often each sample is used."""
    hidden: tuple[int, ...] = (64, 64)
    """Sizes of the hidden layers, of the policy's network and of the value's."""
    noise_std: float = 1.0
    """sigma at the start."""
    initial_weights: InitialWeights = "released"
    """'released': as the paper's released code begins, PyTorch's default with the last layers ten times smaller.
    'pytorch': that default throughout. 'orthogonal': as Stable-Baselines3 and CleanRL begin."""
    learning_period: int | None = None
    """U, the agent steps between two updates; by default b."""
    learn_when: LearnWhen = "batch"
    """'batch': every U agent steps, as the paper says. 'episode_end': at the end of the episode in which the b-th
    sample is stored, from the first b, as the released code does; samples beyond are dropped."""
    time_limit: TimeLimit = "terminal"
    """Whether an episode that the time limit ended counts as terminal, or its value goes on."""
    batch_end: Literal["successor", "episode_end"] = "successor"
    """Whose value follows the last sample of a batch that is cut inside an episode: its own successor's, or, as in the
    released code, that of the observation at the episode's end."""
    slices: Literal["given", "even"] = "given"
    """'given': mini-batches of m samples. 'even': as in the released code, of b // (b // m), which may be nearly 2m.
    The last one of an epoch is short where they do not fill the batch."""
    exploration: CoherentNoise | None = None
    """What makes the noise of its actions coherent in time; None leaves it white. The log-probabilities
    stay those of each action by itself, whose distribution it does not change."""
    normalize_observations: bool = option(False)
    """Whether networks see (S - mean) / (std + 0.01) by running moments, as in rsl_rl. Those that acted serve for the
    learning from what they did, and take it in after it."""
    reward_scale: float | None = rate(None)
    """What rewards are multiplied with before learning, as brax's `reward_scaling`; returns of curves stay unscaled."""
    entropy_bonus: float | None = rate(None)
    """c_2 of Schulman and others 2017, equation 9: what a nat of the policy's entropy takes off the loss."""
    value_coefficient: float | None = rate(None)
    """c_1 of the same equation: the weight of the value's squared error; without it 1."""
    max_gradient_norm: float | None = rate(None)
    """The longest that a gradient of all parameters together may be, as in OpenAI's baselines (ppo2, 0.5 there)."""
    target_kl: float | None = rate(None)
    """The step of the policy in KL that the learning rate adapts to, by 1.5 up or down where a mini-batch shows less
    than half or more than twice as much, within 1e-5 and 1e-2, as in rsl_rl ('adaptive', 0.01 there)."""
    minibatches: int | None = option(None)
    """Mini-batches of an epoch instead of m, as brax, rsl_rl and CleanRL count; m is then b over it, rounded up."""
    advantages: Literal["batch", "minibatch"] = option("batch")
    """Over what advantages are normalised: the batch, as in the paper, or each mini-batch, as in Stable-Baselines3."""
    normalize_rewards: bool = option(False)
    """Whether rewards are divided by the running deviation of discounted returns, and then lie within -10 and 10, as by
    Stable-Baselines3's VecNormalize, which takes in each step at once; here the batch that is learned from."""
    activation: Literal["tanh", "relu"] = option("tanh")
    """Of the hidden layers; 'relu' in most of RL Zoo's values for MuJoCo."""

    random_steps: ClassVar[int] = 0

    def __post_init__(self) -> None:
        check_counts(self, "batch", "minibatch", "epochs")
        if self.learning_period is not None:
            check_counts(self, "learning_period")
        check_fractions(self, "discount", "trace_decay")
        check_positive(self, "learning_rate", "clip", "noise_std")
        check_common_fields(self)
        self._check_options()
        if self.batch > MOST_SHUFFLED:
            raise InputError(f"batch is {self.batch}: it must be at most {MOST_SHUFFLED}, to be shuffled well.")
        check_size(f"epochs is {self.epochs}", self.epochs * self.batch)
        if self.minibatch > self.batch:
            raise InputError(f"minibatch is {self.minibatch}: it must be at most the batch, {self.batch}.")
        if self.learn_when == "episode_end" and self.period != self.batch:
            remedy = f"with learn_when='episode_end' the batch alone decides, so leave it out or give {self.batch}"
            raise InputError(f"learning_period is {self.learning_period}: {remedy}.")
        if self.batch_end == "episode_end" and self.learn_when != "episode_end":
            raise InputError("batch_end is 'episode_end': that needs learn_when='episode_end' as well.")

    def _check_options(self) -> None:
        for name in ("normalize_observations", "normalize_rewards"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} is {getattr(self, name)!r}: it must be true or false.")
        if self.normalize_rewards and (self.learn_when == "episode_end" or self.period != self.batch):
            remedy = "so leave out learning_period, and have learn_when='batch'"
            raise InputError(f"normalize_rewards is True: returns go on from batch to batch, {remedy}.")
        optional = [each.name for each in fields(self) if each.metadata.get("rate") and each.metadata["option"]]
        check_positive(self, *(name for name in optional if getattr(self, name) is not None))
        if self.minibatches is None:
            return
        check_counts(self, "minibatches")
        if self.minibatches > self.batch:
            raise InputError(f"minibatches is {self.minibatches}: it must be at most the batch, {self.batch}.")
        size = -(-self.batch // self.minibatches)
        if self.minibatch not in (size, type(self).minibatch):
            are = f"that are {size} samples each of a batch of {self.batch}"
            remedy = f"leave minibatch out, which is {self.minibatch}"
            raise InputError(f"minibatches is {self.minibatches}: {are}, so {remedy}.")
        object.__setattr__(self, "minibatch", size)

    @property
    def capacity(self) -> int:
        return self.batch

    @property
    def period(self) -> int:
        return self.batch if self.learning_period is None else self.learning_period

    @property
    def learns_from(self) -> int:
        return self.batch

    @property
    def slice_sizes(self) -> tuple[int, int, int]:
        """How many mini-batches of one size an epoch has, that size, and the size of a last short one or 0."""
        size = self.minibatch if self.slices == "given" else self.batch // (self.batch // self.minibatch)
        return self.batch // size, size, self.batch % size

    def initialize(self, key: jax.Array, observation_size: int, action_size: int, num_envs: int = 1) -> PPOState:
        """Initialize parameters theta and w."""
        parameters = new_parameters(
            key, observation_size, action_size, self.hidden, self.noise_std, self.initial_weights
        )
        dtype = parameters.policy.log_std.dtype
        return PPOState(
            parameters,
            adam_start(parameters),
            no_moments(observation_size, dtype) if self.normalize_observations else None,
            None if self.target_kl is None else jnp.asarray(self.learning_rate, dtype),
            DiscountedReturns(jnp.zeros((num_envs,), dtype), no_moments(1, dtype)) if self.normalize_rewards else None,
        )

    def act(self, psi: PPOState, observation: jax.Array, noise: jax.Array) -> jax.Array:
        """A ~ N(mu(S), sigma^2)."""
        policy, seen = psi.parameters.policy, normalize_by(psi.observed, observation)
        return self._mean(policy, seen) + jnp.exp(policy.log_std) * noise

    def policy(self, psi: PPOState) -> PolicyNetwork:
        """The policy by itself, which takes observations as they are."""
        return self.acting(psi).folded()

    def acting(self, psi: PPOState) -> PolicyNetwork:
        policy = psi.parameters.policy
        return PolicyNetwork(policy.network, self.activation, policy.log_std, squashed=False, observed=psi.observed)

    def draw(self, key: jax.Array, action_size: int) -> jax.Array:
        """The order of the samples in each epoch."""
        return shuffles(key, self.epochs, self.batch)

    def learn(self, psi: PPOState, buffer: Buffer, draws: jax.Array) -> tuple[PPOState, Metrics]:
        """N epochs of mini-batches over the batch."""
        if psi.returns is not None:
            psi = psi._replace(returns=self.returns_after(psi.returns, buffer.oldest_first()))
        data = self.samples(psi, buffer)
        after = self.descend(psi, data, draws)
        metrics = self._metrics(psi.parameters, after.parameters, data)
        if after.learning_rate is not None:
            metrics["learning_rate"] = after.learning_rate
        if after.observed is not None:
            seen = buffer.oldest_first().observation
            after = after._replace(observed=after.observed.plus(seen.reshape(-1, seen.shape[-1])))
        return after, metrics

    def descend(self, psi: PPOState, data: Sample, draws: jax.Array) -> PPOState:
        """All gradient steps of a learning, with the samples in the order of the draws."""
        # As rows of one array, which are shuffled and sliced faster than its parts.
        read = jax.vmap(ravel_pytree(jax.tree.map(lambda part: part[0], data))[1])
        rows = jax.vmap(lambda sample: ravel_pytree(sample)[0])(data)
        count, size, short = self.slice_sizes

        def update(psi: PPOState, minibatch: jax.Array) -> tuple[PPOState, None]:
            return self.update(psi, read(minibatch)), None

        def epoch(psi: PPOState, order: jax.Array) -> tuple[PPOState, None]:
            shuffled = rows[order]
            slices = shuffled[: count * size].reshape(count, size, -1)
            psi, _ = lax.scan(update, psi, slices)
            if short:
                psi, _ = update(psi, shuffled[count * size :])
            return psi, None

        return lax.scan(epoch, psi, draws)[0]

    def returns_after(self, returns: DiscountedReturns, batch: Transition) -> DiscountedReturns:
        """The discounted returns with those of a batch in the order of time."""

        def step(newest: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            reward, ended = now
            newest = self.discount * newest + reward
            return (1 - ended) * newest, newest

        newest, passed = lax.scan(step, returns.newest, (batch.reward, batch.ended))
        return DiscountedReturns(newest, returns.moments.plus(passed.reshape(-1, 1)))

    def samples(self, psi: PPOState, buffer: Buffer) -> Sample:
        """D, from the batch in the order of time."""
        parameters, batch = psi.parameters, self._normalized(psi, buffer.oldest_first())
        newest = normalize_by(psi.observed, buffer.newest_successor)
        value, next_value = self._value(parameters, batch.observation), self._next_value(parameters, batch, newest)
        advantage = lambda_advantages(batch.reward, value, next_value, batch.ended, self.discount, self.trace_decay)
        data = Sample(
            observation=batch.observation,
            action=batch.action,
            advantage=normalize(advantage) if self.advantages == "batch" else advantage,
            lambda_return=advantage + value,
            old_log_probability=self._log_probability(parameters.policy, batch.observation, batch.action),
        )
        if self.target_kl is not None:
            mean = self._mean(parameters.policy, batch.observation)
            data = data._replace(old_mean=mean, old_log_std=jnp.broadcast_to(parameters.policy.log_std, mean.shape))
        flat: Sample = jax.tree.map(lambda part: part.reshape(-1, *part.shape[2:]), data)
        return flat

    def update(self, psi: PPOState, minibatch: Sample) -> PPOState:
        """One gradient step of theta and w."""
        gradient = jax.grad(self.loss)(psi.parameters, minibatch)
        if self.max_gradient_norm is not None:
            gradient = limit_norm(gradient, self.max_gradient_norm)
        if psi.learning_rate is not None:
            psi = psi._replace(learning_rate=self.adapted_rate(psi, minibatch))
        rate = self.learning_rate if psi.learning_rate is None else psi.learning_rate
        parameters, optimizer = adam_step(psi.parameters, gradient, psi.optimizer, rate)
        return psi._replace(parameters=parameters, optimizer=optimizer)

    def adapted_rate(self, psi: PPOState, minibatch: Sample) -> jax.Array:
        """eta, from how far the policy has moved from theta_old on a mini-batch."""
        rate, target, mean, log_std = psi.learning_rate, self.target_kl, minibatch.old_mean, minibatch.old_log_std
        if rate is None or target is None or mean is None or log_std is None:
            raise ValueError("the learning rate does not adapt")
        policy = psi.parameters.policy
        new = self._mean(policy, minibatch.observation)
        kl = jnp.mean(gaussian_kl(mean, log_std, new, policy.log_std))
        slower, faster = jnp.maximum(rate / KL_FACTOR, LOWEST_RATE), jnp.minimum(rate * KL_FACTOR, HIGHEST_RATE)
        return jnp.where(kl > 2 * target, slower, jnp.where((kl < target / 2) & (kl > 0), faster, rate))

    def loss(self, parameters: Parameters, minibatch: Sample) -> jax.Array:
        """L_theta and the squared error of the value, each averaged over the mini-batch."""
        of_policy = self.policy_loss(parameters.policy, minibatch)
        of_value = self.value_loss(parameters.value, minibatch)
        total = of_policy + (of_value if self.value_coefficient is None else self.value_coefficient * of_value)
        if self.entropy_bonus is not None:
            total -= self.entropy_bonus * gaussian_entropy(parameters.policy.log_std)
        return total

    def policy_loss(self, policy: GaussianPolicy, minibatch: Sample) -> jax.Array:
        """L_theta = -min(rho h~, rho_clip h~)."""
        log_probability = self._log_probability(policy, minibatch.observation, minibatch.action)
        ratio = jnp.exp(log_probability - minibatch.old_log_probability)
        clipped = jnp.clip(ratio, 1 - self.clip, 1 + self.clip)
        advantage = minibatch.advantage
        if self.advantages == "minibatch":
            advantage = normalize(advantage)
        return -jnp.mean(jnp.minimum(ratio * advantage, clipped * advantage))

    def value_loss(self, value: Network, minibatch: Sample) -> jax.Array:
        """(G^lambda - v(S))^2."""
        error = minibatch.lambda_return - state_value(value, minibatch.observation, self.activation)
        return jnp.mean(error**2)

    def _mean(self, policy: GaussianPolicy, observation: jax.Array) -> jax.Array:
        return forward(policy.network, observation, self.activation)

    def _log_probability(self, policy: GaussianPolicy, observation: jax.Array, action: jax.Array) -> jax.Array:
        return gaussian_log_probability(self._mean(policy, observation), policy.log_std, action)

    def _value(self, parameters: Parameters, observation: jax.Array) -> jax.Array:
        return state_value(parameters.value, observation, self.activation)

    def _normalized(self, psi: PPOState, batch: Transition) -> Transition:
        """The batch as networks see it: observations normalised, rewards too and scaled, where that is asked for."""
        seen, successor = (normalize_by(psi.observed, each) for each in (batch.observation, batch.next_observation))
        reward = batch.reward
        if psi.returns is not None:
            deviation = jnp.sqrt(psi.returns.moments.variance + 1e-8)
            reward = jnp.clip(reward / deviation, -LARGEST_REWARD, LARGEST_REWARD)
        if self.reward_scale is not None:
            reward = self.reward_scale * reward
        return batch._replace(observation=seen, next_observation=successor, reward=reward)

    def _next_value(self, parameters: Parameters, batch: Transition, newest_successor: jax.Array) -> jax.Array:
        """v(S'), and 0 where S' is terminal."""
        next_value = self._value(parameters, batch.next_observation)
        if self.batch_end == "episode_end":
            next_value = next_value.at[-1].set(self._value(parameters, newest_successor))
        terminal = batch.ended if self.time_limit == "terminal" else batch.terminated
        return (1 - terminal) * next_value

    def _metrics(self, before: Parameters, after: Parameters, data: Sample) -> Metrics:
        old, new = self._mean(before.policy, data.observation), self._mean(after.policy, data.observation)
        log_std = after.policy.log_std
        ratio = jnp.exp(gaussian_log_probability(new, log_std, data.action) - data.old_log_probability)
        clipped = jnp.abs(ratio - 1) > self.clip
        return {
            "policy_loss": self.policy_loss(after.policy, data),
            "value_loss": self.value_loss(after.value, data),
            "entropy": gaussian_entropy(log_std),
            "kl": jnp.mean(gaussian_kl(old, before.policy.log_std, new, log_std)),
            "clip_fraction": jnp.mean(clipped.astype(ratio.dtype)),
        }


def lambda_advantages(
    reward: jax.Array,
    value: jax.Array,
    next_value: jax.Array,
    ended: jax.Array,
    discount: jax.Array | float,
    trace_decay: jax.Array | float,
) -> jax.Array:
    """GAE (Schulman et al. 2016), G^lambda - v(S), backwards instead of by a double sum; time is the first axis.

    `next_value` is v(S'), and 0 where S' is terminal; `ended` is 1 where the next transition begins another episode.
    After the last transition nothing follows but its own v(S'), so that a batch that is cut inside an episode ends in
    the n-step return of what there is.
    """
    error = reward + discount * next_value - value
    decay = discount * trace_decay * (1 - ended)

    def backwards(later: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        error, decay = now
        advantage = error + decay * later
        return advantage, advantage

    return lax.scan(backwards, jnp.zeros_like(error[0]), (error, decay), reverse=True)[1]


def normalize(numbers: jax.Array) -> jax.Array:
    away = numbers - jnp.mean(numbers)
    return away / (jnp.sqrt(jnp.mean(away**2)) + 1e-8)


def shuffles(key: jax.Array, count: int, length: int) -> jax.Array:
    """So many random orders of the numbers below `length`, [count, length].

    A random word with the index in its lowest bits is sorted as one number, which takes a CPU a quarter of the time
    that sorting pairs takes. Words whose random bits are equal keep their order; of 2000 samples that is one pair in a
    shuffle.
    """
    mask = jnp.uint32(2 ** (length - 1).bit_length() - 1)
    words = jax.random.bits(key, (count, length), jnp.uint32) & ~mask
    words |= jnp.arange(length, dtype=jnp.uint32)
    ordered: jax.Array = jnp.sort(words, axis=1, stable=False) & mask
    return ordered.astype(jnp.int32)
