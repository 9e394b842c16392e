"""The Reacher Task in closed form: a two-link arm brings its fingertip to a target (env_dt 2 ms, episodes of 2.4 s).

PyBullet's ReacherBulletEnv as the paper modified it, to rounding, with its quirks: reported link poses are one step
late, the energy cost takes the raw action though the torque is clipped, and the elbow may start beyond its limit.
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
from cycletime.tasks.render import BLUE, FLOOR, GREEN, GRID, INK, RED, SHADE, SKY, SLATE, WHITE, Canvas, Frame, Point

LINK_MASS, LINK_INERTIA = 0.03560471552353649, 1.4835298232074667e-4
TIP_MASS, TIP_INERTIA = 0.0041887902047863905, 1.6755160819145562e-7
LINK_CENTRE, LINK_LENGTH, ELBOW_TO_TIP = 0.05000000074505806, 0.10000000149011612, 0.10999999940395355
ELBOW_LIMIT = 3.0
STRONGEST_TORQUE = 0.05
TARGET_RANGE, ANGLE_RANGE = 0.27, 3.14

# The mass matrix is [[A + B + 2HC, B + HC], [B + HC, B]] with C the elbow's cosine.
_A = LINK_INERTIA + LINK_MASS * LINK_CENTRE**2 + (LINK_MASS + TIP_MASS) * LINK_LENGTH**2
_B = LINK_INERTIA + TIP_INERTIA + LINK_MASS * LINK_CENTRE**2 + TIP_MASS * ELBOW_TO_TIP**2
_H = (LINK_MASS * LINK_CENTRE + TIP_MASS * ELBOW_TO_TIP) * LINK_LENGTH

_DISTANCE_WEIGHT = 100.0
_STEP_SHARE = 0.125
"""The costs were made for steps of 16 ms; a step of 2 ms pays its share. Distance telescopes and needs none."""
_POWER_WEIGHT, _TORQUE_WEIGHT, _STUCK_WEIGHT = 0.1, 0.01, 0.1
_STUCK_FROM = 0.99
_SPEED_SCALE = 0.1


class ReacherState(NamedTuple):
    q1: jax.Array
    q2: jax.Array
    w1: jax.Array
    w2: jax.Array
    late_q1: jax.Array
    late_q2: jax.Array
    """The angles one step ago, which the reported fingertip belongs to."""
    target_x: jax.Array
    target_y: jax.Array
    potential: jax.Array
    """Minus the weighted distance of the reported fingertip from the target, at the end of the last cycle."""
    env_steps: jax.Array


@dataclass(frozen=True)
class Reacher(ClosedFormTask):
    """The paper's Reacher Task."""

    title: ClassVar = "Reacher"
    usual_env_dt: ClassVar = Duration("2ms")
    time_limit: ClassVar = Duration("2.4s")
    shortest_episode: ClassVar = time_limit
    action_size: ClassVar = 2
    # Bullet holds speeds below 100 rad/s, so that the elbow passes its limit by no more than 0.2 rad. A target beyond
    # its own limit it would push inwards during the episode.
    observation_limits: ClassVar = MappingProxyType(
        {"target_x": TARGET_RANGE, "target_y": TARGET_RANGE, "tip_x_from_target": 0.5, "tip_y_from_target": 0.5}
        | {"cos_q1": 1.0, "sin_q1": 1.0, "w1 / 10": 10.0, "q2 / 3": 1.1, "w2 / 10": 10.0}
    )
    state_limits: ClassVar = MappingProxyType(
        {"q1": inf, "q2": 3.2, "w1": 100.0, "w2": 100.0, "tx": TARGET_RANGE, "ty": TARGET_RANGE}
    )

    def reset(self, key: jax.Array) -> ReacherState:
        target_key, angle_key = jax.random.split(key)
        x, y = jax.random.uniform(target_key, (2,), self.dtype, -TARGET_RANGE, TARGET_RANGE)
        q1, q2 = jax.random.uniform(angle_key, (2,), self.dtype, -ANGLE_RANGE, ANGLE_RANGE)
        return self.start(q1, q2, jnp.zeros_like(q1), jnp.zeros_like(q2), x, y)

    def start(self, *numbers: jax.Array) -> ReacherState:
        q1, q2, w1, w2, target_x, target_y = (jnp.asarray(number, self.dtype) for number in numbers)
        nothing, no_steps = jnp.zeros((), self.dtype), jnp.zeros((), jnp.int32)
        state = ReacherState(q1, q2, w1, w2, q1, q2, target_x, target_y, nothing, no_steps)
        return state._replace(potential=self._potential(state))

    def numbers(self, state: ReacherState) -> tuple[jax.Array, ...]:
        return state.q1, state.q2, state.w1, state.w2, state.target_x, state.target_y

    def draw_start(self, rng: np.random.Generator) -> Numbers:
        """As `reset`; an elbow angle beyond its limit of 3 is possible, as it is in the original."""
        tx, ty = (rng.uniform(-TARGET_RANGE, TARGET_RANGE) for _ in range(2))
        q1, q2 = (rng.uniform(-ANGLE_RANGE, ANGLE_RANGE) for _ in range(2))
        return q1, q2, 0.0, 0.0, tx, ty

    def picture(self, numbers: Numbers, caption: str = "") -> Frame:
        """From above: arena, target, the arm's two links and its fingertip."""
        q1, q2, target = numbers[0], numbers[1], (numbers[4], numbers[5])
        elbow = (0.1 * cos(q1), 0.1 * sin(q1))
        wrist = (elbow[0] + 0.1 * cos(q1 + q2), elbow[1] + 0.1 * sin(q1 + q2))
        tip = (elbow[0] + 0.11 * cos(q1 + q2), elbow[1] + 0.11 * sin(q1 + q2))
        canvas = Canvas(480, 480, pixels_per_m=700, origin=(240, 240))
        canvas.box((-0.3, -0.3), (0.3, 0.3), 0.02, SLATE)
        canvas.box((-0.29, -0.29), (0.29, 0.29), 0.01, FLOOR)
        for line in (-0.2, -0.1, 0.0, 0.1, 0.2):
            canvas.bar((line, -0.29), (line, 0.29), 0.0006, GRID)
            canvas.bar((-0.29, line), (0.29, line), 0.0006, GRID)
        for radius, colour in ((0.017, (250, 219, 216)), (0.011, RED), (0.004, WHITE)):
            canvas.disc(target, radius, colour)
        for start, end in (((0.0, 0.0), elbow), (elbow, tip)):
            canvas.bar(_below(start), _below(end), 0.012, SHADE)
        canvas.bar(elbow, wrist, 0.01, SKY)
        canvas.disc(tip, 0.01, GREEN)
        canvas.bar((0.0, 0.0), elbow, 0.012, BLUE)
        for joint, radius in (((0.0, 0.0), 0.017), (elbow, 0.013)):
            canvas.ring(joint, radius, INK)
        return canvas.picture(caption)

    def observe(self, state: ReacherState) -> jax.Array:
        sin_1, cos_1 = sine_and_cosine(state.q1)
        away_x, away_y = self._tip_from_target(state)
        arm = [cos_1, sin_1, _SPEED_SCALE * state.w1, state.q2 / ELBOW_LIMIT, _SPEED_SCALE * state.w2]
        return jnp.stack([state.target_x, state.target_y, away_x, away_y, *arm])

    def _advance(self, state: ReacherState, action: jax.Array) -> tuple[ReacherState, jax.Array, jax.Array]:
        dt = float(self.env_dt)
        torque = [STRONGEST_TORQUE * jnp.clip(force, -1, 1) for force in action]
        q2, w1, w2 = state.q2, state.w1, state.w2
        sin_2, cos_2 = sine_and_cosine(q2)
        m11, m12, m22 = _A + _B + 2 * _H * cos_2, _B + _H * cos_2, _B
        per_det = 1 / (_A * _B - (_H * cos_2) ** 2)
        drag_1, drag_2 = _drag(w1, w2, sin_2, cos_2)
        force_1 = torque[0] + _H * sin_2 * (2 * w1 * w2 + w2 * w2) - drag_1
        force_2 = torque[1] - _H * sin_2 * w1 * w1 - drag_2
        w1 = limited_speed(w1 + dt * (m22 * force_1 - m12 * force_2) * per_det)
        w2 = limited_speed(w2 + dt * (m11 * force_2 - m12 * force_1) * per_det)
        impulse = limit_impulse(q2, ELBOW_LIMIT, w2, m11 * per_det, dt)
        w1 = limited_speed(w1 - impulse * m12 * per_det)
        w2 = limited_speed(w2 + impulse * m11 * per_det)
        after = state._replace(
            q1=state.q1 + dt * w1,
            q2=q2 + dt * w2,
            w1=w1,
            w2=w2,
            late_q1=state.q1,
            late_q2=q2,
            env_steps=state.env_steps + 1,
        )
        return after, -_STEP_SHARE * _cost(after, action), jnp.zeros((), jnp.bool)

    def _finish(self, before: ReacherState, after: ReacherState) -> tuple[ReacherState, jax.Array]:
        """The potential differences of a cycle's steps sum to the difference between its ends."""
        potential = self._potential(after)
        return after._replace(potential=potential), potential - before.potential

    def _potential(self, state: ReacherState) -> jax.Array:
        away_x, away_y = self._tip_from_target(state)
        return -_DISTANCE_WEIGHT * jnp.sqrt(away_x**2 + away_y**2)

    def _tip_from_target(self, state: ReacherState) -> tuple[jax.Array, jax.Array]:
        sin_1, cos_1 = sine_and_cosine(state.late_q1)
        sin_12, cos_12 = sine_and_cosine(state.late_q1 + state.late_q2)
        tip_x = LINK_LENGTH * cos_1 + ELBOW_TO_TIP * cos_12
        tip_y = LINK_LENGTH * sin_1 + ELBOW_TO_TIP * sin_12
        return tip_x - state.target_x, tip_y - state.target_y


