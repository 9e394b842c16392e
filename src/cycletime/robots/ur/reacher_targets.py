"""Where UR-Reacher-2 puts its targets, and how its arm comes back into the safety box: by inverse kinematics.

Arrays are NumPy's, or JAX's with jax.numpy as ``xp``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cycletime.robots.ur.kinematics import Array, Solutions, forward, inverse, nearest
from cycletime.robots.ur.reacher import (
    BOX_HIGH,
    BOX_LOW,
    BOX_MARGIN_M,
    JOINTS_HIGH,
    JOINTS_LOW,
    MOVED,
    Q_REF,
    SEEN,
    Excursion,
    Pair,
    fastest,
    flange_at,
    in_box,
    place_of,
    within,
)

LOW, HIGH = (-0.2, -0.3, 0.5), (0.2, 0.4, 1.0)
"""The box in which targets lie, in metres."""


def whole_pose(pair: Array, xp: Any = np) -> Array:  # noqa: ANN401 - NumPy or jax.numpy
    """[6, ...] the angles of all joints; those that the task does not move stay as they began."""
    shoulder, elbow = pair
    base, *wrist = (xp.full_like(shoulder, angle) for angle in (Q_REF[0], *Q_REF[3:]))
    return xp.stack([base, shoulder, elbow, *wrist])


def target_of(drawn: Array, xp: Any = np) -> tuple[Array, Array]:  # noqa: ANN401
    """[2] the target that two drawn angles lead to, and whether they lead to one.

    The flange's pose is solved for all angles again, and of the solutions whose shoulder and elbow alone bring it into
    the targets' box, the one nearest to the episodes' first pose counts: often not the drawn angles themselves.
    """
    pose = forward(whole_pose(drawn, xp), xp=xp)
    solutions = inverse(pose, Q_REF[5], xp=xp)
    pairs = solutions.angles[:, MOVED].T
    places = place_of(forward(whole_pose(pairs, xp), xp=xp), xp)
    allowed = Solutions(solutions.angles, solutions.valid & _may_be_target(places, pairs))
    chosen, found = nearest(allowed, xp.asarray(Q_REF, drawn.dtype), xp)
    return places[SEEN, chosen], found & _may_be_target(place_of(pose, xp), drawn)


def _may_be_target(place: Sequence[Any], pair: Sequence[Any]) -> Any:  # noqa: ANN401
    return in_box(place, BOX_MARGIN_M) & within(place, LOW, HIGH) & within(pair, JOINTS_LOW, JOINTS_HIGH)


def draw_target(rng: np.random.Generator) -> tuple[float, float]:
    """A target."""
    while True:
        drawn = rng.uniform(JOINTS_LOW, JOINTS_HIGH).tolist()
        if not _may_be_target(flange_at(drawn), drawn):  # most are not, and the inverse is slow
            continue
        target, found = target_of(np.array(drawn))
        if found:
            y, z = target.tolist()
            return y, z


def followed(excursion: Excursion, q: Pair, qd: Pair, target_q: Pair) -> Excursion:
    """The excursion as it is now; its way back is found once, when it begins."""
    if in_box(flange_at(target_q)):
        return Excursion()
    if excursion.outside:
        return excursion
    back = way_back(np.array(q, np.float64), np.array(target_q, np.float64))
    return Excursion(True, tuple(back.tolist()), float(fastest(qd)))


def way_back(q: Array, target_q: Array, xp: Any = np) -> Array:  # noqa: ANN401
    """[2] the angles with the flange at the nearest place in the box, its direction kept; where it is, if none are."""
    pose = forward(whole_pose(target_q, xp), xp=xp)
    low, high = (xp.asarray(bound, q.dtype) for bound in (BOX_LOW, BOX_HIGH))
    x, y, z = xp.clip(place_of(pose, xp), low + BOX_MARGIN_M, high - BOX_MARGIN_M)
    column = xp.stack([-x, -y, z, xp.ones_like(x)])[:, None]
    moved = xp.concatenate([pose[:, :3], column], axis=1)
    solutions = inverse(moved, Q_REF[5], xp=xp)
    chosen, found = nearest(solutions, whole_pose(q, xp), xp)
    return xp.where(found, solutions.angles[chosen, MOVED], q)
