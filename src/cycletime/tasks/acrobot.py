"""An acrobot's swing-up in closed form: Gymnasium's Acrobot-v1 with a settable time step, and all torques from -1 to 1.

Two links hang from a bar, and a motor between them swings the tip above a line; episodes last 100 s at most. The
integrator is the original's Runge-Kutta method of fourth order, with steps of 200 ms there.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi, sin
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cycletime.duration import Duration
from cycletime.tasks.closed_form import ClosedFormTask, Numbers, State
from cycletime.tasks.physics import Values, runge_kutta, sine_and_cosine
from cycletime.tasks.render import AMBER, BLUE, FLOOR, INK, SHADE, Canvas, Frame

GRAVITY = 9.8
MASS, LENGTH, CENTRE, INERTIA = 1.0, 1.0, 0.5, 1.0
"""Of each link; the inertia is about its centre."""
FASTEST_1, FASTEST_2 = 4 * pi, 9 * pi
START_RANGE = 0.1
GOAL_HEIGHT = 1.0
_TURN = 2 * pi


class AcrobotState(NamedTuple):
    upper: jax.Array
    lower: jax.Array
    upper_speed: jax.Array
    lower_speed: jax.Array
    env_steps: jax.Array


@dataclass(frozen=True)
class Acrobot(ClosedFormTask):
    title: ClassVar = "Acrobot"
    state_type: ClassVar = AcrobotState
    usual_env_dt: ClassVar = Duration("4ms")
    original_dt: ClassVar = Duration("200ms")
    time_limit: ClassVar = Duration("100s")
    # The line is 24 J above the start, and a torque of 1 Nm at 9 pi rad/s at most brings them in 0.86 s.
    shortest_episode: ClassVar = Duration("800ms")
    action_size: ClassVar = 1
    observation_limits: ClassVar = MappingProxyType(
        {"cos_th1": 1.0, "sin_th1": 1.0, "cos_th2": 1.0, "sin_th2": 1.0, "w1": FASTEST_1, "w2": FASTEST_2}
    )
    state_limits: ClassVar = MappingProxyType({"th1": pi, "th2": pi, "w1": FASTEST_1, "w2": FASTEST_2})

    def reset(self, key: jax.Array) -> State:
        return self.start(*jax.random.uniform(key, (4,), self.dtype, -START_RANGE, START_RANGE))

    def draw_start(self, rng: np.random.Generator) -> Numbers:
        """As `reset`; the original rounds to float32."""
        return tuple(rng.uniform(-START_RANGE, START_RANGE, 4).astype(np.float32).tolist())

    def picture(self, numbers: Numbers, caption: str = "") -> Frame:
        """The links from the side, and the line that the tip has to pass."""
        upper, both = numbers[0], numbers[0] + numbers[1]
        knee = (LENGTH * sin(upper), -LENGTH * cos(upper))
        tip = (knee[0] + LENGTH * sin(both), knee[1] - LENGTH * cos(both))
        canvas = Canvas(480, 480, pixels_per_m=95, origin=(240, 240))
        canvas.box((-2.3, -2.3), (2.3, 2.3), 0.08, FLOOR)
        for dash in range(-16, 16):
            canvas.bar((0.14 * dash, GOAL_HEIGHT), (0.14 * dash + 0.06, GOAL_HEIGHT), 0.01, SHADE)
        canvas.bar((0.0, 0.0), knee, 0.09, BLUE)
        canvas.bar(knee, tip, 0.08, AMBER)
        for joint in ((0.0, 0.0), knee):
            canvas.ring(joint, 0.1, INK)
        return canvas.picture(caption)

    def observe(self, state: AcrobotState) -> jax.Array:
        sin_1, cos_1 = sine_and_cosine(state.upper)
        sin_2, cos_2 = sine_and_cosine(state.lower)
        return jnp.stack([cos_1, sin_1, cos_2, sin_2, state.upper_speed, state.lower_speed])

    def _advance(self, state: AcrobotState, action: jax.Array) -> tuple[AcrobotState, jax.Array, jax.Array]:
        torque = jnp.clip(action[0], -1, 1)
        upper, lower, w1, w2 = runge_kutta(lambda now: _slopes(now, torque), state[:4], float(self.env_dt))
        after = AcrobotState(
            _within_a_turn(upper),
            _within_a_turn(lower),
            jnp.clip(w1, -FASTEST_1, FASTEST_1),
            jnp.clip(w2, -FASTEST_2, FASTEST_2),
            state.env_steps + 1,
        )
        height = -sine_and_cosine(after.upper)[1] - sine_and_cosine(after.upper + after.lower)[1]
        above = height > GOAL_HEIGHT
        return after, jnp.where(above, 0.0, -self.step_share).astype(self.dtype), above


def _within_a_turn(angle: jax.Array) -> jax.Array:
    return angle - _TURN * jnp.round(angle / _TURN)


def _slopes(numbers: Values, torque: jax.Array) -> Values:
    """Speeds and accelerations, as in Sutton and Barto's book."""
    upper, lower, w1, w2 = numbers
    sin_1, _ = sine_and_cosine(upper)
    sin_2, cos_2 = sine_and_cosine(lower)
    sin_12, _ = sine_and_cosine(upper + lower)
    coupling = MASS * LENGTH * CENTRE
    m11 = MASS * (2 * CENTRE**2 + LENGTH**2) + 2 * coupling * cos_2 + 2 * INERTIA
    m12 = MASS * CENTRE**2 + coupling * cos_2 + INERTIA
    m22 = MASS * CENTRE**2 + INERTIA
    weight_2 = MASS * CENTRE * GRAVITY * sin_12
    weight_1 = MASS * (CENTRE + LENGTH) * GRAVITY * sin_1 + weight_2
    on_upper = weight_1 - coupling * sin_2 * (w2**2 + 2 * w1 * w2)
    on_lower = torque - coupling * sin_2 * w1**2 - weight_2
    w2_dot = (on_lower + m12 / m11 * on_upper) / (m22 - m12**2 / m11)
    return w1, w2, -(m12 * w2_dot + on_upper) / m11, w2_dot
