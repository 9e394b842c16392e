"""The paper's Double Pendulum Task (HighFreqInvertedDoublePendulumBulletEnv) on PyBullet: balance two poles on a cart.

Sources: pybullet_envs' robot_pendula.py:60-92 and gym_pendulum_envs.py:67-89 with the authors' changes
(pybullet-env-mods/envs/high_freq_inverted_pendulum_env.py): a time step of 4 ms, to which the reward is scaled.
"""

from __future__ import annotations

from math import cos, sin

import numpy as np
from numpy.typing import NDArray

from cycletime.tasks.bullet.world import BulletEnv
from cycletime.tasks.closed_form import Numbers
from cycletime.tasks.double_pendulum import DoublePendulum

_MOST_FORCE = 200
_REWARD_SCALE = 0.25
"""4 ms / 16 ms: the reward was made for steps of about 16 ms."""


class BulletDoublePendulumEnv(BulletEnv):
    """A cart on a rail of 2 m that carries a pole that carries a pole, all upright within 0.1 rad at the start.

    Observation: x, v; x of the upper pole's middle (one step late); cos, sin of th; w; cos, sin of ga; u.
    Reward: 2.34 a step while upright; terminated when the upper pole's middle (late as well) sinks to 0.7 m.
    State (reset option): x in m; th (lower pole) and ga (upper pole against the lower) in rad; their rates v, w, u.
    """

    task = DoublePendulum()
    model = "inverted_double_pendulum.xml"
    gravity = 9.8

    def __init__(self, render_mode: str | None = None) -> None:
        """Load the cart and its poles."""
        super().__init__(render_mode)
        self._all_joints = self._world.joints("slider", "hinge", "hinge2")
        self._slider = self._world.joints("slider")
        self._upper_pole = self._world.link("pole2")

    def exact_observation(self) -> NDArray[np.float64]:
        """The observation before it is rounded to float32."""
        th, ga = self._th, self._ga
        return np.array([self._x, self._v, self._px, cos(th), sin(th), self._w, cos(ga), sin(ga), self._u])

    def _start(self, state: Numbers) -> None:
        self._world.place(self._all_joints, state[:3], state[3:])
        self._read()

    def _read(self) -> None:
        (self._x, self._v), (self._th, self._w), (self._ga, self._u) = self._world.state(self._all_joints)
        self._px, _, self._py = self._world.late_position(self._upper_pole)

    def _advance(self, action: list[float]) -> tuple[float, bool, int]:
        self._world.advance(self._slider, [_MOST_FORCE * min(max(action[0], -1.0), 1.0)])
        self._read()
        # 0.3 m above its middle is the upper pole's tip when upright; the terminating step is paid as well.
        tip = self._py + 0.3
        return _REWARD_SCALE * (10 - (0.01 * self._px**2 + (tip - 2) ** 2)), tip <= 1, 1

    def _state(self) -> Numbers:
        return self._x, self._th, self._ga, self._v, self._w, self._u
