"""The UR5 and UR-Reacher-2, the paper's robot task: kinematics both ways, the servo, and the task's numbers and rules.

Plain functions that the closed-form task and the arm's environment, driver and simulator share, so that the driver's
process loads neither Gymnasium nor JAX. Functions with ``xp`` also take JAX's arrays, with jax.numpy.

Kinematics: the base's frame is the controller's. With Denavit-Hartenberg's A = Rz(q) Tz(d) Tx(a) Rx(alpha) and alpha =
(pi/2, 0, 0, pi/2, -pi/2, 0), joints 2 to 4 turn about one direction t = (sin q1, -cos q1, 0), so that upper arm and
forearm move in the plane of r = (cos q1, sin q1, 0) and z. With u = r cos q234 + z sin q234 and w = r sin q234 - z cos
q234, the flange's axes are x = cos q6 (u cos q5 + t sin q5) - w sin q6, y = -sin q6 (u cos q5 + t sin q5) - w cos q6,
and z = t cos q5 - u sin q5; it is d4 t + d5 w + d6 z away from the forearm's end. The inverse takes this apart.

The task: the numbers are those of the authors' runs, and so are the rules: observation, reward, targets, and which
commands replace the agent's outside of the safety box and the joints' bounds. Points are in the task's frame, which is
the controller's base frame turned by half a turn about z. Pairs are of the shoulder and the elbow, or of y and z.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import cos, exp, pi, sin
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cycletime.duration import Duration

Array: TypeAlias = Any
"""An array of ``xp``, NumPy or jax.numpy."""


@dataclass(frozen=True)
class Geometry:
    """The lengths of an arm in metres, by the names of Denavit and Hartenberg."""

    d1: float
    a2: float
    a3: float
    d4: float
    d5: float
    d6: float


UR5 = Geometry(d1=0.089159, a2=-0.425, a3=-0.39225, d4=0.10915, d5=0.09465, d6=0.0823)
UR5E = Geometry(d1=0.1625, a2=-0.425, a3=-0.3922, d4=0.1333, d5=0.0997, d6=0.0996)

_BRANCHES = tuple(product((1.0, -1.0), repeat=3))
"""Shoulder left or right, wrist up or down, elbow up or down."""
_SINGULAR = 1e-6
"""Below this sine of q5 the flange turns about the axis of joint 4, and q6 can be anything."""
_ON_AXIS_M = 1e-9
"""Nearer to the base's axis the direction to a place is anything."""
_REACH_TOLERANCE = 1e-6
"""By which rounding may put a cosine beyond 1 at a straight arm; in float32 more is not to be had."""


class Solutions(NamedTuple):
    angles: Array
    """[8, 6] within half a turn of zero."""
    valid: Array
    """[8] which of them are solutions."""


def forward(q: Array, geometry: Geometry = UR5, xp: Any = np) -> Array:  # noqa: ANN401 - NumPy or jax.numpy
    """[4, 4] the pose of the flange, with all six angles."""
    (s1, c1), (s5, c5), (s6, c6) = ((xp.sin(q[joint]), xp.cos(q[joint])) for joint in (0, 4, 5))
    q23 = q[1] + q[2]
    s234, c234 = xp.sin(q23 + q[3]), xp.cos(q23 + q[3])
    zero, one = xp.zeros_like(s1), xp.ones_like(s1)
    r, t, up = xp.stack([c1, s1, zero]), xp.stack([s1, -c1, zero]), xp.stack([zero, zero, one])
    u, w = c234 * r + s234 * up, s234 * r - c234 * up
    bent = c5 * u + s5 * t
    x, y, z = c6 * bent - s6 * w, -s6 * bent - c6 * w, c5 * t - s5 * u
    along = geometry.a2 * xp.cos(q[1]) + geometry.a3 * xp.cos(q23)
    above = geometry.d1 + geometry.a2 * xp.sin(q[1]) + geometry.a3 * xp.sin(q23)
    place = along * r + above * up + geometry.d4 * t + geometry.d5 * w + geometry.d6 * z
    return xp.concatenate([xp.stack([x, y, z, place], axis=1), xp.stack([zero, zero, zero, one])[None]])


