from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.tasks.physics import sine_and_cosine


@pytest.mark.parametrize("span", [1.0, 10.0, 1000.0])
@pytest.mark.parametrize(("i", "exact"), [(0, np.sin), (1, np.cos)])
def test_sine_and_cosine_are_right_to_float32(span: float, i: int, exact: Callable[[Any], Any]) -> None:
    angles = np.concatenate([np.linspace(-span, span, 100_001), np.arange(-8, 9) * np.pi / 4 * span / 8])
    angles = angles.astype(np.float32)
    ours = np.asarray(jax.jit(sine_and_cosine)(jnp.asarray(angles))[i], np.float64)
    assert np.abs(ours - exact(angles.astype(np.float64))).max() < 2e-7


def test_it_adds_its_steps_to_a_program_and_no_call() -> None:
    """It is traced once and by itself; a call would give XLA another program, and perhaps other last bits."""
    steps = jax.make_jaxpr(jax.vmap(lambda angle: sine_and_cosine(angle)[0]))(jnp.zeros(3, jnp.float32))
    assert "_of_float32" not in str(steps)
    assert len(steps.eqns) > 30
