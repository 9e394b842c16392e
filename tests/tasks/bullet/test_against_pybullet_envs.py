"""The environments against pybullet_envs' own classes, which are driven in a process of their own.

Those classes need the old gym, which is not installed: the few names they take from it are stood in for. Run as a
program, this file drives them and writes what they gave; the authors' changes to them are applied to that outside.
"""

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from cycletime.tasks.bullet import BulletDoublePendulumEnv, BulletReacherEnv

EPISODES, SEED = 4, 7
ENV_STEPS = {"reacher": 400, "double_pendulum": 400}
Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Array]:
    path = tmp_path_factory.mktemp("upstream") / "trajectories.npz"
    subprocess.run([sys.executable, __file__, str(path)], check=True, capture_output=True)
    with np.load(path) as file:
        return dict(file)


def test_reacher_gives_what_pybullet_envs_gives(upstream: dict[str, Array]) -> None:
    env = BulletReacherEnv()
    for episode in range(EPISODES):
        env.reset(seed=SEED if episode == 0 else None)
        observations, rewards, _ = follow(env, actions("reacher")[episode])
        progress, energy, _ = upstream["reacher_rewards"][episode].T
        expected = upstream["reacher_observations"][episode]
        angle = upstream["reacher_first_angles"][episode]
        expected[:, 4:6] = np.stack([np.cos(angle), np.sin(angle)], axis=1)  # the authors: not of 1 - 2 * angle
        stuck = np.where(np.abs(expected[1:, 7]) > 0.99, -0.1, 0.0)  # the authors: also beyond 1.01
        np.testing.assert_allclose(observations, expected, rtol=0, atol=1e-14)
        np.testing.assert_allclose(rewards, progress + (energy + stuck) * 0.002 / 0.016, rtol=0, atol=1e-13)


def test_double_pendulum_gives_what_pybullet_envs_gives(upstream: dict[str, Array]) -> None:
    env = BulletDoublePendulumEnv()
    for episode in range(EPISODES):
        env.reset(seed=SEED if episode == 0 else None)
        observations, rewards, ends = follow(env, actions("double_pendulum")[episode])
        np.testing.assert_allclose(observations, upstream["double_pendulum_observations"][episode], rtol=0, atol=1e-14)
        expected = upstream["double_pendulum_rewards"][episode].sum(axis=1) * 0.004 / 0.016
        np.testing.assert_allclose(rewards, expected, rtol=0, atol=1e-13)
        assert np.array_equal(ends, upstream["double_pendulum_ends"][episode])
        assert ends.any()
        assert not ends.all()


def actions(task: str) -> Array:
    """Two of three are beyond [-1, 1] now and then, and each lasts for some steps, so that limits are hit."""
    size = {"reacher": 2, "double_pendulum": 1}[task]
    drawn = np.random.default_rng(5).normal(scale=1.2, size=(EPISODES, ENV_STEPS[task] // 10, size))
    return np.repeat(drawn, 10, axis=1)


def follow(env: BulletReacherEnv | BulletDoublePendulumEnv, actions: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    observations, rewards, ends = [env.exact_observation()], [], []
    for action in actions:
        _, reward, terminated, _, _ = env.step(action)
        observations.append(env.exact_observation())
        rewards.append(reward)
        ends.append(terminated)
    return np.array(observations), np.array(rewards), np.array(ends)


def drive(path: Path) -> None:
    """Run pybullet_envs' two classes with the authors' time steps and save what they give."""
    stand_in_for_gym()
    scenes = importlib.import_module("pybullet_envs.scene_abstract")
    reacher = importlib.import_module("pybullet_envs.gym_manipulator_envs").ReacherBulletEnv()
    pendulum = importlib.import_module("pybullet_envs.gym_pendulum_envs").InvertedDoublePendulumBulletEnv()
    saved: dict[str, Any] = {}
    for task, env, gravity, env_dt in (("reacher", reacher, 0.0, 0.002), ("double_pendulum", pendulum, 9.8, 0.004)):
        scene = {"gravity": gravity, "timestep": env_dt, "frame_skip": 1}
        env.create_single_player_scene = lambda client, scene=scene: scenes.SingleRobotEmptyScene(client, **scene)
        env.seed(SEED)
        observations, rewards, ends, angles = [], [], [], []
        for episode in actions(task):
            observations.append([env.reset()])
            angles.append([env.robot.ordered_joints[0].get_position()])
            for action in episode:
                observation, _, end, _ = env.step(action)
                observations[-1].append(observation)
                rewards.append(env.rewards)
                ends.append(end)
                angles[-1].append(env.robot.ordered_joints[0].get_position())
        saved |= {
            f"{task}_observations": observations,
            f"{task}_rewards": np.reshape(rewards, (EPISODES, ENV_STEPS[task], 3)),
            f"{task}_ends": np.reshape(ends, (EPISODES, ENV_STEPS[task])),
            f"{task}_first_angles": angles,
        }
    np.savez(path, **saved)


def stand_in_for_gym() -> None:
    modules = {
        name: ModuleType(name)
        for name in (
            "gym",
            "gym.envs",
            "gym.envs.registration",
            "gym.spaces",
            "gym.utils",
            "gym.utils.seeding",
            "pkg_resources",
        )
    }
    for name, module in modules.items():
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(modules[parent], child, module)
    names: dict[str, dict[str, Any]] = {
        "gym": {"Env": object, "__version__": "1"},
        "gym.spaces": {"Box": gymnasium.spaces.Box},
        "gym.utils.seeding": {"np_random": gymnasium.utils.seeding.np_random},
        "gym.envs.registration": {
            "registry": type("Registry", (), {"env_specs": {}}),
            "register": lambda *name, **spec: None,
            "make": None,
            "spec": None,
        },
        "pkg_resources": {"parse_version": str},
    }
    for name, values in names.items():
        vars(modules[name]).update(values)


if __name__ == "__main__":
    drive(Path(sys.argv[1]))
