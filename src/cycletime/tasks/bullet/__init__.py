"""The PyBullet originals of the paper's two simulated tasks, as Gymnasium environments: the closed form's reference.

PyBullet itself (extra ``bullet``) is loaded when an environment is made; its import prints 'pybullet build time: ...'
to the standard error.
"""

from __future__ import annotations

from cycletime.duration import DurationLike
from cycletime.extras import require_extras

with require_extras(__name__):
    from cycletime.tasks.bullet.envs import BulletDoublePendulumEnv, BulletReacherEnv
    from cycletime.tasks.cycle_time import CycleTime

__all__ = ["BulletDoublePendulumEnv", "BulletReacherEnv", "make_double_pendulum", "make_reacher"]


def make_reacher(dt: DurationLike = "16ms", render_mode: str | None = None) -> CycleTime:
    """PyBullet's Reacher Task at a cycle time."""
    return CycleTime(BulletReacherEnv(render_mode), dt)


def make_double_pendulum(dt: DurationLike = "16ms", render_mode: str | None = None) -> CycleTime:
    """PyBullet's Double Pendulum Task at a cycle time."""
    return CycleTime(BulletDoublePendulumEnv(render_mode), dt)
