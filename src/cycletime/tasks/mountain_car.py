"""A car in a valley in closed form: Gymnasium's MountainCarContinuous-v0, with a settable time step.

A step of the original lasts 20 ms here: a swing at the bottom 1.45 s, episodes 19.98 s. Speeds stay in units per step
of the original, as they are observed there. The integrator is semi-implicit Euler.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import sin
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cycletime.duration import Duration
from cycletime.tasks.closed_form import ClosedFormTask, Numbers, State
from cycletime.tasks.physics import sine_and_cosine
from cycletime.tasks.render import BLUE, FLOOR, GREEN, INK, SLATE, Canvas, Frame

POWER, SLOPE = 0.0015, 0.0025
LEFT_END, RIGHT_END, GOAL = -1.2, 0.6, 0.45
FASTEST = 0.07
START_LOW, START_HIGH = -0.6, -0.4
_BONUS, _ACTION_WEIGHT = 100.0, 0.1


class MountainCarState(NamedTuple):
    """Where the car is, and how far it goes in a step of the original."""

    x: jax.Array
    speed: jax.Array
    env_steps: jax.Array


@dataclass(frozen=True)
class MountainCar(ClosedFormTask):
    """Swing a weak car up a mountain; the bonus at its top is not a rate, the cost of the force is."""

    title: ClassVar = "Mountain Car"
    state_type: ClassVar = MountainCarState
    usual_env_dt: ClassVar = Duration("4ms")
    original_dt: ClassVar = Duration("20ms")
    time_limit: ClassVar = 999 * original_dt
    shortest_episode: ClassVar = 12 * original_dt  # 0.85 to go, at most 0.07 in a step of the original
    action_size: ClassVar = 1
    observation_limits: ClassVar = MappingProxyType({"x": -LEFT_END, "v": FASTEST})
    state_limits: ClassVar = MappingProxyType({"x": GOAL, "v": FASTEST})

    def reset(self, key: jax.Array) -> State:
        x = jax.random.uniform(key, (), self.dtype, START_LOW, START_HIGH)
        return self.start(x, jnp.zeros_like(x))

    def draw_start(self, rng: np.random.Generator) -> Numbers:
        return rng.uniform(START_LOW, START_HIGH), 0.0

    def picture(self, numbers: Numbers, caption: str = "") -> Frame:
        canvas = Canvas(640, 440, pixels_per_m=320, origin=(416, 400))
        canvas.box((-1.18, 0.02), (0.58, 1.1), 0.04, FLOOR)
        places = np.linspace(LEFT_END, RIGHT_END, 61).tolist()
        for left, right in pairwise(places):
            canvas.bar((left, _height(left)), (right, _height(right)), 0.008, SLATE)
        top = (GOAL, _height(GOAL))
        canvas.bar(top, (top[0], top[1] + 0.14), 0.005, INK)
        canvas.box((top[0], top[1] + 0.11), (top[0] + 0.06, top[1] + 0.14), 0.005, GREEN)
        canvas.ring((numbers[0], _height(numbers[0]) + 0.035), 0.035, BLUE)
        return canvas.picture(caption)

    def observe(self, state: MountainCarState) -> jax.Array:
        return jnp.stack([state.x, state.speed])

    def _advance(self, state: MountainCarState, action: jax.Array) -> tuple[MountainCarState, jax.Array, jax.Array]:
        share = self.step_share
        _, cosine = sine_and_cosine(3 * state.x)
        speed = state.speed + share * (POWER * jnp.clip(action[0], -1, 1) - SLOPE * cosine)
        speed = jnp.clip(speed, -FASTEST, FASTEST)
        x = jnp.clip(state.x + share * speed, LEFT_END, RIGHT_END)
        speed = jnp.where((x == LEFT_END) & (speed < 0), 0, speed)
        arrived = (x >= GOAL) & (speed >= 0)
        # As in the original, the cost takes the raw action, though the force is clipped.
        reward = _BONUS * arrived - share * _ACTION_WEIGHT * action[0] ** 2
        return MountainCarState(x, speed, state.env_steps + 1), reward, arrived


def _height(x: float) -> float:
    return 0.45 * sin(3 * x) + 0.55
