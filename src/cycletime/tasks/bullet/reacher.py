"""The paper's Reacher Task (HighFreqReacherBulletEnv) on PyBullet: two torques bring a fingertip to a target in 2.4 s.

Sources: pybullet_envs' robot_manipulators.py:11-47 and gym_manipulator_envs.py:16-38 with the authors' changes
(pybullet-env-mods/envs/self_aware_reacher_env.py): the true angle of the first joint, a cost beyond the elbow's limit
too, and a time step of 2 ms, to which the costs are scaled.
"""

from __future__ import annotations

from math import cos, sin, sqrt

import numpy as np
from numpy.typing import NDArray

from cycletime.tasks.bullet.world import BulletEnv
from cycletime.tasks.closed_form import Numbers
from cycletime.tasks.reacher import Reacher

_ELBOW_LIMIT = 3.0
_MOST_TORQUE = 0.05
_COST_SCALE = 0.125
"""2 ms / 16 ms: the costs were made for steps of about 16 ms. The progress telescopes, so it is not scaled."""


class BulletReacherEnv(BulletEnv):
    """An arm of two links in the plane, without gravity; the elbow has limits, the shoulder turns freely.

    Observation: target x, y; fingertip minus target x, y (one step late); cos, sin of q1; 0.1 w1; q2/3; 0.1 w2.
    Reward: 100 times the approach (late as well), minus costs of energy and of a stuck elbow. The energy cost takes
    the action as given, while the torque is 0.05 times the action clipped to [-1, 1].
    State (reset option): q1, q2 in rad; w1, w2 in rad/s; tx, ty (the target) in m.
    """

    task = Reacher()
    model = "reacher.xml"
    gravity = 0.0

    def __init__(self, render_mode: str | None = None) -> None:
        """Load the arm and its target."""
        super().__init__(render_mode)
        self._arm = self._world.joints("joint0", "joint1")
        self._target = self._world.joints("target_x", "target_y")
        self._fingertip, self._target_link = self._world.link("fingertip"), self._world.link("target")

    def exact_observation(self) -> NDArray[np.float64]:
        """The observation before it is rounded to float32."""
        return np.array(
            [
                *self._target_joints,
                *self._to_target,
                cos(self._q1),
                sin(self._q1),
                0.1 * self._w1,
                self._q2 / _ELBOW_LIMIT,
                0.1 * self._w2,
            ]
        )

    def _start(self, state: Numbers) -> None:
        q1, q2, w1, w2, *target = state
        self._world.place(self._target, target, (0.0, 0.0))
        self._world.place(self._arm, (q1, q2), (w1, w2))
        # Nothing acts on the target, so that one look serves for the whole episode.
        self._target_joints = [position for position, _ in self._world.state(self._target)]
        self._target_position = self._world.late_position(self._target_link)
        self._read()

    def _read(self) -> None:
        (self._q1, self._w1), (self._q2, self._w2) = self._world.state(self._arm)
        x, y, _ = self._world.late_position(self._fingertip)
        self._to_target = dx, dy = x - self._target_position[0], y - self._target_position[1]
        self._potential = -100 * sqrt(dx * dx + dy * dy)

    def _advance(self, action: list[float]) -> tuple[float, bool, int]:
        potential_before = self._potential
        self._world.advance(self._arm, [_MOST_TORQUE * min(max(a, -1.0), 1.0) for a in action])
        self._read()
        a1, a2 = map(abs, action)  # not clipped: whoever asks for more than there is pays for it
        work = a1 * abs(0.1 * self._w1) + a2 * abs(0.1 * self._w2)
        energy = _COST_SCALE * (-0.10 * work - 0.01 * (a1 + a2))
        stuck = _COST_SCALE * (-0.1 if abs(self._q2 / _ELBOW_LIMIT) > 0.99 else 0.0)
        return self._potential - potential_before + energy + stuck, False, 1

    def _state(self) -> Numbers:
        return (self._q1, self._q2, self._w1, self._w2, *self._target_joints)
