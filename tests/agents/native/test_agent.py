"""The kernel's gradient steps against the formulas in float64 and against the agent's own steps in JAX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from cycletime.agents import PPOAgent
from cycletime.agents.native import agent as native
from cycletime.agents.native.agent import NativePPOAgent
from cycletime.agents.native.library import native_library
from cycletime.agents.networks import (
    EPSILON,
    MEAN_DECAY,
    SQUARE_DECAY,
    AdamState,
    GaussianPolicy,
    Layer,
    Network,
    Parameters,
)
from cycletime.agents.ppo import PPOState, Sample
from cycletime.errors import InputError

pytestmark = pytest.mark.usefixtures("native_kernel", "compiled_quickly")

SETS = ("avx512", "avx2", "baseline")
Array: TypeAlias = NDArray[np.float64]
Descend: TypeAlias = Callable[[PPOState, Sample, jax.Array], PPOState]


def samples(count: int, observation: int, action: int) -> Sample:
    """Any numbers; ratios on both sides of the clip, advantages of both signs."""
    draw = np.random.default_rng(count).normal
    return Sample(
        observation=_float32(draw(size=(count, observation))),
        action=_float32(draw(size=(count, action))),
        advantage=_float32(draw(size=count)),
        lambda_return=_float32(draw(size=count)),
        old_log_probability=_float32(draw(-1.4 * action, 0.3, size=count)),
        weight=None,
    )


def begun(agent: PPOAgent, data: Sample) -> PPOState:
    """Any weights; drawn without JAX, which would compile something for each shape."""
    draw = np.random.default_rng(0).normal
    sizes = (data.observation.shape[1], *agent.hidden)

    def network(outputs: int) -> Network:
        shapes = zip(sizes, (*sizes[1:], outputs), strict=True)
        return tuple(Layer(_float32(draw(size=each) / each[0] ** 0.5), _float32(draw(size=each[1]))) for each in shapes)

    actions = data.action.shape[1]
    parameters = Parameters(GaussianPolicy(network(actions), _float32(0.1 * draw(size=actions))), network(1))
    zeros = jax.tree.map(np.zeros_like, parameters)
    return PPOState(parameters, AdamState(np.int32(0), zeros, zeros))  # type: ignore[arg-type]  # NumPy's


def _float32(numbers: Array) -> Any:  # noqa: ANN401 - an array of NumPy, where types say one of JAX
    return numbers.astype(np.float32)


def orders(agent: PPOAgent) -> Any:  # noqa: ANN401
    draw = np.random.default_rng(1)
    return np.stack([draw.permutation(agent.batch) for _ in range(agent.epochs)]).astype(np.int32)


def learned(agent: PPOAgent, data: Sample) -> PPOState:
    after: PPOState = jax.jit(agent.descend)(begun(agent, data), data, orders(agent))
    return after


def through(layers: Any, inputs: Array) -> list[Array]:  # noqa: ANN401 - a tree of arrays
    """What goes into each layer, and what comes out of the last."""
    seen = [inputs]
    for weight, bias in layers[:-1]:
        seen.append(np.tanh(seen[-1] @ weight + bias))
    return [*seen, seen[-1] @ layers[-1][0] + layers[-1][1]]


def slopes(layers: Any, seen: list[Array], slope: Array) -> list[tuple[Array, Array]]:  # noqa: ANN401
    """The gradient of each layer, from that of what came out."""
    found = []
    for (weight, _), inputs in zip(layers[::-1], seen[-2::-1], strict=True):
        found.append((inputs.T @ slope, slope.sum(0)))
        slope = (slope @ weight.T) * (1 - inputs**2)
    return found[::-1]


def gradient(agent: PPOAgent, parameters: Any, part: Any) -> list[Array]:  # noqa: ANN401
    """Of PPO's loss, written out, as the leaves of the parameters' tree."""
    (policy, log_std), value = parameters
    means, values, count = through(policy, part.observation), through(value, part.observation), len(part.advantage)
    away = (part.action - means[-1]) / np.exp(log_std)
    log_probability = (-0.5 * away**2 - log_std - 0.5 * np.log(2 * np.pi)).sum(1)
    ratio = np.exp(log_probability - part.old_log_probability)
    moves = np.where(part.advantage > 0, ratio < 1 + agent.clip, ratio > 1 - agent.clip)
    slope = -(moves * part.advantage * ratio / count)[:, None]
    of_policy = slopes(policy, means, slope * away / np.exp(log_std))
    of_value = slopes(value, values, 2 / count * (values[-1] - part.lambda_return[:, None]))
    return jax.tree.leaves(((of_policy, (slope * (away**2 - 1)).sum(0)), of_value))


def learned_by_formulas(agent: PPOAgent, data: Sample) -> list[list[Array]]:
    """Parameters, and Adam's two averages, as the leaves of their trees in float64."""
    leaves, tree = jax.tree.flatten(begun(agent, data).parameters)
    parameters = [leaf.astype(np.float64) for leaf in leaves]
    mean, square = ([np.zeros_like(leaf) for leaf in parameters] for _ in range(2))
    numbers = jax.tree.map(lambda part: np.asarray(part, np.float64), data)
    _, size, _ = agent.slice_sizes
    slices = [order[first : first + size] for order in orders(agent) for first in range(0, agent.batch, size)]
    for step, chosen in enumerate(slices, 1):
        part = jax.tree.map(lambda part: part[chosen], numbers)  # noqa: B023 - called at once
        found = gradient(agent, jax.tree.unflatten(tree, parameters), part)
        mean = [MEAN_DECAY * m + (1 - MEAN_DECAY) * g for m, g in zip(mean, found, strict=True)]
        square = [SQUARE_DECAY * v + (1 - SQUARE_DECAY) * g**2 for v, g in zip(square, found, strict=True)]
        unbiased = [m / (1 - MEAN_DECAY**step) for m in mean], [v / (1 - SQUARE_DECAY**step) for v in square]
        moves = [agent.learning_rate * m / (np.sqrt(v) + EPSILON) for m, v in zip(*unbiased, strict=True)]
        parameters = [p - move for p, move in zip(parameters, moves, strict=True)]
    return [parameters, mean, square]