def flange_position(q: Sequence[float], geometry: Geometry = UR5) -> tuple[float, float, float]:
    """Where the flange is: the last column of `forward`, of plain numbers, for who asks with every package."""
    q1, q2, q3, q4, q5, _ = q
    q23 = q2 + q3
    q234 = q23 + q4
    s1, c1, s234, c234, s5 = sin(q1), cos(q1), sin(q234), cos(q234), sin(q5)
    along = geometry.a2 * cos(q2) + geometry.a3 * cos(q23) + geometry.d5 * s234 - geometry.d6 * s5 * c234
    above = geometry.d1 + geometry.a2 * sin(q2) + geometry.a3 * sin(q23) - geometry.d5 * c234 - geometry.d6 * s5 * s234
    across = geometry.d4 + geometry.d6 * cos(q5)
    return along * c1 + across * s1, along * s1 - across * c1, above


def inverse(pose: Array, wrist: float, geometry: Geometry = UR5, xp: Any = np) -> Solutions:  # noqa: ANN401
    """The angles that reach a pose, eight of them at the most; ``wrist`` is q6 where the pose leaves it open."""
    shoulder, wrist_side, elbow = xp.asarray(_BRANCHES, pose.dtype).T
    x, y, z, place = (pose[:3, column] for column in range(4))
    centre = place - geometry.d6 * z
    reach = xp.sqrt(centre[0] ** 2 + centre[1] ** 2)
    beside = geometry.d4 / xp.maximum(reach, _ON_AXIS_M)
    q1 = xp.arctan2(centre[1], centre[0]) + shoulder * xp.arccos(xp.clip(beside, -1, 1)) + pi / 2
    s1, c1 = xp.sin(q1), xp.cos(q1)

    def along(vector: Array) -> Array:
        return vector[0] * c1 + vector[1] * s1

    def across(vector: Array) -> Array:
        return vector[0] * s1 - vector[1] * c1

    q5 = wrist_side * xp.arccos(xp.clip(across(z), -1, 1))
    s5 = xp.sin(q5)
    turned = xp.arctan2(-across(y) * wrist_side, across(x) * wrist_side)  # the side is the sign of s5
    q6 = xp.where(xp.abs(s5) < _SINGULAR, wrist, turned)
    s6, c6 = xp.sin(q6), xp.cos(q6)
    w_along, w_up = -(s6 * along(x) + c6 * along(y)), -(s6 * x[2] + c6 * y[2])
    q234 = xp.arctan2(w_along, -w_up)
    end_along = along(centre) - geometry.d5 * w_along
    end_up = centre[2] - geometry.d1 - geometry.d5 * w_up
    squares = end_along**2 + end_up**2 - geometry.a2**2 - geometry.a3**2
    bend = squares / (2 * geometry.a2 * geometry.a3)
    q3 = elbow * xp.arccos(xp.clip(bend, -1, 1))
    q2 = xp.arctan2(end_up, end_along) - xp.arctan2(geometry.a3 * xp.sin(q3), geometry.a2 + geometry.a3 * xp.cos(q3))
    angles = xp.stack([q1, q2, q3, q234 - q2 - q3, q5, q6], axis=1)
    valid = (xp.abs(beside) <= 1 + _REACH_TOLERANCE) & (xp.abs(bend) <= 1 + _REACH_TOLERANCE)
    return Solutions(xp.mod(angles + pi, 2 * pi) - pi, valid)


def nearest_solution(solutions: Solutions, reference: Array, xp: Any = np) -> tuple[Array, Array]:  # noqa: ANN401
    """The index of the valid solution that is nearest to given angles, and whether there is one at all."""
    away = xp.sum((solutions.angles - reference) ** 2, axis=1)
    return xp.argmin(xp.where(solutions.valid, away, xp.inf)), xp.any(solutions.valid)


@dataclass(frozen=True)
class ArmModel:
    period_s: float = 0.008
    """Of the controller: 8 ms for CB2 and CB3, 2 ms for the e-Series."""
    servo_rate: float = 60.0
    """Natural frequency of the servo's error, rad/s."""
    idle_deceleration: float = 10.0
    """With which the arm brakes when a line has ended and no other came, rad/s^2; unknown on hardware."""
    speed_limit: float = pi
    """Of every joint, rad/s; faster commands are scaled down."""


