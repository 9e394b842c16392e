"""Networks of dense layers, the action distributions that they make, the policies and values of the agents, and Adam.

Adam (Kingma & Ba 2014, Algorithm 1) is ours rather than optax's, since GPU machines with nothing but JAX must train
too; tests hold it against both optax and the paper's formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log, pi, sqrt
from typing import Literal, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp

from cycletime.agents.numpy_policy import LOG_STD_RANGE, NumpyNetwork

MEAN_DECAY, SQUARE_DECAY, EPSILON = 0.9, 0.999, 1e-8
"""beta_1, beta_2 and epsilon, the values that Kingma & Ba suggest."""

_Tree = TypeVar("_Tree")


class AdamState(NamedTuple):
    taken: jax.Array
    """t, the steps taken."""
    mean: object
    """m, shaped as the parameters."""
    square: object
    """v, shaped as the parameters."""


def adam_start(parameters: object) -> AdamState:
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    return AdamState(jnp.zeros((), jnp.int32), zeros, zeros)


def adam_step(
    parameters: _Tree, gradient: _Tree, state: AdamState, learning_rate: jax.Array | float
) -> tuple[_Tree, AdamState]:
    count = state.taken + 1
    mean = jax.tree.map(lambda m, g: MEAN_DECAY * m + (1 - MEAN_DECAY) * g, state.mean, gradient)
    square = jax.tree.map(lambda v, g: SQUARE_DECAY * v + (1 - SQUARE_DECAY) * g**2, state.square, gradient)
    # 1 / (1 - beta^t) undoes that both averages start at zero.
    scale, whiten = learning_rate / (1 - MEAN_DECAY**count), 1 / jnp.sqrt(1 - SQUARE_DECAY**count)
    parameters = jax.tree.map(
        lambda p, m, v: p - scale * m / (jnp.sqrt(v) * whiten + EPSILON), parameters, mean, square
    )
    return parameters, AdamState(count, mean, square)


def limit_norm(gradient: _Tree, longest: jax.Array | float) -> _Tree:
    """The gradient, no longer than this: all its numbers are one vector."""
    norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(gradient)))
    scale = jnp.minimum(1.0, longest / (norm + 1e-6))
    limited: _Tree = jax.tree.map(lambda leaf: scale * leaf, gradient)
    return limited


class Moments(NamedTuple):
    """Mean and variance of each number of what came so far, by the parallel form of Welford's algorithm."""

    number: jax.Array
    """How many there were."""
    mean: jax.Array
    variance: jax.Array

    @property
    def spread(self) -> jax.Array:
        """The standard deviation, with a hundredth so that what hardly changes is not blown up."""
        return self.variance**0.5 + 0.01

    def plus(self, numbers: jax.Array) -> Moments:
        """With further observations, [n, numbers of each]."""
        column_means = jax.vmap(jnp.mean, in_axes=1)
        mean = column_means(numbers)
        variance = column_means((numbers - mean) ** 2)
        added = jnp.asarray(len(numbers), self.number.dtype)
        number, away = self.number + added, mean - self.mean
        share = added / number
        joint = (1 - share) * self.variance + share * variance + share * (1 - share) * away**2
        return Moments(number, self.mean + share * away, joint)


def no_moments(size: int, dtype: jnp.dtype) -> Moments:
    """Those of no observation, which change nothing but for the hundredth of the spread."""
    return Moments(jnp.zeros((), dtype), jnp.zeros((size,), dtype), jnp.ones((size,), dtype))


def normalize_by(observed: Moments | None, observation: jax.Array) -> jax.Array:
    return observation if observed is None else (observation - observed.mean) / observed.spread


InitialWeights: TypeAlias = Literal["released", "pytorch", "orthogonal"]
"""What the field `initial_weights` of the agents may be; they say what each means."""
ActivationName: TypeAlias = Literal["tanh", "relu"]

_ACTIVATIONS = {"tanh": jnp.tanh, "relu": jax.nn.relu}
_LOG_SQRT_2_PI = log(2 * pi) / 2