def assert_near(psi: PPOState, truth: list[list[Array]], learning_rate: float) -> None:
    """To rounding: the averages in parts of the largest, the parameters in parts of a step."""
    trees = (psi.parameters, psi.optimizer.mean, psi.optimizer.square)
    parameters, *averages = (jax.tree.leaves(each) for each in trees)
    for mine, exact in zip(averages, truth[1:], strict=True):
        for one, other in zip(mine, exact, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5 * float(np.abs(other).max()))
    for one, other in zip(parameters, truth[0], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=learning_rate / 20)


def here() -> list[str]:
    """The instruction sets of this processor, the fastest first: it has all that are slower."""
    return list(SETS[SETS.index(native_library().instructions) :])


def with_instructions(patch: pytest.MonkeyPatch, name: str) -> None:
    chosen = replace(native_library(), instructions=name)
    patch.setattr(native, "native_library", lambda: chosen)


@pytest.mark.parametrize(
    ("sizes", "of"),
    [
        ((9, 2), {"batch": 200, "minibatch": 50}),
        ((3, 1), {"batch": 5, "minibatch": 1}),
        ((5, 3), {"batch": 31, "minibatch": 13, "hidden": (30,)}),  # a short last one
        ((2, 1), {"batch": 140, "minibatch": 70, "hidden": (130, 5), "slices": "even"}),
        ((4, 2), {"batch": 16, "minibatch": 16, "hidden": ()}),
    ],
    ids=str,
)
def test_it_learns_what_the_formulas_say(sizes: tuple[int, int], of: dict[str, Any]) -> None:
    agent = NativePPOAgent(epochs=2, learning_rate=1e-3, **of)
    data = samples(agent.batch, *sizes)
    psi = learned(agent, data)
    assert_near(psi, learned_by_formulas(agent, data), agent.learning_rate)
    assert psi.optimizer.taken == agent.epochs * -(-agent.batch // agent.slice_sizes[1])


def test_each_instruction_set_learns_what_the_formulas_say(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = NativePPOAgent(batch=101, minibatch=67, hidden=(7, 33, 20), epochs=2)  # more than half, and odd in all
    data = samples(101, 17, 4)
    truth = learned_by_formulas(agent, data)
    for name in here():
        with_instructions(monkeypatch, name)
        assert_near(learned(agent, data), truth, agent.learning_rate)


SMALL = PPOAgent(batch=24, minibatch=12, epochs=1, hidden=(8,), learning_rate=1e-3)


@pytest.fixture(scope="module")
def own() -> Descend:
    """The agent's own steps."""
    return jax.jit(SMALL.descend)


@pytest.fixture(scope="module")
def kernel() -> Descend:
    """Those of the kernel."""
    return jax.jit(NativePPOAgent.like(SMALL).descend)


def test_it_learns_what_the_agent_s_own_steps_learn(own: Descend, kernel: Descend) -> None:
    data = samples(24, 3, 1)
    psi, order = begun(SMALL, data), orders(SMALL)
    once, truth = kernel(psi, data, order), own(psi, data, order)
    twice, further = kernel(once, data, order), own(truth, data, order)
    assert twice.optimizer.taken == further.optimizer.taken == 4
    for mine, theirs in zip(jax.tree.leaves(twice), jax.tree.leaves(further), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_the_same_is_computed_bit_for_bit_each_time_and_side_by_side(kernel: Descend) -> None:
    data = samples(24, 3, 1)
    other, order, psi = data._replace(advantage=-data.advantage), orders(SMALL), begun(SMALL, data)
    before = jax.tree.map(np.array, psi)
    alone = [kernel(psi, each, order) for each in (data, other)]
    assert_same(kernel(psi, data, order), alone[0])
    both: Any = jax.tree.map(lambda *each: np.stack(each), data, other)
    together = jax.vmap(kernel, in_axes=(None, 0, None))(psi, both, order)
    for lane, each in enumerate(alone):
        assert_same(jax.tree.map(lambda leaf, lane=lane: leaf[lane], together), each)
    assert_same(jax.tree.map(np.array, psi), before)  # what is given is not changed


def assert_same(one: PPOState, other: PPOState) -> None:
    for mine, theirs in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert mine.tobytes() == theirs.tobytes()


@pytest.mark.parametrize(
    "broken",
    [
        {"observation": np.nan},
        {"observation": np.inf},
        {"action": np.nan},
        {"advantage": np.nan},
        {"lambda_return": np.inf},
        {"old_log_probability": -200.0, "advantage": 1.0},  # a ratio beyond float32 that is clipped
        {"old_log_probability": 200.0, "advantage": -1.0},  # one that is zero
    ],
    ids=lambda broken: " ".join(broken),
)
def test_what_is_not_finite_comes_out_as_it_does_of_the_agent_s_own(
    broken: dict[str, float], own: Descend, kernel: Descend
) -> None:
    data = samples(24, 3, 1)
    for name, value in broken.items():
        getattr(data, name)[5] = value
    psi, order = begun(SMALL, data), orders(SMALL)
    for mine, theirs in zip(
        jax.tree.leaves(kernel(psi, data, order)), jax.tree.leaves(own(psi, data, order)), strict=True
    ):
        np.testing.assert_array_equal(np.isfinite(mine), np.isfinite(theirs))


def test_weights_and_other_precisions_are_refused() -> None:
    agent, data = NativePPOAgent.like(SMALL), samples(24, 3, 1)
    with pytest.raises(InputError, match="learns from float32 without weights"):
        learned(agent, data._replace(weight=jnp.ones(24)))
    with pytest.raises(InputError, match="this is float16"):
        learned(agent, jax.tree.map(lambda part: part.astype(jnp.float16), data))


def test_instructions_that_are_not_here_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with_instructions(monkeypatch, "avx1024")
    with pytest.raises(jax.errors.JaxRuntimeError, match="PPO's kernel is not here for avx1024"):
        learned(NativePPOAgent.like(SMALL), samples(24, 3, 1))
