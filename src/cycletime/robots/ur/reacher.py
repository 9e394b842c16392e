"""UR-Reacher-2, the paper's robot task, in pure functions: a UR5's shoulder and elbow bring its flange to a target.

The numbers are those of the authors' runs, and so are the rules: where targets lie, what is observed and paid, and
which commands replace the agent's outside of the safety box and the joints' bounds. Points are in the task's frame,
which is the controller's base frame turned by half a turn about z. All functions also take JAX's arrays, with jax.numpy
as ``xp``; pairs of numbers are of the shoulder and the elbow, or of y and z.
"""

from __future__ import annotations

from math import pi
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cycletime.duration import Duration
from cycletime.robots.ur.kinematics import Array, Solutions, forward, inverse, nearest
from cycletime.robots.ur.types import Joints, MoveJ, SpeedJ, StopJ

Q_REF: Joints = (1.58724391, -2.4, 1.5, -0.71790582, 1.63685572, 1.00910473)
"""The pose that episodes begin in."""
MOVED = slice(1, 3)
"""The joints that the agent moves: shoulder lift and elbow."""
SEEN = slice(1, 3)
"""The coordinates in which targets lie: y and z."""
JOINTS_LOW, JOINTS_HIGH = (-170 * pi / 180, -150 * pi / 180), (-10 * pi / 180, 150 * pi / 180)
"""Bounds of the moved joints."""
TARGETS_LOW, TARGETS_HIGH = (-0.2, -0.3, 0.5), (0.2, 0.4, 1.0)
"""Where targets lie, in metres."""
BOX_LOW, BOX_HIGH = (-0.2, -10.0, 0.4), (0.2, 0.9, 10.0)
"""Where the flange may be."""
BOX_MARGIN_M, JOINT_MARGIN = 0.001, 0.001
SPEED_MAX = 1.0
"""rad/s of each joint: an action of 1."""
ACCELERATION = 2.0
"""Of commands, rad/s^2."""
LINE_S = 0.008
"""How long a speed command works by itself; it is sent again with every package."""
TIME_LIMIT = Duration("4s")
REWARD_DT = Duration("8ms")
"""The time for which the reward was made."""
OBSERVATION_LIMITS = (2 * pi, 2 * pi, 2 * pi, 2 * pi, 2.0, 2.0, 1.0, 1.0)

STOP = StopJ(2.0)
MOVE_TO_START = MoveJ(Q_REF, acceleration=1.4, speed=1.05, time_s=2.0)

_PRECISION_M2 = 0.01
"""The square of the distance within which the precision bonus is paid."""
_RETURN_SPEED = 0.1
"""rad/s, on the way back into the box."""
_OVERSHOOT = 0.05
"""rad within which the arm should stand after it has left the box."""
_LEAST_ACCELERATION, _MOST_ACCELERATION = 2.0, 5.0
_STANDING = 1e-12
"""rad: a way back shorter than this has no direction."""


class Excursion(NamedTuple):
    """Whether the flange has left the safety box, and what was found when it did."""

    outside: Array
    """Whether it is outside."""
    back: Array
    """[2] the angles to return to."""
    entry_speed: Array
    """rad/s of the fastest joint."""


def no_excursion(like: Array, xp: Any = np) -> Excursion:  # noqa: ANN401 - NumPy or jax.numpy
    """The flange is in its box."""
    return Excursion(xp.zeros((), bool), xp.zeros_like(like), xp.zeros_like(like[0]))


def whole_pose(pair: Array, xp: Any = np) -> Array:  # noqa: ANN401
    """[6] the angles of all joints; those that the task does not move stay as they began."""
    shoulder, elbow = pair
    base, *wrist = (xp.full_like(shoulder, angle) for angle in (Q_REF[0], *Q_REF[3:]))
    return xp.stack([base, shoulder, elbow, *wrist])


def tip(q: Array, xp: Any = np) -> Array:  # noqa: ANN401
    """[3] the flange's place in the task's frame, with all six angles."""
    return place_of(forward(q, xp=xp), xp)


def place_of(pose: Array, xp: Any = np) -> Array:  # noqa: ANN401
    """[3] the place of a pose in the task's frame."""
    return xp.stack([-pose[0, 3], -pose[1, 3], pose[2, 3]])


def observation(q: Array, qd: Array, away: Array, action: Array, xp: Any = np) -> Array:  # noqa: ANN401
    """[8] angles, speeds, from the target to the flange, and the previous action."""
    return xp.concatenate([q, qd / SPEED_MAX, away, action / SPEED_MAX])


def reward(away: Array, env_dt: Duration, xp: Any = np) -> Array:  # noqa: ANN401
    """What an environment step pays that ends so far away from the target."""
    squared = xp.sum(away**2)
    return (xp.exp(-squared / _PRECISION_M2) - xp.sqrt(squared)) * float(env_dt / REWARD_DT)


def speed_command(speeds: Array, acceleration: float = ACCELERATION) -> SpeedJ:
    """The line that moves shoulder and elbow."""
    return SpeedJ((0.0, float(speeds[0]), float(speeds[1]), 0.0, 0.0, 0.0), float(acceleration), LINE_S)