# Networks of dense layers, and the weights that the paper's released code begins with.


class Layer(NamedTuple):
    """A dense layer: inputs @ weight + bias."""

    weight: jax.Array
    bias: jax.Array


Network: TypeAlias = tuple[Layer, ...]
NewLayer: TypeAlias = Callable[[jax.Array, int, int], Layer]


def new_network(key: jax.Array, sizes: Sequence[int], new_layer: NewLayer, last: NewLayer | None = None) -> Network:
    kinds, keys = [*[new_layer] * (len(sizes) - 2), last or new_layer], jax.random.split(key, len(sizes) - 1)
    return tuple(new(*shape) for new, *shape in zip(kinds, keys, sizes[:-1], sizes[1:], strict=True))


def forward(network: Network, inputs: jax.Array, activation: ActivationName) -> jax.Array:
    *hidden, last = network
    for layer in hidden:
        inputs = _ACTIVATIONS[activation](inputs @ layer.weight + layer.bias)
    return inputs @ last.weight + last.bias


def fan_in_uniform(key: jax.Array, inputs: int, outputs: int) -> Layer:
    """Weights and biases uniform within 1 / sqrt(inputs): PyTorch's default, which the released PPO has."""
    bound, numbers = 1 / sqrt(inputs), (inputs * outputs,)
    # More biases than there are begin with the same, and drawn together they need half the program.
    draw = partial(jax.random.uniform, shape=numbers, minval=-bound, maxval=bound)
    weight, bias = jax.vmap(draw)(jax.random.split(key))
    return Layer(weight.reshape(inputs, outputs), bias[:outputs])


def xavier_uniform(key: jax.Array, inputs: int, outputs: int) -> Layer:
    """Weights uniform within sqrt(6 / (inputs + outputs)), biases zero: the released SAC's."""
    bound = sqrt(6 / (inputs + outputs))
    return Layer(jax.random.uniform(key, (inputs, outputs), minval=-bound, maxval=bound), jnp.zeros((outputs,)))


def orthogonal(gain: float) -> NewLayer:
    new_weight = jax.nn.initializers.orthogonal(gain)
    return lambda key, inputs, outputs: Layer(new_weight(key, (inputs, outputs)), jnp.zeros((outputs,)))


def with_small_last_layer(network: Network) -> Network:
    """The released PPO's: the last layer's weights ten times smaller, its biases zero, so that it begins near zero."""
    *hidden, last = network
    return (*hidden, Layer(0.1 * last.weight, jnp.zeros_like(last.bias)))


# The distributions of actions: a Gaussian, and one squashed into [-1, 1] by tanh.


def gaussian_log_probability(mean: jax.Array, log_std: jax.Array, action: jax.Array) -> jax.Array:
    away = (action - mean) * jnp.exp(-log_std)
    return jnp.sum(-0.5 * away**2 - log_std - _LOG_SQRT_2_PI, axis=-1)


def gaussian_entropy(log_std: jax.Array) -> jax.Array:
    return jnp.sum(log_std + 0.5 + _LOG_SQRT_2_PI, axis=-1)


def gaussian_kl(mean: jax.Array, log_std: jax.Array, new_mean: jax.Array, new_log_std: jax.Array) -> jax.Array:
    ratio = jnp.exp(2 * (log_std - new_log_std))
    away = ((new_mean - mean) * jnp.exp(-new_log_std)) ** 2
    return 0.5 * jnp.sum(ratio + away - 1 - 2 * (log_std - new_log_std), axis=-1)