def servo(model: ArmModel, q: Any, qd: Any, before: Any, after: Any) -> tuple[Any, Any]:  # noqa: ANN401 - also JAX's
    """Angles and speeds after a period in which the reference went straight from one value to another.

    With e the error, e'' + 2 w e' + w^2 e = 0, and so e(t) = (e(0) + (e'(0) + w e(0)) t) exp(-w t).
    """
    rate, h = model.servo_rate, model.period_s
    slope = (after - before) / h
    error, drift = q - before, qd - slope
    pull = drift + rate * error
    fade = exp(-rate * h)
    return after + fade * (error + h * pull), slope + fade * (drift - rate * h * pull)


Pair: TypeAlias = Sequence[Any]
"""Two numbers, or scalars of JAX."""

Q_REF: tuple[float, ...] = (1.58724391, -2.4, 1.5, -0.71790582, 1.63685572, 1.00910473)
"""The pose that episodes begin in."""
MOVED_JOINTS = slice(1, 3)
"""The joints that the agent moves: shoulder lift and elbow."""
TARGET_AXES = slice(1, 3)
"""The coordinates in which targets lie: y and z."""
JOINTS_LOW, JOINTS_HIGH = (-170 * pi / 180, -150 * pi / 180), (-10 * pi / 180, 150 * pi / 180)
"""Bounds of the moved joints."""
BOX_LOW, BOX_HIGH = (-0.2, -10.0, 0.4), (0.2, 0.9, 10.0)
"""Where the flange may be, in metres."""
JOINT_MARGIN, BOX_MARGIN_M = 0.001, 0.001
"""How far within its bounds a joint is turned back to, in rad, and the flange into its box."""
SPEED_MAX = 1.0
"""rad/s of each joint: an action of 1."""
ACCELERATION = 2.0
"""Of commands, rad/s^2."""
TIME_LIMIT = Duration("4s")
REWARD_DT = Duration("8ms")
"""The time for which the reward was made."""
OBSERVATION_LIMITS: Mapping[str, float] = MappingProxyType(
    {"q_shoulder": 2 * pi, "q_elbow": 2 * pi, "qd_shoulder": pi, "qd_elbow": pi}
    | {"flange_y_from_target": 3.0, "flange_z_from_target": 3.0, "action_shoulder 1 step ago": 1.0}
    | {"action_elbow 1 step ago": 1.0}
)
"""The observed numbers, in order: rad, rad/s, metres, and the previous action."""

_PRECISION_M2 = 0.01
"""The square of the distance within which the precision bonus is paid."""
_RETURN_SPEED = 0.1
"""rad/s, on the way back into the box."""
_OVERSHOOT = 0.05
"""rad within which the arm should stand after it has left the box."""
_LEAST_ACCELERATION, _MOST_ACCELERATION = 2.0, 5.0
_SHORTEST_WAY = 1e-12
"""rad: a way back shorter than this has no direction."""

# With base and wrist as they are, the arm is one of two links in a plane: forearm and wrist are one.
_S1, _C1, _S4, _C4 = sin(Q_REF[0]), cos(Q_REF[0]), sin(Q_REF[3]), cos(Q_REF[3])
_BENT = UR5.d6 * sin(Q_REF[4])
_ALONG, _BESIDE = UR5.a3 + UR5.d5 * _S4 - _BENT * _C4, UR5.d5 * _C4 + _BENT * _S4
_ACROSS = UR5.d4 + UR5.d6 * cos(Q_REF[4])


class Excursion(NamedTuple):
    """Whether the flange has left the safety box, and what was found when it did."""

    outside: Any = False
    back: Pair = (0.0, 0.0)
    """The angles to return to."""
    entry_speed: Any = 0.0
    """rad/s of the fastest joint."""