def _below(point: Point) -> Point:
    return point[0] + 0.004, point[1] - 0.006


def _drag(w1: jax.Array, w2: jax.Array, sin_2: jax.Array, cos_2: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The damping of the three bodies as torques on the joints; velocities in the frame of the first link."""
    w12 = w1 + w2
    link_x, link_y = -w12 * LINK_CENTRE * sin_2, w1 * LINK_LENGTH + w12 * LINK_CENTRE * cos_2
    tip_x, tip_y = -w12 * ELBOW_TO_TIP * sin_2, w1 * LINK_LENGTH + w12 * ELBOW_TO_TIP * cos_2
    on_first = LINK_MASS * damping_factor(jnp.abs(LINK_CENTRE * w1))
    on_link = LINK_MASS * damping_factor(jnp.sqrt(link_x**2 + link_y**2))
    on_tip = TIP_MASS * damping_factor(jnp.sqrt(tip_x**2 + tip_y**2))
    drag_2 = (
        (LINK_INERTIA + TIP_INERTIA) * damping_factor(jnp.abs(w12)) * w12
        + on_link * LINK_CENTRE * (link_y * cos_2 - link_x * sin_2)
        + on_tip * ELBOW_TO_TIP * (tip_y * cos_2 - tip_x * sin_2)
    )
    drag_1 = (
        drag_2
        + LINK_INERTIA * damping_factor(jnp.abs(w1)) * w1
        + on_first * w1 * LINK_CENTRE**2
        + LINK_LENGTH * (on_link * link_y + on_tip * tip_y)
    )
    return drag_1, drag_2


def _cost(after: ReacherState, action: jax.Array) -> jax.Array:
    """Power, torque and being stuck at the elbow's limit. The action is the raw one, however far beyond 1."""
    power = jnp.abs(action[0] * _SPEED_SCALE * after.w1) + jnp.abs(action[1] * _SPEED_SCALE * after.w2)
    torque = jnp.abs(action[0]) + jnp.abs(action[1])
    stuck = jnp.abs(after.q2 / ELBOW_LIMIT) > _STUCK_FROM
    return _POWER_WEIGHT * power + _TORQUE_WEIGHT * torque + _STUCK_WEIGHT * stuck
