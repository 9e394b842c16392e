"""UR-Reacher-2 in closed form: the paper's robot task on the simulated arm in lock-step, for studies.

Rules and numbers are `cycletime.ur5`'s, the arm is that of `cycletime.robots.ur.arm`: a CB controller,
which sends a package every 8 ms. An environment step sees the newest one; steps of 10 ms see one, one, one, and two new
ones. A command is sent when an observation was seen and with every package after it, and works two periods later.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, pi
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from cycletime import ur5
from cycletime.duration import Duration
from cycletime.tasks.closed_form import ClosedFormTask, Numbers
from cycletime.tasks.physics import sine_and_cosine
from cycletime.tasks.render import BLUE, FLOOR, GREEN, GRID, INK, RED, SKY, SLATE, WHITE, Canvas, Frame

ARM = ur5.ArmModel()
PERIOD = Duration("8ms")
LATENCY_PERIODS = 1
_TINY = 1e-12

Pair: TypeAlias = tuple[jax.Array, ...]
"""Of the shoulder and the elbow, or of y and z; scalars, since XLA fuses those best."""


class Sent(NamedTuple):
    speeds: Pair
    acceleration: jax.Array


class URReacherState(NamedTuple):
    q: Pair
    qd: Pair
    target_q: Pair
    target_qd: Pair
    pending: tuple[Sent, ...]
    """What was sent with the last packages, the oldest first."""
    action: Pair
    target: Pair
    excursion: ur5.Excursion
    env_steps: jax.Array


@dataclass(frozen=True)
class URReacher(ClosedFormTask):
    """Bring a UR5's flange to a target, with the speeds of its shoulder and its elbow."""

    title: ClassVar = "UR-Reacher-2"
    where: ClassVar = "simulated robot"
    usual_env_dt: ClassVar = Duration("10ms")
    original_dt: ClassVar = Duration("40ms")
    baseline_dt: ClassVar = Duration("40ms")
    time_limit: ClassVar = ur5.TIME_LIMIT
    shortest_episode: ClassVar = ur5.TIME_LIMIT
    action_size: ClassVar = 2
    observation_limits: ClassVar = ur5.OBSERVATION_LIMITS
    state_limits: ClassVar = MappingProxyType(
        {"shoulder": 2 * pi, "elbow": 2 * pi, "target_y": inf, "target_z": inf, "action_1": 1.0, "action_2": 1.0}
    )

    def reset(self, key: jax.Array) -> URReacherState:
        target_key, action_key = jax.random.split(key)
        action = jax.random.uniform(action_key, (2,), self.dtype, -1, 1)
        return self.start(*ur5.Q_REF[ur5.MOVED_JOINTS], *self._draw_target(target_key), *action)

    def _draw_target(self, key: jax.Array) -> jax.Array:
        low, high = (jnp.asarray(bound, self.dtype) for bound in (ur5.JOINTS_LOW, ur5.JOINTS_HIGH))

        def draw(tried: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
            key, draw_key = jax.random.split(tried[0])
            target, found = ur5.target_of(jax.random.uniform(draw_key, (2,), self.dtype, low, high), jnp)
            return key, target, found

        begin = (key, jnp.zeros(2, self.dtype), jnp.zeros((), jnp.bool))
        return lax.while_loop(lambda tried: ~tried[2], draw, begin)[1]

    def start(self, *numbers: Any) -> URReacherState:  # noqa: ANN401 - plain numbers as well
        shoulder, elbow, y, z, *action = (jnp.asarray(number, self.dtype) for number in numbers)
        zero = jnp.zeros_like(shoulder)
        q, rest = (shoulder, elbow), (zero, zero)
        pending = (Sent(rest, jnp.full_like(zero, ur5.ACCELERATION)),) * (1 + LATENCY_PERIODS)
        inside = ur5.Excursion(jnp.zeros_like(zero, jnp.bool), rest, zero)
        return URReacherState(
            q, rest, q, rest, pending, (action[0], action[1]), (y, z), inside, jnp.zeros_like(zero, jnp.int32)
        )

    def numbers(self, state: URReacherState) -> tuple[jax.Array, ...]:
        """The numbers that `start` takes; they leave out how fast the arm is."""
        return (*state.q, *state.target, *state.action)

    def draw_start(self, rng: np.random.Generator) -> Numbers:
        """As `reset`; the previous action is drawn first, as in the original."""
        action = rng.uniform(-1, 1, 2).tolist()
        return (*ur5.Q_REF[ur5.MOVED_JOINTS], *ur5.draw_target(rng), *action)

    def picture(self, numbers: Numbers, caption: str = "") -> Frame:
        target, shoulder = (numbers[2], numbers[3]), (0.0, ur5.UR5.d1)
        elbow, flange = ur5.elbow_at(numbers[0])[1:], ur5.flange_at(numbers[:2])[1:]
        canvas = Canvas(560, 560, pixels_per_m=270, origin=(280, 440))
        canvas.box((-0.9, -0.3), (0.9, 1.4), 0.03, FLOOR)
        canvas.box(ur5.TARGETS_LOW[1:], ur5.TARGETS_HIGH[1:], 0.005, GRID)
        canvas.bar((-0.9, 0.0), (0.9, 0.0), 0.008, SLATE)
        canvas.bar((0.0, 0.0), shoulder, 0.06, INK)
        canvas.ring(target, 0.03, RED)
        canvas.bar(shoulder, elbow, 0.045, BLUE)
        canvas.bar(elbow, flange, 0.035, SKY)
        for joint in (shoulder, elbow):
            canvas.disc(joint, 0.025, WHITE)
        canvas.disc(flange, 0.025, GREEN)
        return canvas.picture(caption)

    def observe(self, state: URReacherState) -> jax.Array:
        seen: jax.Array = ur5.observation(state.q, state.qd, _away(state), state.action, jnp)
        return seen

    def _advance(self, state: URReacherState, action: jax.Array) -> tuple[URReacherState, jax.Array, jax.Array]:
        # What is outside of its bounds, and how it comes back, is a choice without a slope.
        excursion, q, qd, target_q = lax.stop_gradient((_followed(state), state.q, state.qd, state.target_q))
        speeds, acceleration = ur5.guard_action(tuple(action), q, qd, target_q, excursion, jnp)
        shoulder, elbow = jnp.clip(action, -1, 1)
        after = self._with_new_packages(state, Sent(speeds, acceleration))._replace(
            action=(shoulder, elbow), excursion=excursion, env_steps=state.env_steps + 1
        )
        return after, ur5.reward(_away(after), self.env_dt, jnp), jnp.zeros((), jnp.bool)

    def _with_new_packages(self, state: URReacherState, sent: Sent) -> URReacherState:
        """The controller's periods that end within this environment step."""
        ratio = self.env_dt / PERIOD
        always, most = int(ratio), ceil(ratio)
        for _ in range(always):
            state = _period(state, sent)
        if most > always:
            packages = (state.env_steps + jnp.arange(2)) * ratio.numerator // ratio.denominator
            one_more, after = packages[1] - packages[0] > always, _period(state, sent)
            state = jax.tree.map(lambda old, new: jnp.where(one_more, new, old), state, after)
        return state


def _away(state: URReacherState) -> Pair:
    _, y, z = flange_of(state.q)
    return y - state.target[0], z - state.target[1]


def flange_of(q: Pair) -> tuple[jax.Array, jax.Array, jax.Array]:
    return ur5.flange(sine_and_cosine(q[0]), sine_and_cosine(q[0] + q[1]))


def _followed(state: URReacherState) -> ur5.Excursion:
    """As `cycletime.ur5.update_excursion`, for all copies together."""
    before = state.excursion
    outside = ~ur5.in_box(flange_of(state.target_q))
    begins = outside & ~before.outside
    found = _way_back_where(begins, state.q, state.target_q)
    back = jnp.where(begins, found[0], before.back[0]), jnp.where(begins, found[1], before.back[1])
    return ur5.Excursion(outside, back, jnp.where(begins, ur5.fastest_joint(state.qd, jnp), before.entry_speed))


def _way_back_where(needed: jax.Array, q: Pair, target_q: Pair) -> Pair:
    """The inverse kinematics in a loop of one turn or none, which XLA computes only where a copy needs them."""

    # All changes in that turn, since XLA computes what does not before the loop, and so always.
    def find(carry: tuple[jax.Array, Pair, Pair]) -> tuple[jax.Array, Pair, Pair]:
        _, q, target_q = carry
        shoulder, elbow = ur5.return_pose(jnp.stack(q), jnp.stack(target_q), jnp)
        return jnp.zeros_like(needed), (shoulder, elbow), (shoulder, elbow)

    begin = lax.stop_gradient((needed, q, target_q))
    return lax.while_loop(lambda carry: carry[0], find, begin)[1]


def _period(state: URReacherState, sent: Sent) -> URReacherState:
    """One period of the controller, as `cycletime.robots.ur.arm.advance` with a speed command for every package."""
    works, *waits = state.pending
    changes = [wanted - speed for wanted, speed in zip(works.speeds, state.target_qd, strict=True)]
    most = works.acceleration * ARM.period_s
    share = jnp.minimum(1, most / jnp.maximum(ur5.fastest_joint(changes, jnp), _TINY))
    speeds = tuple(speed + share * change for speed, change in zip(state.target_qd, changes, strict=True))
    targets = tuple(angle + ARM.period_s * speed for angle, speed in zip(state.target_q, speeds, strict=True))
    followed = (ur5.servo(ARM, *joint) for joint in zip(state.q, state.qd, state.target_q, targets, strict=True))
    q, qd = zip(*followed, strict=True)
    return state._replace(q=q, qd=qd, target_q=targets, target_qd=speeds, pending=(*waits, sent))