def flange(upper: Pair, lower: Pair) -> tuple[Any, Any, Any]:
    """The flange's place, with sine and cosine of the shoulder's angle, and of the shoulder's and elbow's together."""
    (s2, c2), (s23, c23) = upper, lower
    reach = UR5.a2 * c2 + _ALONG * c23 + _BESIDE * s23
    height = UR5.d1 + UR5.a2 * s2 + _ALONG * s23 - _BESIDE * c23
    return -_C1 * reach - _S1 * _ACROSS, _C1 * _ACROSS - _S1 * reach, height


def flange_at(pair: Pair) -> tuple[float, float, float]:
    both = pair[0] + pair[1]
    return flange((sin(pair[0]), cos(pair[0])), (sin(both), cos(both)))


def tip(q: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """[3] the flange's place, with all six angles."""
    x, y, z = flange_position(q.tolist() if isinstance(q, np.ndarray) else q)
    return np.array((-x, -y, z))


def position_of(pose: Array, xp: Any = np) -> Array:  # noqa: ANN401 - NumPy or jax.numpy
    """[3, ...] the place of a pose, which is in the controller's frame."""
    return xp.stack([-pose[0, 3], -pose[1, 3], pose[2, 3]])


def elbow_at(shoulder: float) -> tuple[float, float, float]:
    """The elbow's place, for pictures."""
    reach = UR5.a2 * cos(shoulder)
    return -_C1 * reach, -_S1 * reach, UR5.d1 + UR5.a2 * sin(shoulder)


def observation(q: Pair, qd: Pair, away: Pair, action: Pair, xp: Any = np) -> Array:  # noqa: ANN401
    """[8] angles, speeds, from the target to the flange, and the previous action."""
    return xp.stack([*q, *(speed / SPEED_MAX for speed in qd), *away, *action])


def reward(away: Pair, env_dt: Duration, xp: Any = np) -> Any:  # noqa: ANN401
    """What an environment step pays that ends so far away from the target."""
    squared = away[0] ** 2 + away[1] ** 2
    return (xp.exp(-squared / _PRECISION_M2) - xp.sqrt(squared)) * float(env_dt / REWARD_DT)


def in_box(place: Sequence[Any], margin_m: float = 0.0) -> Any:  # noqa: ANN401
    return within(place, BOX_LOW, BOX_HIGH, margin_m)


def within(values: Sequence[Any], low: tuple[float, ...], high: tuple[float, ...], margin: float = 0.0) -> Any:  # noqa: ANN401
    inside: Any = True
    for value, lowest, highest in zip(values, low, high, strict=True):
        inside = inside & (lowest + margin <= value) & (value <= highest - margin)
    return inside


def guard_action(
    action: Pair,
    q: Pair,
    qd: Pair,
    target_q: Pair,
    excursion: Excursion,
    xp: Any = np,  # noqa: ANN401
) -> tuple[tuple[Any, Any], Any]:
    """The speeds that are commanded for an action, and their acceleration.

    Outside of the box the arm goes slowly back; a joint outside of its bounds goes back as fast as the agent wanted to
    move at all. What is outside is told by ``target_q``, the angles that the controller is steering to.
    """
    way = [back - angle for back, angle in zip(excursion.back, q, strict=True)]
    hurry = _RETURN_SPEED / xp.sqrt(way[0] ** 2 + way[1] ** 2 + _SHORTEST_WAY**2)
    turned = _turn_joints_back([SPEED_MAX * xp.clip(each, -1, 1) for each in action], q, target_q, xp)
    shoulder, elbow = (
        xp.where(excursion.outside, each * hurry, speed) for each, speed in zip(way, turned, strict=True)
    )
    braking = fastest_joint(qd, xp) * excursion.entry_speed / _OVERSHOOT
    acceleration = xp.where(excursion.outside, xp.clip(braking, _LEAST_ACCELERATION, _MOST_ACCELERATION), ACCELERATION)
    return (shoulder, elbow), acceleration


def fastest_joint(speeds: Pair, xp: Any = np) -> Any:  # noqa: ANN401
    """The larger of two speeds, whatever their directions."""
    return xp.maximum(xp.abs(speeds[0]), xp.abs(speeds[1]))


def _turn_joints_back(wanted: Pair, q: Pair, target_q: Pair, xp: Any) -> list[Any]:  # noqa: ANN401
    over = xp.logical_not(within(target_q, JOINTS_LOW, JOINTS_HIGH))
    speed = fastest_joint(wanted, xp)
    turned = []
    for each, angle, low, high in zip(wanted, q, JOINTS_LOW, JOINTS_HIGH, strict=True):
        back = xp.clip(angle, low + JOINT_MARGIN, high - JOINT_MARGIN) - angle
        turned.append(xp.where(over & (back != 0), xp.sign(back) * speed, each))
    return turned


TARGETS_LOW, TARGETS_HIGH = (-0.2, -0.3, 0.5), (0.2, 0.4, 1.0)
"""The box in which targets lie, in metres."""


def full_pose(pair: Array, xp: Any = np) -> Array:  # noqa: ANN401 - NumPy or jax.numpy
    """[6, ...] the angles of all joints; those that the task does not move stay as they began."""
    shoulder, elbow = pair
    base, *wrist = (xp.full_like(shoulder, angle) for angle in (Q_REF[0], *Q_REF[3:]))
    return xp.stack([base, shoulder, elbow, *wrist])


def target_of(drawn: Array, xp: Any = np) -> tuple[Array, Array]:  # noqa: ANN401
    """[2] the target that two drawn angles lead to, and whether they lead to one.

    The flange's pose is solved for all angles again, and of the solutions whose shoulder and elbow alone bring it into
    the targets' box, the one nearest to the episodes' first pose counts: often not the drawn angles themselves.
    """
    pose = forward(full_pose(drawn, xp), xp=xp)
    solutions = inverse(pose, Q_REF[5], xp=xp)
    pairs = solutions.angles[:, MOVED_JOINTS].T
    places = position_of(forward(full_pose(pairs, xp), xp=xp), xp)
    allowed = Solutions(solutions.angles, solutions.valid & _may_be_target(places, pairs))
    chosen, found = nearest_solution(allowed, xp.asarray(Q_REF, drawn.dtype), xp)
    return places[TARGET_AXES, chosen], found & _may_be_target(position_of(pose, xp), drawn)


def _may_be_target(place: Sequence[Any], pair: Sequence[Any]) -> Any:  # noqa: ANN401
    return (
        in_box(place, BOX_MARGIN_M) & within(place, TARGETS_LOW, TARGETS_HIGH) & within(pair, JOINTS_LOW, JOINTS_HIGH)
    )


def draw_target(rng: np.random.Generator) -> tuple[float, float]:
    while True:
        drawn = rng.uniform(JOINTS_LOW, JOINTS_HIGH).tolist()
        if not _may_be_target(flange_at(drawn), drawn):  # most are not, and the inverse is slow
            continue
        target, found = target_of(np.array(drawn))
        if found:
            y, z = target.tolist()
            return y, z


def update_excursion(excursion: Excursion, q: Pair, qd: Pair, target_q: Pair) -> Excursion:
    """The excursion as it is now; its way back is found once, when it begins."""
    if in_box(flange_at(target_q)):
        return Excursion()
    if excursion.outside:
        return excursion
    back = return_pose(np.array(q, np.float64), np.array(target_q, np.float64))
    return Excursion(True, tuple(back.tolist()), float(fastest_joint(qd)))


def return_pose(q: Array, target_q: Array, xp: Any = np) -> Array:  # noqa: ANN401
    """[2] the angles with the flange at the nearest place in the box, its direction kept; where it is, if none are."""
    pose = forward(full_pose(target_q, xp), xp=xp)
    low, high = (xp.asarray(bound, q.dtype) for bound in (BOX_LOW, BOX_HIGH))
    x, y, z = xp.clip(position_of(pose, xp), low + BOX_MARGIN_M, high - BOX_MARGIN_M)
    column = xp.stack([-x, -y, z, xp.ones_like(x)])[:, None]
    moved = xp.concatenate([pose[:, :3], column], axis=1)
    solutions = inverse(moved, Q_REF[5], xp=xp)
    chosen, found = nearest_solution(solutions, full_pose(q, xp), xp)
    return xp.where(found, solutions.angles[chosen, MOVED_JOINTS], q)