def squashed_sample(mean: jax.Array, log_std: jax.Array, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
    """f(S, epsilon, theta) = tanh(mu + epsilon sigma), and its log-probability."""
    raw = mean + noise * jnp.exp(log_std)
    # log(1 - tanh(x)^2), in a form that does not lose its digits where tanh is near 1.
    log_slope = 2 * (log(2) - raw - jax.nn.softplus(-2 * raw))
    log_normal = -0.5 * noise**2 - log_std - _LOG_SQRT_2_PI
    return jnp.tanh(raw), jnp.sum(log_normal - log_slope, axis=-1)


# The Gaussian policy pi_theta and the state value v_w of one-step actor-critic and PPO.


class GaussianPolicy(NamedTuple):
    """theta: a network for mu, and a sigma that does not depend on the state."""

    network: Network
    log_std: jax.Array


class Parameters(NamedTuple):
    policy: GaussianPolicy
    value: Network


def new_parameters(
    key: jax.Array,
    observation_size: int,
    action_size: int,
    hidden: Sequence[int],
    noise_std: float,
    initial_weights: InitialWeights = "released",
) -> Parameters:
    policy_key, value_key = jax.random.split(key)
    mean = _new_body_and_head(policy_key, (observation_size, *hidden, action_size), initial_weights, last_gain=0.01)
    value = _new_body_and_head(value_key, (observation_size, *hidden, 1), initial_weights, last_gain=1.0)
    log_std = jnp.full((action_size,), log(noise_std), mean[-1].bias.dtype)
    return Parameters(GaussianPolicy(mean, log_std), value)


def _new_body_and_head(key: jax.Array, sizes: Sequence[int], kind: InitialWeights, last_gain: float) -> Network:
    if kind == "orthogonal":
        return new_network(key, sizes, orthogonal(sqrt(2)), orthogonal(last_gain))
    network = new_network(key, sizes, fan_in_uniform)
    return with_small_last_layer(network) if kind == "released" else network


def policy_log_probability(policy: GaussianPolicy, observation: jax.Array, action: jax.Array) -> jax.Array:
    return gaussian_log_probability(forward(policy.network, observation, "tanh"), policy.log_std, action)


def state_value(value: Network, observation: jax.Array, activation: ActivationName = "tanh") -> jax.Array:
    return forward(value, observation, activation)[..., 0]


# A policy by itself. Whatever takes one elsewhere (files, NumPy, ONNX) starts here, so that it knows no agent.


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["layers", "log_std", "observed"],
    meta_fields=["activation", "squashed"],
)
@dataclass(frozen=True, eq=False)
class PolicyNetwork:
    """A normal policy: mu from a network, sigma from the network too or on its own."""

    layers: Network
    """From the observation to mu; where `log_std` is None, to mu and log sigma side by side."""
    activation: ActivationName
    log_std: jax.Array | None
    """log sigma where it does not depend on the state."""
    squashed: bool
    """Whether actions are the tanh of what is drawn."""
    observed: Moments | None = None
    """What observations are normalised by before the first layer."""

    def folded(self) -> PolicyNetwork:
        """The same without `observed`: the first layer does its work."""
        if self.observed is None:
            return self
        (weight, bias), *others = self.layers
        scaled = weight / self.observed.spread[:, None]
        return replace(self, layers=(Layer(scaled, bias - self.observed.mean @ scaled), *others), observed=None)

    @property
    def observation_size(self) -> int:
        return int(self.layers[0].weight.shape[0])

    @property
    def action_size(self) -> int:
        numbers = int(self.layers[-1].bias.shape[0])
        return numbers if self.log_std is not None else round(numbers / 2)

    def mean_and_log_std(self, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
        numbers = forward(self.layers, normalize_by(self.observed, observation), self.activation)
        if self.log_std is not None:
            return numbers, jnp.broadcast_to(self.log_std, numbers.shape)
        mean, log_std = jnp.split(numbers, 2, axis=-1)
        return mean, jnp.clip(log_std, *LOG_STD_RANGE)

    def act(self, observation: jax.Array, noise: jax.Array) -> jax.Array:
        """What the agent would do, in its own range of about [-1, 1]; without noise, the policy's mean."""
        mean, log_std = self.mean_and_log_std(observation)
        action = mean + jnp.exp(log_std) * noise
        return jnp.tanh(action) if self.squashed else action

    def in_numpy(self) -> NumpyNetwork:
        """The same in NumPy, whose calls cost less than JAX's where there are few observations."""
        plain = self.folded()
        return NumpyNetwork(plain.layers, plain.activation, plain.log_std, squashed=plain.squashed)
