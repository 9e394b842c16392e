"""A cart-pole's swing-up in closed form: cartpole swingup of dm_control, with a settable time step (episodes of 10 s).

The model is that of dm_control's cartpole.xml as MuJoCo simulates it, with its Runge-Kutta method of fourth order: a
cart on a rail with soft ends, and a capsule as the pole. At the original's time step of 10 ms it is MuJoCo to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, inf, log, pi, sin
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cycletime.duration import Duration
from cycletime.tasks.closed_form import ClosedFormTask, Numbers, State
from cycletime.tasks.physics import Values, runge_kutta, sine_and_cosine
from cycletime.tasks.render import AMBER, FLOOR, INK, SLATE, Canvas, Frame

GRAVITY = 9.81
CART_MASS, CART_DAMPING, STRONGEST_FORCE = 1.0, 5e-4, 10.0
POLE_MASS, POLE_DAMPING, POLE_LENGTH, POLE_RADIUS = 0.1, 2e-6, 1.0, 0.045
RAIL_END = 1.8
START_SPREAD = 0.01

_CAPS_MASS = POLE_MASS * 4 * POLE_RADIUS / (4 * POLE_RADIUS + 3 * POLE_LENGTH)
_POLE_INERTIA = (  # of a capsule across its axis: the cylinder, and the two half spheres at its ends
    (POLE_MASS - _CAPS_MASS) * (3 * POLE_RADIUS**2 + POLE_LENGTH**2) / 12
    + _CAPS_MASS * (2 * POLE_RADIUS**2 / 5 + POLE_LENGTH * (3 * POLE_RADIUS + 2 * POLE_LENGTH) / 8)
)
# The mass matrix is [[A, B cos], [B cos, C]].
_A, _B = CART_MASS + POLE_MASS, POLE_MASS * POLE_LENGTH / 2
_C = _POLE_INERTIA + POLE_MASS * (POLE_LENGTH / 2) ** 2

# MuJoCo's soft limit: solref (0.08, 1), and the default solimp (0.9, 0.95, 0.001, 0.5, 2).
_LIMIT_TIME_S, _SOFTEST, _STIFFEST, _SOFT_WIDTH = 0.08, 0.9, 0.95, 0.001
_LIMIT_STIFFNESS, _LIMIT_DAMPING = 1 / (_STIFFEST * _LIMIT_TIME_S) ** 2, 2 / (_STIFFEST * _LIMIT_TIME_S)
_MOBILITY_UPRIGHT = _C / (_A * _C - _B**2)
"""How far the cart gives way with the pole upright, by which MuJoCo scales a limit's softness in every pose."""

_PLACE_MARGIN, _SPEED_MARGIN = 2.0, 5.0
_DECAY = log(10)
"""The Gaussian tolerances of dm_control fall to 0.1 at their margins."""


class CartPoleState(NamedTuple):
    """The cart, and the pole with its angle from upright."""

    x: jax.Array
    angle: jax.Array
    cart_speed: jax.Array
    pole_speed: jax.Array
    env_steps: jax.Array


