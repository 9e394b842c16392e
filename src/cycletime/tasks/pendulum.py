"""A pendulum's swing-up in closed form: Gymnasium's Pendulum-v1, with a settable time step (episodes of 10 s).

The integrator is semi-implicit Euler, as in the original: with its steps of 50 ms it is the original to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, inf, pi, sin
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cycletime.duration import Duration
from cycletime.tasks.closed_form import ClosedFormTask, Numbers, State
from cycletime.tasks.physics import sine_and_cosine
from cycletime.tasks.render import AMBER, BLUE, FLOOR, INK, SLATE, Canvas, Frame

GRAVITY, MASS, LENGTH = 10.0, 1.0, 1.0
STRONGEST_TORQUE, FASTEST = 2.0, 8.0
ANGLE_RANGE, SPEED_RANGE = pi, 1.0
_SPEED_WEIGHT, _TORQUE_WEIGHT = 0.1, 0.001


class PendulumState(NamedTuple):
    angle: jax.Array
    speed: jax.Array
    env_steps: jax.Array


@dataclass(frozen=True)
class Pendulum(ClosedFormTask):
    title: ClassVar = "Pendulum"
    state_type: ClassVar = PendulumState
    usual_env_dt: ClassVar = Duration("2ms")
    original_dt: ClassVar = Duration("50ms")
    time_limit: ClassVar = Duration("10s")
    shortest_episode: ClassVar = time_limit
    action_size: ClassVar = 1
    observation_limits: ClassVar = MappingProxyType({"cos_th": 1.0, "sin_th": 1.0, "w": FASTEST})
    state_limits: ClassVar = MappingProxyType({"th": inf, "w": FASTEST})

    def reset(self, key: jax.Array) -> State:
        angle, speed = jax.random.uniform(key, (2,), self.dtype, -1, 1)
        return self.start(ANGLE_RANGE * angle, SPEED_RANGE * speed)

    def draw_start(self, rng: np.random.Generator) -> Numbers:
        high = np.array([ANGLE_RANGE, SPEED_RANGE])
        return tuple(rng.uniform(-high, high).tolist())

    def picture(self, numbers: Numbers, caption: str = "") -> Frame:
        tip = (LENGTH * -sin(numbers[0]), LENGTH * cos(numbers[0]))  # angles grow counter-clockwise, as in the original
        canvas = Canvas(480, 480, pixels_per_m=180, origin=(240, 240))
        canvas.box((-1.2, -1.2), (1.2, 1.2), 0.04, FLOOR)
        canvas.disc((0.0, LENGTH), 0.05, SLATE)
        canvas.disc((0.0, LENGTH), 0.035, FLOOR)
        canvas.bar((0.0, 0.0), tip, 0.05, BLUE)
        canvas.disc(tip, 0.03, AMBER)
        canvas.ring((0.0, 0.0), 0.06, INK)
        return canvas.picture(caption)

    def observe(self, state: PendulumState) -> jax.Array:
        sine, cosine = sine_and_cosine(state.angle)
        return jnp.stack([cosine, sine, state.speed])

    def _advance(self, state: PendulumState, action: jax.Array) -> tuple[PendulumState, jax.Array, jax.Array]:
        dt = float(self.env_dt)
        torque = STRONGEST_TORQUE * jnp.clip(action[0], -1, 1)
        from_upright = jnp.mod(state.angle + pi, 2 * pi) - pi
        cost = from_upright**2 + _SPEED_WEIGHT * state.speed**2 + _TORQUE_WEIGHT * torque**2
        sine, _ = sine_and_cosine(state.angle)
        acceleration = 3 * GRAVITY / (2 * LENGTH) * sine + 3 / (MASS * LENGTH**2) * torque
        speed = jnp.clip(state.speed + dt * acceleration, -FASTEST, FASTEST)
        after = PendulumState(state.angle + dt * speed, speed, state.env_steps + 1)
        return after, -self.step_share * cost, jnp.zeros((), jnp.bool)
