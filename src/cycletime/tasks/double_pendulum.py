"""The Double Pendulum Task in closed form: a cart that balances two poles (env_dt 4 ms, episodes of at most 16 s).

PyBullet's InvertedDoublePendulumBulletEnv as the paper modified it, to rounding: the upper pole's reported position,
on which reward and termination depend, is one step late.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, inf, sin
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cycletime.duration import Duration
from cycletime.tasks.closed_form import ClosedFormTask, Numbers
from cycletime.tasks.physics import damping_factor, limit_impulse, limited_speed, sine_and_cosine
from cycletime.tasks.render import AMBER, BLUE, FLOOR, INK, SLATE, WHITE, Canvas, Frame

CART_MASS, POLE_MASS, POLE_INERTIA = 10.47197598009977, 4.198739082051421, 0.217564678634353
POLE_CENTRE, POLE_LENGTH = 0.30000001192092896, 0.6000000238418579
GRAVITY = 9.8
RAIL_END = 1.0
STRONGEST_FORCE = 200.0
ANGLE_RANGE = 0.1

_STEP_SHARE = 0.25
"""The reward was made for steps of 16 ms; a step of 4 ms pays its share."""
_ALIVE = 10.0
_SIDE_WEIGHT = 0.01
_TIP_ABOVE_CENTRE, _HEIGHT_WANTED, _FALLEN_BELOW = 0.3, 2.0, 1.0


class DoublePendulumState(NamedTuple):
    """The cart, the lower pole (angle from upright), and the upper pole (angle from the lower one)."""

    x: jax.Array
    lower: jax.Array
    upper: jax.Array
    cart_speed: jax.Array
    lower_speed: jax.Array
    upper_speed: jax.Array
    late_x: jax.Array
    late_y: jax.Array
    """The centre of the upper pole one step ago, as it is reported."""
    env_steps: jax.Array


class _Angles(NamedTuple):
    """Sines and cosines of the lower pole, of the upper pole from upright, and of the angle between them."""

    sin_1: jax.Array
    cos_1: jax.Array
    sin_2: jax.Array
    cos_2: jax.Array
    sin_between: jax.Array
    cos_between: jax.Array


@dataclass(frozen=True)
class DoublePendulum(ClosedFormTask):
    """The paper's Double Pendulum Task."""

    title: ClassVar = "Double Pendulum"
    usual_env_dt: ClassVar = Duration("4ms")
    time_limit: ClassVar = Duration("16s")
    shortest_episode: ClassVar = Duration("100ms")
    action_size: ClassVar = 1
    # Bullet holds speeds below 100. At the rail's ends it gives way to a fast cart, by far less than 10 m.
    observation_limits: ClassVar = MappingProxyType(
        {"x": 10.0, "v": 100.0, "upper_pole_x": 11.0, "cos_th": 1.0, "sin_th": 1.0, "w": 100.0}
        | {"cos_ga": 1.0, "sin_ga": 1.0, "u": 100.0}
    )
    state_limits: ClassVar = MappingProxyType({"x": 1.5, "th": inf, "ga": inf, "v": 100.0, "w": 100.0, "u": 100.0})

    def reset(self, key: jax.Array) -> DoublePendulumState:
        lower, upper = jax.random.uniform(key, (2,), self.dtype, -ANGLE_RANGE, ANGLE_RANGE)
        zero = jnp.zeros((), self.dtype)
        return self.start(zero, lower, upper, zero, zero, zero)

    def start(self, *numbers: jax.Array) -> DoublePendulumState:
        x, lower, upper, v, w, u = (jnp.asarray(number, self.dtype) for number in numbers)
        late_x, late_y = _upper_centre(x, _angles(lower, upper))
        return DoublePendulumState(x, lower, upper, v, w, u, late_x, late_y, jnp.zeros((), jnp.int32))

    def draw_start(self, rng: np.random.Generator) -> Numbers:
        """As `reset`: pybullet_envs restores a saved state before it draws the angles, which only centres the cart."""
        th, ga = (rng.uniform(-ANGLE_RANGE, ANGLE_RANGE) for _ in range(2))
        return 0.0, th, ga, 0.0, 0.0, 0.0

    def picture(self, numbers: Numbers, caption: str = "") -> Frame:
        """From the side; an episode ends when the white dot sinks to the dashed line."""
        x, th, ga = numbers[:3]
        knee = (x + 0.6 * sin(th), 0.6 * cos(th))
        middle = (knee[0] + 0.3 * sin(th + ga), knee[1] + 0.3 * cos(th + ga))
        tip = (knee[0] + 0.6 * sin(th + ga), knee[1] + 0.6 * cos(th + ga))
        canvas = Canvas(640, 440, pixels_per_m=222, origin=(320, 340))
        canvas.box((-1.38, -0.38), (1.38, 1.47), 0.03, FLOOR)
        for dash in range(-18, 18):
            canvas.bar((0.07 * dash, 0.7), (0.07 * dash + 0.03, 0.7), 0.004, (178, 188, 201))
        canvas.bar((-1.15, 0.0), (1.15, 0.0), 0.018, SLATE)
        for post in (-1.16, 1.16):  # the cart's middle stops at 1 m, so the posts stand half a cart further out
            canvas.bar((post, -0.09), (post, 0.09), 0.02, SLATE)
        canvas.box((x - 0.11, -0.08), (x + 0.11, 0.08), 0.03, INK)
        canvas.bar((x, 0.0), knee, 0.04, BLUE)
        canvas.bar(knee, tip, 0.034, AMBER)
        for joint in ((x, 0.0), knee):
            canvas.ring(joint, 0.045, INK)
        canvas.disc(middle, 0.014, WHITE)
        return canvas.picture(caption)

    def observe(self, state: DoublePendulumState) -> jax.Array:
        sin_1, cos_1 = sine_and_cosine(state.lower)
        sin_upper, cos_upper = sine_and_cosine(state.upper)
        cart = [state.x, state.cart_speed, state.late_x]
        return jnp.stack([*cart, cos_1, sin_1, state.lower_speed, cos_upper, sin_upper, state.upper_speed])

    def _advance(
        self, state: DoublePendulumState, action: jax.Array
    ) -> tuple[DoublePendulumState, jax.Array, jax.Array]:
        dt = float(self.env_dt)
        angles = _angles(state.lower, state.upper)
        v, w, u = state.cart_speed, state.lower_speed, state.upper_speed
        force = STRONGEST_FORCE * jnp.clip(action[0], -1, 1)
        cofactors, per_det = _inverse_mass(angles)
        c11, c12, c13, c22, c23, c33 = cofactors
        r1, r2, r3 = _forces(force, v, w, w + u, angles)
        v_dot = (c11 * r1 + c12 * r2 + c13 * r3) * per_det
        w_dot = (c12 * r1 + c22 * r2 + c23 * r3) * per_det
        absolute_dot = (c13 * r1 + c23 * r2 + c33 * r3) * per_det
        v = limited_speed(v + dt * v_dot)
        w = limited_speed(w + dt * w_dot)
        u = limited_speed(u + dt * (absolute_dot - w_dot))
        impulse = limit_impulse(state.x, RAIL_END, v, c11 * per_det, dt) * per_det
        v = limited_speed(v + impulse * c11)
        w = limited_speed(w + impulse * c12)
        u = limited_speed(u + impulse * (c13 - c12))
        late_x, late_y = _upper_centre(state.x, angles)
        after = DoublePendulumState(
            state.x + dt * v, state.lower + dt * w, state.upper + dt * u, v, w, u, late_x, late_y, state.env_steps + 1
        )
        height = late_y + _TIP_ABOVE_CENTRE
        reward = _STEP_SHARE * (_ALIVE - _SIDE_WEIGHT * late_x**2 - (height - _HEIGHT_WANTED) ** 2)
        return after, reward, height <= _FALLEN_BELOW