@dataclass(frozen=True)
class CartPole(ClosedFormTask):
    title: ClassVar = "Cart-Pole"
    state_type: ClassVar = CartPoleState
    usual_env_dt: ClassVar = Duration("2ms")
    original_dt: ClassVar = Duration("10ms")
    time_limit: ClassVar = Duration("10s")
    shortest_episode: ClassVar = time_limit
    action_size: ClassVar = 1
    # The rail's ends give way to a cart of 20 m/s by 0.6 m. Pushing along brings the pole to 80 rad/s in an episode.
    observation_limits: ClassVar = MappingProxyType({"x": 3.0, "cos_th": 1.0, "sin_th": 1.0, "v": 100.0, "w": 500.0})
    state_limits: ClassVar = MappingProxyType({"x": RAIL_END, "th": inf, "v": 20.0, "w": 20.0})

    def reset(self, key: jax.Array) -> State:
        x, angle, v, w = START_SPREAD * jax.random.normal(key, (4,), self.dtype)
        return self.start(x, pi + angle, v, w)

    def draw_start(self, rng: np.random.Generator) -> Numbers:
        x, angle, v, w = (START_SPREAD * rng.standard_normal() for _ in range(4))
        return x, pi + angle, v, w

    def picture(self, numbers: Numbers, caption: str = "") -> Frame:
        x, angle = numbers[:2]
        canvas = Canvas(640, 400, pixels_per_m=130, origin=(320, 210))
        canvas.box((-2.3, -1.35), (2.3, 1.35), 0.05, FLOOR)
        canvas.bar((-RAIL_END - 0.24, 0.0), (RAIL_END + 0.24, 0.0), 0.025, SLATE)
        for post in (-RAIL_END - 0.24, RAIL_END + 0.24):  # the cart's middle stops at the rail's end
            canvas.bar((post, -0.12), (post, 0.12), 0.03, SLATE)
        canvas.box((x - 0.16, -0.08), (x + 0.16, 0.08), 0.04, INK)
        canvas.bar((x, 0.0), (x + POLE_LENGTH * sin(angle), POLE_LENGTH * cos(angle)), 0.045, AMBER)
        canvas.ring((x, 0.0), 0.055, INK)
        return canvas.picture(caption)

    def observe(self, state: CartPoleState) -> jax.Array:
        sine, cosine = sine_and_cosine(state.angle)
        return jnp.stack([state.x, cosine, sine, state.cart_speed, state.pole_speed])

    def _advance(self, state: CartPoleState, action: jax.Array) -> tuple[CartPoleState, jax.Array, jax.Array]:
        action = jnp.clip(action[0], -1, 1)
        force = STRONGEST_FORCE * action
        x, angle, v, w = runge_kutta(lambda now: _slopes(now, force), state[:4], float(self.env_dt))
        after = CartPoleState(x, angle, v, w, state.env_steps + 1)
        return after, self.step_share * _reward(after, action), jnp.zeros((), jnp.bool)


def _slopes(numbers: Values, force: jax.Array) -> Values:
    x, angle, v, w = numbers
    sine, cosine = sine_and_cosine(angle)
    on_cart = force - CART_DAMPING * v + _B * sine * w**2
    on_pole = _B * GRAVITY * sine - POLE_DAMPING * w
    per_det = 1 / (_A * _C - (_B * cosine) ** 2)
    free = (_C * on_cart - _B * cosine * on_pole) * per_det
    on_cart += _limit_force(x, v, free, _C * per_det)
    return v, w, (_C * on_cart - _B * cosine * on_pole) * per_det, (_A * on_pole - _B * cosine * on_cart) * per_det


def _limit_force(x: jax.Array, v: jax.Array, free: jax.Array, mobility: jax.Array) -> jax.Array:
    """What a rail's end does to the cart, as MuJoCo's constraint of one row, solved exactly; zero inside."""
    # `free` is the cart's acceleration without the end, `mobility` what a unit force gives to it.
    inwards = jnp.where(x < 0, 1.0, -1.0).astype(x.dtype)
    beyond = jnp.abs(x) - RAIL_END
    part = jnp.clip(beyond / _SOFT_WIDTH, 0, 1)
    stiff = _SOFTEST + (_STIFFEST - _SOFTEST) * jnp.where(part < 0.5, 2 * part**2, 1 - 2 * (1 - part) ** 2)
    wanted = _LIMIT_STIFFNESS * stiff * beyond - _LIMIT_DAMPING * inwards * v
    softness = (1 - stiff) / stiff * _MOBILITY_UPRIGHT
    push = jnp.maximum(wanted - inwards * free, 0) / (mobility + softness)
    return jnp.where(beyond > 0, inwards * push, 0)


def _reward(after: CartPoleState, action: jax.Array) -> jax.Array:
    _, cosine = sine_and_cosine(after.angle)
    upright = (1 + cosine) / 2
    centred = (1 + jnp.exp(-_DECAY * (after.x / _PLACE_MARGIN) ** 2)) / 2
    gentle = (5 - action**2) / 5
    slow = (1 + jnp.exp(-_DECAY * (after.pole_speed / _SPEED_MARGIN) ** 2)) / 2
    return upright * gentle * slow * centred
