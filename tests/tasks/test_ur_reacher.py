"""UR-Reacher-2 in closed form against the same task on the arm model, package by package."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from cycletime.robots.ur.reacher_env import URReacher2Env
from cycletime.tasks import URReacher
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


@pytest.mark.parametrize(("env_dt", "seed"), [("10ms", 0), ("10ms", 1), ("10ms", 3), ("40ms", 1), ("5ms", 3)])
def test_an_episode_is_the_arm_s_under_the_same_commands(env_dt: str, seed: int) -> None:
    arm = VirtualArm(VirtualClock())
    env = URReacher2Env(arm, env_dt, reset_time="3.5s")
    first, _ = env.reset(seed=seed)
    actions = pushes(seed, 4000 // int(env_dt[:-2]))
    start = np.array([*arm.arm.q[1:3], *env._target, *first[6:]])
    ours = [np.asarray(each) for each in program(env_dt)(start, actions)]
    told = []
    for action in actions:
        seen, reward, _, truncated, _ = env.step(action)
        joints = np.concatenate([part[1:3] for part in (arm.arm.q, arm.arm.qd, arm.arm.target_q, arm.arm.target_qd)])
        told.append((joints, seen, reward, truncated))
    theirs = [np.array(each) for each in zip(*told, strict=True)]
    print(f"{env_dt}, seed {seed}: within {np.abs(ours[0] - theirs[0]).max():.1e}, outside {ours[4].sum()} steps")
    np.testing.assert_allclose(ours[0], theirs[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=0, atol=2e-6)  # the environment's are rounded to float32
    np.testing.assert_allclose(ours[2], theirs[2], rtol=0, atol=1e-6)
    np.testing.assert_array_equal(ours[3], theirs[3])
    assert ours[4].any() == bool(seed % 2), "the strong ones leave the box"