def _angles(lower: jax.Array, upper: jax.Array) -> _Angles:
    sin_1, cos_1 = sine_and_cosine(lower)
    sin_2, cos_2 = sine_and_cosine(lower + upper)
    return _Angles(sin_1, cos_1, sin_2, cos_2, *sine_and_cosine(upper))


def _upper_centre(x: jax.Array, angles: _Angles) -> tuple[jax.Array, jax.Array]:
    return (
        x + POLE_LENGTH * angles.sin_1 + POLE_CENTRE * angles.sin_2,
        POLE_LENGTH * angles.cos_1 + POLE_CENTRE * angles.cos_2,
    )


def _inverse_mass(angles: _Angles) -> tuple[tuple[jax.Array, ...], jax.Array]:
    """The cofactors (11, 12, 13, 22, 23, 33) of the mass matrix in (x, lower, lower + upper), and 1 / determinant."""
    a11 = CART_MASS + 2 * POLE_MASS
    a12 = POLE_MASS * (POLE_CENTRE + POLE_LENGTH) * angles.cos_1
    a13 = POLE_MASS * POLE_CENTRE * angles.cos_2
    a22 = POLE_INERTIA + POLE_MASS * POLE_CENTRE**2 + POLE_MASS * POLE_LENGTH**2
    a23 = POLE_MASS * POLE_CENTRE * POLE_LENGTH * angles.cos_between
    a33 = POLE_INERTIA + POLE_MASS * POLE_CENTRE**2
    c11, c12, c13 = a22 * a33 - a23 * a23, a13 * a23 - a12 * a33, a12 * a23 - a13 * a22
    c22, c23, c33 = a11 * a33 - a13 * a13, a12 * a13 - a11 * a23, a11 * a22 - a12 * a12
    return (c11, c12, c13, c22, c23, c33), 1 / (a11 * c11 + a12 * c12 + a13 * c13)


