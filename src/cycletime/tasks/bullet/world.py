"""PyBullet run as the authors' tasks run it.

`BulletWorld` reproduces what the package pybullet_envs (in pybullet's wheel) does to the physics: engine parameters of
scene_abstract.py:66-79, model flags and idle motors of robot_bases.py:63-68, 127-131 and 397-408. `BulletEnv` adds
Gymnasium's interface; one of its steps is one environment time step, the action-cycle time is added from outside.
"""

from __future__ import annotations

import importlib
import weakref
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cycletime.errors import InputError
from cycletime.tasks.face import Observation, TaskEnv


class Joints(NamedTuple):
    """Joints of one body, in the order they were asked for."""

    body: int
    """PyBullet's number of the body."""
    indices: tuple[int, ...]
    """PyBullet's numbers of the joints within the body."""


class Link(NamedTuple):
    """One link of one body."""

    body: int
    """PyBullet's number of the body."""
    number: int
    """PyBullet's number of the link within the body, which is that of the joint above it too."""


class BulletWorld:
    """One simulation with its own physics client, so that several worlds cannot disturb each other."""

    def __init__(self, model: str, env_dt: float, gravity: float) -> None:
        """Connect, set the engine up, and load one of pybullet_data's MJCF models with all its motors idle."""
        self._bullet = _import_bullet("pybullet")
        self._client: int = self._bullet.connect(self._bullet.DIRECT)
        if self._client < 0:
            raise InputError("PyBullet gives no further physics client: close some of the open environments first.")
        # Also disconnects a world that was dropped without being closed; calling it twice does nothing, which matters
        # because PyBullet hands a freed client number to the next world.
        self.close = weakref.finalize(self, self._bullet.disconnect, physicsClientId=self._client)
        self._set_engine_up(env_dt, gravity)
        self._load(model)

    def _set_engine_up(self, env_dt: float, gravity: float) -> None:
        bullet, client = self._bullet, self._client
        bullet.resetSimulation(physicsClientId=client)
        bullet.setPhysicsEngineParameter(deterministicOverlappingPairs=1, physicsClientId=client)
        bullet.setGravity(0, 0, -gravity, physicsClientId=client)
        bullet.setDefaultContactERP(0.9, physicsClientId=client)
        bullet.setPhysicsEngineParameter(
            fixedTimeStep=env_dt, numSolverIterations=5, numSubSteps=1, physicsClientId=client
        )

    def _load(self, model: str) -> None:
        bullet, client = self._bullet, self._client
        path = Path(_import_bullet("pybullet_data").getDataPath()) / "mjcf" / model
        flags = (
            bullet.URDF_USE_SELF_COLLISION
            | bullet.URDF_USE_SELF_COLLISION_EXCLUDE_ALL_PARENTS
            | bullet.URDF_GOOGLEY_UNDEFINED_COLORS
        )
        self._joints: dict[str, Link] = {}
        self._links: dict[str, Link] = {}
        for body in bullet.loadMJCF(str(path), flags=flags, physicsClientId=client):
            for index in range(bullet.getNumJoints(body, physicsClientId=client)):
                self._idle_motor(body, index)
                info = bullet.getJointInfo(body, index, physicsClientId=client)
                self._joints[info[1].decode()] = self._links[info[12].decode()] = Link(body, index)

    def _idle_motor(self, body: int, index: int) -> None:
        """Switch off the motor that PyBullet puts into every joint: without force it makes no constraint."""
        self._bullet.setJointMotorControl2(
            body,
            index,
            self._bullet.POSITION_CONTROL,
            targetPosition=0,
            targetVelocity=0,
            positionGain=0.1,
            velocityGain=0.1,
            force=0,
            physicsClientId=self._client,
        )

    def joints(self, *names: str) -> Joints:
        """The named joints, which belong to one body."""
        return Joints(self._joints[names[0]].body, tuple(self._joints[name].number for name in names))

    def link(self, name: str) -> Link:
        """The named link."""
        return self._links[name]

    def place(self, joints: Joints, positions: Sequence[float], velocities: Sequence[float]) -> None:
        """Put joints at a state; the poses of the links follow at once."""
        for index, position, velocity in zip(joints.indices, positions, velocities, strict=True):
            self._bullet.resetJointState(joints.body, index, position, velocity, physicsClientId=self._client)
            self._idle_motor(joints.body, index)

    def advance(self, joints: Joints, torques: Sequence[float]) -> None:
        """Simulate one environment time step with these torques (forces on sliders); PyBullet forgets them after it."""
        self._bullet.setJointMotorControlArray(
            joints.body, joints.indices, self._bullet.TORQUE_CONTROL, forces=torques, physicsClientId=self._client
        )
        self._bullet.stepSimulation(physicsClientId=self._client)

    def state(self, joints: Joints) -> list[tuple[float, float]]:
        """Position and velocity of each joint, as of now."""
        states = self._bullet.getJointStates(joints.body, joints.indices, physicsClientId=self._client)
        return [(position, velocity) for position, velocity, _, _ in states]

    def late_position(self, link: Link) -> tuple[float, float, float]:
        """The link's centre of mass as pybullet_envs reads it: of one step ago after a step, of now after `place`.

        Bullet refreshes the poses of links at the start of a step, and computeForwardKinematics is not asked for.
        """
        position: tuple[float, float, float] = self._bullet.getLinkState(*link, physicsClientId=self._client)[0]
        return position


class BulletEnv(TaskEnv):
    """A task that PyBullet simulates, one environment time step at a time; `CycleTime` around it holds actions."""

    model: ClassVar[str]
    """The file in pybullet_data's folder mjcf."""
    gravity: ClassVar[float]
    """Downwards, in m/s^2."""

    def __init__(self, render_mode: str | None = None) -> None:
        """Make a world of its own."""
        super().__init__(render_mode)
        self._world = BulletWorld(self.model, self.dt, self.gravity)

    @property
    def dt(self) -> float:
        """The time that one step takes, in seconds: the environment's time step."""
        return float(self.task.env_dt)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; see `TaskEnv`.

        Raises:
            InputError: if the environment is closed.
        """
        if not self._world.close.alive:
            raise InputError("The environment is closed: make a new one instead of resetting it.")
        return super().reset(seed=seed, options=options)

    def close(self) -> None:
        """Disconnect from PyBullet and close the window; closing twice is fine."""
        self._world.close()
        super().close()

    @abstractmethod
    def exact_observation(self) -> NDArray[np.float64]:
        """The observation before it is rounded to float32."""

    def _observation(self) -> Observation:
        return self.exact_observation().astype(np.float32)


def _import_bullet(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError("PyBullet is not installed: pip install 'cycletime[bullet]'.") from None
