"""What both tasks take over from Bullet's multibody solver (specs of the tasks: integrator, damping, joint limits).

Semi-implicit Euler; explicit damping that grows with speed; a joint limit as one unilateral row that is solved exactly.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

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
    """The signed impulse at a joint with limits -limit and +limit; zero inside.

    Args:
        position: the joint's position before this step's update.
        limit: where the joint ends on both sides.
        speed: the joint's speed after the free update.
        mobility: the speed that a unit impulse gives to this joint, an entry of the inverse mass matrix.
        env_dt_s: the time step.
    """
    room = limit - jnp.abs(position)
    inwards = jnp.where(position < 0, 1.0, -1.0).astype(position.dtype)
    push_back = jnp.where(room > -_DEEPEST_CORRECTED, -room * (_ERROR_REDUCTION / env_dt_s), 0.0)
    impulse = jnp.clip((push_back - inwards * speed) / mobility, 0.0, _STRONGEST_IMPULSE)
    return jnp.where(room > 0, 0.0, inwards * impulse)