def _forces(force: jax.Array, v: jax.Array, w: jax.Array, w12: jax.Array, angles: _Angles) -> tuple[jax.Array, ...]:
    """Generalised forces on (x, lower, lower + upper): drive, gravity, centrifugal terms and damping."""
    s1, c1, s2, c2, sin_between, _ = angles
    p1x, p1z = v + POLE_CENTRE * c1 * w, -POLE_CENTRE * s1 * w
    p2x = v + POLE_LENGTH * c1 * w + POLE_CENTRE * c2 * w12
    p2z = -POLE_LENGTH * s1 * w - POLE_CENTRE * s2 * w12
    on_1 = POLE_MASS * damping_factor(jnp.sqrt(p1x**2 + p1z**2))
    on_2 = POLE_MASS * damping_factor(jnp.sqrt(p2x**2 + p2z**2))
    swing = POLE_MASS * POLE_CENTRE * POLE_LENGTH * sin_between
    r1 = (
        force
        + POLE_MASS * (POLE_CENTRE + POLE_LENGTH) * s1 * w**2
        + POLE_MASS * POLE_CENTRE * s2 * w12**2
        - CART_MASS * damping_factor(jnp.abs(v)) * v
        - on_1 * p1x
        - on_2 * p2x
    )
    r2 = (
        POLE_MASS * GRAVITY * (POLE_CENTRE + POLE_LENGTH) * s1
        + swing * w12**2
        - POLE_INERTIA * damping_factor(jnp.abs(w)) * w
        - on_1 * POLE_CENTRE * (p1x * c1 - p1z * s1)
        - on_2 * POLE_LENGTH * (p2x * c1 - p2z * s1)
    )
    r3 = (
        POLE_MASS * GRAVITY * POLE_CENTRE * s2
        - swing * w**2
        - POLE_INERTIA * damping_factor(jnp.abs(w12)) * w12
        - on_2 * POLE_CENTRE * (p2x * c2 - p2z * s2)
    )
    return r1, r2, r3
