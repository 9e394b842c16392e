"""Adam against Kingma & Ba's Algorithm 1 and against optax; means with and without weights."""

import jax
import jax.numpy as jnp
import numpy as np
import optax  # type: ignore[import-untyped]
import pytest

from cycletime.agents.networks import adam_start, adam_step
from tests.agents.conftest import Array, KingmaBa, arrays_of, assert_trees_close

pytestmark = pytest.mark.usefixtures("compiled_quickly", "float64")


def some_gradients(steps: int) -> list[tuple[Array, Array]]:
    random = np.random.default_rng(1)
    # From huge to tiny, and exactly zero at times: where the bias correction and epsilon show.
    scale = np.array([1e4, 1.0, 1e-4, 1e-9])
    return [(scale * random.normal(size=(3, 4)), random.normal(size=2) * (step % 3 > 0)) for step in range(steps)]


@pytest.mark.parametrize("rate", [3e-4, 0.1])
def test_fifty_steps_are_those_of_kingma_and_ba_and_of_optax(rate: float) -> None:
    parameters = (jnp.asarray(np.linspace(-1, 1, 12).reshape(3, 4)), jnp.asarray(np.ones(2)))
    expected, reference = arrays_of(parameters), KingmaBa(arrays_of(parameters), rate)
    theirs, optimizer = parameters, optax.adam(rate)
    step, update = jax.jit(adam_step), jax.jit(optimizer.update)
    state, their_state = jax.jit(adam_start)(parameters), optimizer.init(parameters)
    for gradient in some_gradients(50):
        parameters, state = step(parameters, gradient, state, rate)
        expected = reference.step(expected, list(gradient))
        assert_trees_close(parameters, expected, atol=1e-12)
        updates, their_state = update(gradient, their_state)
        theirs = optax.apply_updates(theirs, updates)
    assert_trees_close(parameters, arrays_of(theirs), atol=1e-12)
    assert state.taken == 50


def test_the_first_step_goes_down_the_gradient_by_the_learning_rate() -> None:
    step = jax.jit(lambda parameters, gradient: adam_step(parameters, gradient, adam_start(parameters), 0.25))
    after, _ = step(np.ones(3), np.array([5.0, -0.01, 0.0]))
    np.testing.assert_allclose(after, [0.75, 1.25, 1.0], atol=1e-6)
