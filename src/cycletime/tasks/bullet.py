"""The PyBullet originals of the paper's two simulated tasks, as Gymnasium environments: the closed form's reference.

PyBullet itself (extra ``bullet``) is loaded when an environment is made; its import prints 'pybullet build time: ...'
to the standard error.
"""

from __future__ import annotations

import importlib
import weakref
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from math import cos, sin, sqrt
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cycletime.duration import DurationLike
from cycletime.errors import InputError
from cycletime.extras import require_extras

with require_extras(__name__):
    from cycletime.tasks.base_env import Observation, TaskEnv
    from cycletime.tasks.closed_form import Numbers
    from cycletime.tasks.cycle_time import CycleTime
    from cycletime.tasks.double_pendulum import DoublePendulum
    from cycletime.tasks.reacher import Reacher


class Joints(NamedTuple):
    body: int
    indices: tuple[int, ...]
    """PyBullet's numbers of the joints within the body, each also that of the link below it."""


class BulletWorld:
    """One simulation with its own physics client, so that several worlds cannot disturb each other."""

    def __init__(self, model: str, env_dt: float, gravity: float) -> None:
        self._bullet = bullet = _import_bullet("pybullet")
        self._client: int = bullet.connect(bullet.DIRECT)
        if self._client < 0:
            raise InputError("PyBullet gives no further physics client: close some of the open environments first.")
        # Also disconnects a world that was dropped without being closed; calling it twice does nothing, which matters
        # because PyBullet hands a freed client number to the next world.
        self.close = weakref.finalize(self, bullet.disconnect, physicsClientId=self._client)
        self._call("resetSimulation")
        self._call("setPhysicsEngineParameter", deterministicOverlappingPairs=1)
        self._call("setGravity", 0, 0, -gravity)
        self._call("setDefaultContactERP", 0.9)
        self._call("setPhysicsEngineParameter", fixedTimeStep=env_dt, numSolverIterations=5, numSubSteps=1)
        path = Path(_import_bullet("pybullet_data").getDataPath()) / "mjcf" / model
        flags = bullet.URDF_USE_SELF_COLLISION | bullet.URDF_USE_SELF_COLLISION_EXCLUDE_ALL_PARENTS
        flags |= bullet.URDF_GOOGLEY_UNDEFINED_COLORS
        self._found: dict[str, tuple[int, int]] = {}
        for body in self._call("loadMJCF", str(path), flags=flags):
            for index in range(self._call("getNumJoints", body)):
                self._idle_motor(body, index)
                info = self._call("getJointInfo", body, index)
                for kind, name in (("joint", info[1]), ("link", info[12])):
                    self._found[f"{kind} {name.decode()}"] = body, index

    def _call(self, name: str, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever PyBullet takes and gives
        return getattr(self._bullet, name)(*arguments, **named, physicsClientId=self._client)

    def _idle_motor(self, body: int, index: int) -> None:
        """Switch off the motor that PyBullet puts into every joint: without force it makes no constraint."""
        gains = {"targetPosition": 0, "targetVelocity": 0, "positionGain": 0.1, "velocityGain": 0.1, "force": 0}
        self._call("setJointMotorControl2", body, index, self._bullet.POSITION_CONTROL, **gains)

    def joints(self, *names: str) -> Joints:
        found = [self._found[f"joint {name}"] for name in names]
        return Joints(found[0][0], tuple(index for _, index in found))

    def link(self, name: str) -> tuple[int, int]:
        return self._found[f"link {name}"]

    def place(self, joints: Joints, positions: Sequence[float], velocities: Sequence[float]) -> None:
        for index, position, velocity in zip(joints.indices, positions, velocities, strict=True):
            self._call("resetJointState", joints.body, index, position, velocity)
            self._idle_motor(joints.body, index)

    def advance(self, joints: Joints, torques: Sequence[float]) -> None:
        """Simulate one environment time step with these torques (forces on sliders); PyBullet forgets them after it."""
        self._call("setJointMotorControlArray", *joints, self._bullet.TORQUE_CONTROL, forces=torques)
        self._call("stepSimulation")

    def state(self, joints: Joints) -> list[tuple[float, float]]:
        return [(position, velocity) for position, velocity, _, _ in self._call("getJointStates", *joints)]

    def late_position(self, link: tuple[int, int]) -> tuple[float, float, float]:
        """The link's centre of mass as pybullet_envs reads it: of one step ago after a step, of now after `place`."""
        position: tuple[float, float, float] = self._call("getLinkState", *link)[0]
        return position


class BulletEnv(TaskEnv):
    """A task that PyBullet simulates, one environment time step at a time; `CycleTime` around it holds actions."""

    model: ClassVar[str]
    gravity: ClassVar[float]

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode)
        self._world = BulletWorld(self.model, self.dt, self.gravity)

    @property
    def dt(self) -> float:
        return float(self.task.env_dt)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        if not self._world.close.alive:
            raise InputError("The environment is closed: make a new one instead of resetting it.")
        return super().reset(seed=seed, options=options)

    def close(self) -> None:
        self._world.close()
        super().close()

    @abstractmethod
    def exact_observation(self) -> NDArray[np.float64]:
        """The observation before it is rounded to float32."""

    def _observation(self) -> Observation:
        return self.exact_observation().astype(np.float32)


def _import_bullet(name: str) -> ModuleType:
    with require_extras("The environment"):
        return importlib.import_module(name)


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
        super().__init__(render_mode)
        self._arm = self._world.joints("joint0", "joint1")
        self._target = self._world.joints("target_x", "target_y")
        self._fingertip, self._target_link = self._world.link("fingertip"), self._world.link("target")

    def exact_observation(self) -> NDArray[np.float64]:
        arm = [cos(self._q1), sin(self._q1), 0.1 * self._w1, self._q2 / _ELBOW_LIMIT, 0.1 * self._w2]
        return np.array([*self._target_joints, *self._to_target, *arm])

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
        super().__init__(render_mode)
        self._all_joints = self._world.joints("slider", "hinge", "hinge2")
        self._slider = self._world.joints("slider")
        self._upper_pole = self._world.link("pole2")

    def exact_observation(self) -> NDArray[np.float64]:
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


def make_reacher(dt: DurationLike = "16ms", render_mode: str | None = None) -> CycleTime:
    return CycleTime(BulletReacherEnv(render_mode), dt)


def make_double_pendulum(dt: DurationLike = "16ms", render_mode: str | None = None) -> CycleTime:
    return CycleTime(BulletDoublePendulumEnv(render_mode), dt)
