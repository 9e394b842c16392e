from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.tasks.trigonometry import sine_and_cosine


@pytest.mark.parametrize("span", [1.0, 10.0, 1000.0])
@pytest.mark.parametrize(("i", "exact"), [(0, np.sin), (1, np.cos)])
def test_sine_and_cosine_are_right_to_float32(span: float, i: int, exact: Callable[[Any], Any]) -> None:
    angles = np.concatenate([np.linspace(-span, span, 100_001), np.arange(-8, 9) * np.pi / 4 * span / 8])
    angles = angles.astype(np.float32)
    ours = np.asarray(jax.jit(sine_and_cosine)(jnp.asarray(angles))[i], np.float64)
    assert np.abs(ours - exact(angles.astype(np.float64))).max() < 2e-7
