"""The paper's mathematics in plain NumPy, and builders of transitions.

Nothing here calls the code under test to make an expected value: networks are multiplied out, gradients are
propagated by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import pytest

from cycletime.agents import Agent, Buffer, Transition

Array: TypeAlias = npt.NDArray[np.float64]
Weights: TypeAlias = list[Array]
"""Weight and bias of each layer, in turn."""


@pytest.fixture(scope="module")
def float64() -> Iterator[None]:
    """JAX in double precision for a whole file."""
    with jax.enable_x64(True):
        yield


def arrays_of(tree: object) -> Weights:
    """The numbers of a JAX tree, as copies."""
    return [np.array(leaf, np.float64) for leaf in jax.tree.leaves(tree)]


def assert_trees_close(tree: object, expected: Sequence[Array], atol: float = 1e-9) -> None:
    """Hold a JAX tree against arrays in the order of its leaves."""
    leaves = jax.tree.leaves(tree)
    assert len(leaves) == len(expected)
    for leaf, array in zip(leaves, expected, strict=True):
        assert leaf.shape == array.shape
        np.testing.assert_allclose(leaf, array, rtol=0, atol=atol)


@dataclass
class Dense:
    """A network of dense layers; `forward` remembers what `backward` needs."""

    weights: Weights
    kind: str

    def forward(self, inputs: Array) -> Array:
        self.inputs = [inputs]
        for layer in range(0, len(self.weights), 2):
            outputs = self.inputs[-1] @ self.weights[layer] + self.weights[layer + 1]
            if layer + 2 == len(self.weights):
                return outputs
            self.inputs.append(np.tanh(outputs) if self.kind == "tanh" else np.maximum(outputs, 0))
        raise AssertionError("a network has a last layer")

    def backward(self, slope: Array) -> tuple[Weights, Array]:
        """From the loss's slope in the outputs [samples, outputs]: summed over samples, in weights and in inputs."""
        gradient: Weights = []
        for layer in range(len(self.weights) - 2, -1, -2):
            inputs = self.inputs[layer // 2]
            gradient = [inputs.T @ slope, slope.sum(axis=0), *gradient]
            slope = slope @ self.weights[layer].T
            if layer:
                slope = slope * (1 - inputs**2 if self.kind == "tanh" else inputs > 0)
        return gradient, slope


class KingmaBa:
    """Adam, Algorithm 1 of Kingma & Ba (2014), line by line."""

    def __init__(self, parameters: Weights, rate: float) -> None:
        self.rate, self.t = rate, 0
        self.m = [np.zeros_like(each) for each in parameters]
        self.v = [np.zeros_like(each) for each in parameters]

    def step(self, parameters: Weights, gradient: Weights) -> Weights:
        self.t += 1
        self.m = [0.9 * m + 0.1 * g for m, g in zip(self.m, gradient, strict=True)]
        self.v = [0.999 * v + 0.001 * g**2 for v, g in zip(self.v, gradient, strict=True)]
        m_hat = [m / (1 - 0.9**self.t) for m in self.m]
        v_hat = [v / (1 - 0.999**self.t) for v in self.v]
        return [
            theta - self.rate * m / (np.sqrt(v) + 1e-8) for theta, m, v in zip(parameters, m_hat, v_hat, strict=True)
        ]


def slopes(function: Callable[[Weights], float], parameters: Weights, step: float = 1e-6) -> Weights:
    """The gradient by central differences."""
    gradient = [np.zeros_like(each) for each in parameters]
    for array, slope in zip(parameters, gradient, strict=True):
        for index in np.ndindex(array.shape):
            here = array[index]
            array[index] = here + step
            above = function(parameters)
            array[index] = here - step
            below = function(parameters)
            array[index] = here
            slope[index] = (above - below) / (2 * step)
    return gradient


def normal_log_density(mean: Array, log_std: Array, action: Array) -> Array:
    """The sum over components of log N(action; mean, std^2)."""
    std = np.exp(log_std)
    each = np.log(1 / (std * np.sqrt(2 * np.pi))) - (action - mean) ** 2 / (2 * std**2)
    return np.asarray(each.sum(axis=-1))


def lambda_returns(
    reward: Array, value: Array, end_value: Array, ended: Sequence[int], gamma: float, lam: float
) -> Array:
    """Algorithm 4's G^lambda by its explicit sum.

    `value` is v(S_t). `end_value` is what follows where an episode or the batch ends: 0 after a terminal, so that the
    longest return is the paper's G_t, else v of the last successor.
    """
    returns = np.zeros(len(reward))
    for t in range(len(reward)):
        end = next((j for j in range(t, len(reward)) if ended[j]), len(reward) - 1) + 1

        def rewards(n: int, t: int = t) -> float:
            return float(sum(gamma ** (j - 1) * reward[t + j - 1] for j in range(1, n + 1)))

        longest = end - t
        whole = rewards(longest) + gamma**longest * end_value[end - 1]
        shorter = [rewards(n) + gamma**n * value[t + n] for n in range(1, longest)]
        returns[t] = lam ** (longest - 1) * whole + (1 - lam) * sum(
            lam ** (n - 1) * g for n, g in enumerate(shorter, start=1)
        )
    return returns


def random_transitions(
    count: int,
    observation_size: int = 3,
    action_size: int = 2,
    terminated: Sequence[int] = (),
    truncated: Sequence[int] = (),
    seed: int = 0,
) -> Transition:
    """Transitions in the order of time, where S' is the next S unless an episode ended at one of the given places."""
    random = np.random.default_rng(seed)
    observation = random.normal(size=(count, observation_size))
    successor = np.vstack([observation[1:], random.normal(size=(1, observation_size))])
    for place in (*terminated, *truncated):
        successor[place] = random.normal(size=observation_size)
    parts: list[Any] = [
        observation,
        random.uniform(-0.9, 0.9, size=(count, action_size)),
        random.normal(size=count),
        successor,
        np.isin(np.arange(count), terminated).astype(float),
        np.isin(np.arange(count), truncated).astype(float),
    ]
    return Transition(*parts)


def filled_buffer(*columns: Transition, capacity: int | None = None) -> Buffer:
    """A buffer with one column for each copy's transitions, its rows laid out here and not by the buffer's own hand."""
    parts = [np.stack([np.asarray(part) for part in each], axis=1) for each in zip(*columns, strict=True)]
    table = np.concatenate([part.reshape(*part.shape[:2], -1) for part in parts], axis=2)
    count, copies, numbers = table.shape
    ring = np.zeros((capacity or count, copies, numbers))
    for row in range(count):
        ring[row % len(ring)] = table[row]
    return Buffer(
        rows=jnp.asarray(ring),
        stored=jnp.asarray(count, jnp.int32),
        newest_successor=jnp.asarray(parts[3][-1]),
        observation_size=parts[0].shape[2],
        action_size=parts[1].shape[2],
    )


def shapes_of(agent: Agent, observation_size: int = 3, action_size: int = 2) -> Any:  # noqa: ANN401 - an agent's own state
    """What a fresh state looks like, without the time to compute one."""
    return jax.eval_shape(lambda: agent.initialize(jax.random.key(0), observation_size, action_size))


def randomized(shapes: Any, scale: float = 0.5, seed: int = 0) -> Any:  # noqa: ANN401 - any tree
    """Normal numbers in a tree of shapes: weights that let networks bend, as those of fresh agents do not."""
    random = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: jnp.asarray(scale * random.normal(size=leaf.shape), leaf.dtype), shapes)


def zeros(shapes: Any) -> Any:  # noqa: ANN401 - any tree
    return jax.tree.map(lambda leaf: jnp.asarray(np.zeros(leaf.shape), leaf.dtype), shapes)


def rows_of(transitions: Transition, first: int, last: int | None = None) -> Transition:
    rows: Transition = jax.tree.map(lambda part: part[first:last], transitions)
    return rows
