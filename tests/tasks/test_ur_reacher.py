"""UR-Reacher-2 in closed form against the same task on the arm model, package by package."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from cycletime.robots.ur.links import LockstepLink
from cycletime.robots.ur.reacher_env import URReacher2Env
from cycletime.robots.ur.rtde_client import Address
from cycletime.robots.ur.simulator.launch import simulated_controller
from cycletime.robots.ur.types import RobotLink
from cycletime.tasks import URReacher
from cycletime.ur5 import JOINTS_HIGH, JOINTS_LOW, target_of
from tests.robots.ur.virtual import VirtualArm, VirtualClock

pytestmark = pytest.mark.usefixtures("compiled_quickly")


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@cache
def program(env_dt: str) -> Any:  # noqa: ANN401 - compiled by JAX
    """Angles, speeds and targets of the controller after each step, its reward, and whether the flange is out."""
    task = URReacher(jnp.float64, env_dt=env_dt)  # type: ignore[arg-type]

    def episode(start: jax.Array, actions: jax.Array) -> tuple[jax.Array, ...]:
        def step(state: Any, action: jax.Array) -> tuple[Any, tuple[jax.Array, ...]]:  # noqa: ANN401
            out = task.step(state, action)
            after = out.state
            joints = jnp.stack([*after.q, *after.qd, *after.target_q, *after.target_qd])
            return after, (joints, out.observation, out.reward, out.truncated, after.excursion.outside)

        return jax.lax.scan(step, task.start(*start), actions)[1]

    return jax.jit(episode)


def pushes(seed: int, count: int) -> NDArray[np.float64]:
    """Random actions, also beyond 1; with every odd seed long and of full strength, which lead out of the bounds."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        return np.repeat(np.sign(rng.normal(size=(4, 2))), -(-count // 4), axis=0)[:count]
    return rng.uniform(-1.3, 1.3, (count, 2))


def worst_difference(link: RobotLink, env_dt: str, seed: int) -> float:
    """Of an episode in closed form from the same task on a link, after the same actions."""
    env = URReacher2Env(link, env_dt, reset_time="3.5s")
    first, _ = env.reset(seed=seed)
    actions = pushes(seed, 4000 // int(env_dt[:-2]))
    start = np.array([*env._state.q[1:3], *env._target, *first[6:]])
    ours = [np.asarray(each) for each in program(env_dt)(start, actions)]
    told = []
    for action in actions:
        seen, reward, _, truncated, _ = env.step(action)
        state = env._state
        joints = np.concatenate([part[1:3] for part in (state.q, state.qd, state.target_q, state.target_qd)])
        told.append((joints, seen, reward, truncated))
    env.close()
    theirs = [np.array(each) for each in zip(*told, strict=True)]
    np.testing.assert_allclose(ours[1], theirs[1], rtol=0, atol=2e-6)  # the environment's are rounded to float32
    np.testing.assert_array_equal(ours[3], theirs[3])
    assert ours[4].any() == bool(seed % 2), "the strong ones leave the box"
    return float(max(np.abs(ours[each] - theirs[each]).max() for each in (0, 2)))


@pytest.mark.parametrize(("env_dt", "seed"), [("10ms", 0), ("10ms", 1), ("10ms", 3), ("40ms", 1)])
def test_an_episode_is_the_arm_s_under_the_same_commands(env_dt: str, seed: int) -> None:
    worst = worst_difference(VirtualArm(VirtualClock()), env_dt, seed)
    print(f"{env_dt}, seed {seed}: within {worst:.1e}")
    assert worst < 1e-6


def test_an_episode_is_that_of_the_simulated_controller_in_lock_step() -> None:
    with simulated_controller("cb3", None) as controller:
        ports = controller.ports
        link = LockstepLink(Address(controller.address, ports.rtde, ports.realtime, ports.dashboard))
        worst = worst_difference(link, "10ms", seed=1)
    print(f"in lock-step: within {worst:.1e}")
    assert worst < 1e-6


def test_angles_lead_to_the_same_targets_whoever_computes_them() -> None:
    low, high = np.array(JOINTS_LOW), np.array(JOINTS_HIGH)
    drawn = np.random.default_rng(0).uniform(low, high, (60, 2))
    targets, found = jax.jit(jax.vmap(lambda pair: target_of(pair, jnp)))(drawn)
    assert 5 < np.sum(found) < 30
    for pair, target, is_found in zip(drawn, targets, found, strict=True):
        expected = target_of(pair)
        assert is_found == expected[1]
        if is_found:
            np.testing.assert_allclose(target, expected[0], atol=1e-12)


def test_episodes_begin_as_the_spec_says() -> None:
    """Means and deviations of 1500 of the authors' draws, within what chance does with as many."""
    task = URReacher(jnp.float32)
    numbers = jax.jit(jax.vmap(lambda key: jnp.stack(task.numbers(task.reset(key)))))(
        jax.random.split(jax.random.key(0), 1500)
    )
    pose, targets, actions = np.split(np.asarray(numbers, np.float64), 3, axis=1)
    np.testing.assert_allclose(pose, np.broadcast_to((-2.4, 1.5), pose.shape), atol=1e-6)
    np.testing.assert_allclose(targets.mean(axis=0), (0.110, 0.779), atol=0.02)
    np.testing.assert_allclose(targets.std(axis=0), (0.187, 0.147), atol=0.01)
    distances = np.hypot(*(targets - (0.01940, 0.76998)).T)
    assert distances.mean() == pytest.approx(0.236, abs=0.01)
    np.testing.assert_allclose(actions.mean(axis=0), 0, atol=0.06)
    np.testing.assert_allclose(actions.std(axis=0), 1 / np.sqrt(3), atol=0.03)