def guarded(
    action: Array,
    q: Array,
    qd: Array,
    target_q: Array,
    excursion: Excursion,
    xp: Any = np,  # noqa: ANN401
) -> tuple[Array, Array, Excursion]:
    """[2] the speeds that are commanded for an action, their acceleration, and the excursion from now on.

    Outside of the box the arm goes slowly back; a joint outside of its bounds goes back as fast as the agent wanted to
    move at all. An excursion's way back is found once, when it begins.

    Args:
        action: [2] the agent's.
        q: [2] measured angles.
        qd: [2] measured speeds.
        target_q: [2] angles that the controller is steering to, which tell what is outside.
        excursion: As it was.
        xp: NumPy or jax.numpy.
    """
    wanted = SPEED_MAX * xp.clip(action, -1, 1)
    pose = forward(whole_pose(target_q, xp), xp=xp)
    outside = xp.logical_not(_within(place_of(pose, xp), BOX_LOW, BOX_HIGH))
    fastest = xp.max(xp.abs(qd))
    begins = outside & xp.logical_not(excursion.outside)
    back = xp.where(begins, _way_back(pose, q, xp), excursion.back)
    entry_speed = xp.where(begins, fastest, excursion.entry_speed)
    way = back - q
    length = xp.sqrt(xp.sum(way**2) + _STANDING**2)
    within = _joints_turned_back(wanted, q, target_q, xp)
    speeds = xp.where(outside, way * (_RETURN_SPEED / length), within)
    braking = xp.clip(fastest * entry_speed / _OVERSHOOT, _LEAST_ACCELERATION, _MOST_ACCELERATION)
    acceleration = xp.where(outside, braking, xp.full_like(braking, ACCELERATION))
    return speeds, acceleration, Excursion(outside, back, entry_speed)


def _joints_turned_back(wanted: Array, q: Array, target_q: Array, xp: Any) -> Array:  # noqa: ANN401
    over = xp.logical_not(_within(target_q, JOINTS_LOW, JOINTS_HIGH))
    low, high = (xp.asarray(bound, q.dtype) for bound in (JOINTS_LOW, JOINTS_HIGH))
    back = xp.clip(q, low + JOINT_MARGIN, high - JOINT_MARGIN) - q
    return xp.where(over & (back != 0), xp.sign(back) * xp.max(xp.abs(wanted)), wanted)


def _way_back(pose: Array, q: Array, xp: Any) -> Array:  # noqa: ANN401
    """[2] the angles with the flange at the nearest point in the box, its direction kept; where it is, if none are."""
    low, high = (xp.asarray(bound, q.dtype) for bound in (BOX_LOW, BOX_HIGH))
    inside = xp.clip(place_of(pose, xp), low + BOX_MARGIN_M, high - BOX_MARGIN_M)
    column = xp.stack([-inside[0], -inside[1], inside[2], xp.ones_like(inside[0])])[:, None]
    moved = xp.concatenate([pose[:, :3], column], axis=1)
    solution, found = nearest(inverse(moved, Q_REF[5], xp=xp), whole_pose(q, xp), xp)
    return xp.where(found, solution[MOVED], q)


def target_of(drawn: Array, xp: Any = np) -> tuple[Array, Array]:  # noqa: ANN401
    """[2] the target that two drawn angles lead to, and whether they lead to one.

    The flange's pose is solved for all angles again, and of the solutions whose shoulder and elbow alone bring it into
    the targets' box, the one nearest to the episodes' first pose counts: often not the drawn angles themselves.
    """
    pose = forward(whole_pose(drawn, xp), xp=xp)
    solutions = inverse(pose, Q_REF[5], xp=xp)
    pairs = solutions.angles[:, MOVED].T
    fits = _may_be_target(tip(whole_pose(pairs, xp), xp), pairs)
    allowed = Solutions(solutions.angles, solutions.valid & fits)
    chosen, found = nearest(allowed, xp.asarray(Q_REF, drawn.dtype), xp)
    return tip(whole_pose(chosen[MOVED], xp), xp)[SEEN], found & _may_be_target(place_of(pose, xp), drawn)


def _may_be_target(place: Array, pair: Array) -> Array:
    return (
        _within(place, BOX_LOW, BOX_HIGH, BOX_MARGIN_M)
        & _within(place, TARGETS_LOW, TARGETS_HIGH)
        & _within(pair, JOINTS_LOW, JOINTS_HIGH)
    )


def _within(values: Array, low: Joints, high: Joints, margin: float = 0.0) -> Array:
    within: Array = True
    for value, lowest, highest in zip(values, low, high, strict=True):
        within = within & (lowest + margin <= value) & (value <= highest - margin)
    return within


def draw_target(rng: np.random.Generator) -> NDArray[np.float64]:
    """[2] a target."""
    while True:
        target, found = target_of(rng.uniform(JOINTS_LOW, JOINTS_HIGH))
        if found:
            return np.asarray(target, np.float64)
