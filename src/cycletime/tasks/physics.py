"""What the closed-form tasks compute with: sine and cosine, Runge-Kutta steps, and Bullet's damping and joint limits.

Bullet's multibody solver: semi-implicit Euler; explicit damping that grows with speed; a joint limit as one unilateral
row that is solved exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

_HALF_PI_HIGH = 1.5703125  # few enough bits that its product with a small whole number is exact
_HALF_PI_MIDDLE = 4.837512969970703e-4
_HALF_PI_LOW = 7.549790126404332e-8


def sine_and_cosine(angle: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The sine and the cosine of an angle; float64 goes to XLA's own, which are exact to rounding."""
    if angle.dtype != jnp.float32:
        return jnp.sin(angle), jnp.cos(angle)
    both: tuple[jax.Array, jax.Array] = _of_float32(angle)
    return both


@partial(jax.jit, inline=True)  # traced once, though tasks need it in many places of their programs
def _of_float32(angle: jax.Array) -> tuple[jax.Array, jax.Array]:
    turns = jnp.round(angle * (2 / jnp.pi))
    rest = ((angle - turns * _HALF_PI_HIGH) - turns * _HALF_PI_MIDDLE) - turns * _HALF_PI_LOW
    square = rest * rest
    sine = rest + rest * square * (-1.6666654611e-1 + square * (8.3321608736e-3 - square * 1.9515295891e-4))
    cosine = (
        1
        - 0.5 * square
        + square * square * (4.166664568298827e-2 + square * (-1.388731625493765e-3 + square * 2.443315711809948e-5))
    )
    quadrant = turns.astype(jnp.int32)
    swapped = (quadrant & 1) == 1
    sine, cosine = jnp.where(swapped, cosine, sine), jnp.where(swapped, sine, cosine)
    return jnp.where((quadrant & 2) == 2, -sine, sine), jnp.where(((quadrant + 1) & 2) == 2, -cosine, cosine)


Values = tuple[jax.Array, ...]

_REACHES = (0.0, 0.5, 0.5, 1.0)
_WEIGHTS = (1 / 6, 1 / 3, 1 / 3, 1 / 6)


def runge_kutta(slopes: Callable[[Values], Values], values: Values, dt: float) -> Values:
    """The values after a step. The four stages are a rolled loop: unrolled, it took up to twice as long on a CPU."""

    def stage(carry: tuple[Values, Values], factors: Values) -> tuple[tuple[Values, Values], None]:
        last, total = carry
        reach, weight = factors
        found = slopes(tuple(value + dt * reach * slope for value, slope in zip(values, last, strict=True)))
        return (found, tuple(so_far + weight * slope for so_far, slope in zip(total, found, strict=True))), None

    nothing = tuple(jnp.zeros_like(value) for value in values)
    factors = tuple(jnp.array(each, values[0].dtype) for each in (_REACHES, _WEIGHTS))
    (_, mean), _ = lax.scan(stage, (nothing, nothing), factors)
    return tuple(value + dt * slope for value, slope in zip(values, mean, strict=True))


DAMPING = 0.03999999910593033
"""Bullet's default linear and angular damping, 0.04 as a float32."""
_FASTEST = 100.0
_STRONGEST_IMPULSE = 100.0
_ERROR_REDUCTION = 0.2
_DEEPEST_CORRECTED = 0.03999999910593033
"""A joint further beyond its limit than this is stopped but never pushed back (Bullet's split-impulse branch)."""


def limited_speed(speed: jax.Array) -> jax.Array:
    """Bullet clips every joint coordinate's speed."""
    return jnp.clip(speed, -_FASTEST, _FASTEST)


def damping_factor(speed: jax.Array) -> jax.Array:
    """The damping per unit of mass (or inertia) and velocity: linear and quadratic together."""
    return DAMPING * (1 + speed)


def limit_impulse(
    position: jax.Array, limit: float, speed: jax.Array, mobility: jax.Array, env_dt_s: float
) -> jax.Array:
    """The impulse at a joint's limits, by its position before the step and its speed after the free one."""
    room = limit - jnp.abs(position)
    inwards = jnp.where(position < 0, 1.0, -1.0).astype(position.dtype)
    push_back = jnp.where(room > -_DEEPEST_CORRECTED, -room * (_ERROR_REDUCTION / env_dt_s), 0.0)
    impulse = jnp.clip((push_back - inwards * speed) / mobility, 0.0, _STRONGEST_IMPULSE)
    return jnp.where(room > 0, 0.0, inwards * impulse)
