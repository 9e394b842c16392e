"""The closed-form tasks against PyBullet itself: states, rewards, flags and returns."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from cycletime.duration import cycle_steps
from cycletime.tasks.bullet import BulletDoublePendulumEnv, BulletReacherEnv
from cycletime.tasks.closed_form import ClosedFormTask
from cycletime.tasks.cycle_time import CycleTime
from cycletime.tasks.double_pendulum import DoublePendulum
from cycletime.tasks.reacher import Reacher

pytestmark = pytest.mark.usefixtures("compiled_quickly")
Array = NDArray[np.float64]
Policy = Callable[[Any, Any, Any], Any]
"""An action from the array module, an observation and the noise of this cycle."""

REACHER_STARTS = {
    "at rest": [0.3, -0.4, 0.0, 0.0, 0.1, 0.2],
    "moving": [2.0, 1.0, -20.0, 9.0, -0.27, 0.27],
    "at full speed": [0.0, 0.0, 100.0, -100.0, 0.0, 0.0],
    "before the limit": [1.0, 2.95, 0.0, 6.0, 0.1, -0.1],
    "little beyond the limit": [1.0, -3.02, 0.0, -1.0, 0.1, -0.1],
    "far beyond the limit": [1.0, 3.1, 0.0, 2.0, 0.1, -0.1],
}
PENDULUM_STARTS = {
    "upright": [0.0, 0.05, -0.08, 0.0, 0.0, 0.0],
    "moving": [0.2, 0.05, -0.1, 0.5, 1.0, -2.0],
    "hanging": [0.0, 3.1, 0.1, 0.0, 3.0, -4.0],
    "at full speed": [0.0, 1.0, 2.0, 0.0, 60.0, 80.0],
    "before the rail's end": [0.95, 0.1, -0.1, 2.0, 0.0, 0.0],
    "beyond the rail's end": [-1.03, 0.1, -0.1, -2.0, 0.0, 0.0],
    "far beyond the rail's end": [1.06, 0.1, -0.1, 2.0, 0.0, 0.0],
}


def torques(kind: str, size: int, env_steps: int) -> Array:
    random = np.random.default_rng(7).normal(size=(env_steps, size))
    return {"random": 2 * random, "none": 0 * random, "outwards": 0 * random + 0.9, "inwards": 0 * random - 0.9}[kind]


@cache
def compiled_steps(task_type: type[ClosedFormTask]) -> Any:  # noqa: ANN401
    task = task_type(jnp.float64)

    def step(state: Any, action: jax.Array) -> tuple[Any, Any]:  # noqa: ANN401
        out = task.step(state, action)
        return out.state, (out.observation, out.reward, out.terminated)

    return jax.jit(lambda start, actions: jax.lax.scan(step, task.start(*start), actions)[1])


@pytest.mark.parametrize("kind", ["random", "none", "outwards", "inwards"])
@pytest.mark.parametrize(
    ("task_type", "start"),
    [(Reacher, start) for start in REACHER_STARTS] + [(DoublePendulum, start) for start in PENDULUM_STARTS],
)
def test_a_hundred_environment_steps_are_pybullet_s(task_type: type[ClosedFormTask], start: str, kind: str) -> None:
    env = BulletReacherEnv() if task_type is Reacher else BulletDoublePendulumEnv()
    state = (REACHER_STARTS if task_type is Reacher else PENDULUM_STARTS)[start]
    actions = torques(kind, env.task.action_size, 100)
    env.reset(options={"state": state})
    with jax.enable_x64(True):
        observations, rewards, terminated = map(np.asarray, compiled_steps(task_type)(np.array(state), actions))
    for i, action in enumerate(actions):
        _, reward, ends, _, _ = env.step(action)
        np.testing.assert_allclose(observations[i], env.exact_observation(), rtol=0, atol=1e-9)
        assert abs(rewards[i] - reward) < 1e-9
        assert terminated[i] == ends
    env.close()


def random_policy(xp: Any, observation: Any, noise: Any) -> Any:  # noqa: ANN401
    return noise


def gentle_policy(xp: Any, observation: Any, noise: Any) -> Any:  # noqa: ANN401
    """Random actions so weak that a Reacher which begins away from its elbow's limit seldom gets there."""
    return 0.02 * noise


def reach(stiffness: float, damping: float) -> Policy:
    """Pull the fingertip to the target by the transposed Jacobian, with damping and a little noise."""

    def act(xp: Any, observation: Any, noise: Any) -> Any:  # noqa: ANN401
        _, _, away_x, away_y, cos_1, sin_1, w1, q2, w2 = (observation[i] for i in range(9))
        cos_12 = cos_1 * xp.cos(3 * q2) - sin_1 * xp.sin(3 * q2)
        sin_12 = sin_1 * xp.cos(3 * q2) + cos_1 * xp.sin(3 * q2)
        lever_x, lever_y = 0.11 * cos_12, 0.11 * sin_12
        pull_2 = -(lever_x * away_y - lever_y * away_x)
        pull_1 = pull_2 - (0.1 * cos_1 * away_y - 0.1 * sin_1 * away_x)
        return xp.stack([stiffness * pull_1 - damping * w1, stiffness * pull_2 - damping * w2]) + 0.1 * noise

    return act


REACH = {"2ms": reach(60, 2), "16ms": reach(60, 2), "64ms": reach(8, 0.3)}
"""What holds still at 16 ms shakes the arm at 64 ms, so that there it is softer."""


def balance(gains: Array) -> Policy:
    """Hold the poles upright by a linear regulator, with a little noise."""

    def act(xp: Any, observation: Any, noise: Any) -> Any:  # noqa: ANN401
        x, v, _, cos_th, sin_th, w, cos_ga, sin_ga, u = (observation[i] for i in range(9))
        pose = xp.stack([x, xp.arctan2(sin_th, cos_th), xp.arctan2(sin_ga, cos_ga), v, w, u])
        return xp.stack([pose @ xp.asarray(gains)]) + 0.05 * noise

    return act


def regulator(dt: str) -> Array:
    """The linear-quadratic regulator of the upright pose at a cycle time, from the task's own linearisation."""
    with jax.enable_x64(True):
        task = DoublePendulum(jnp.float64)

        def pose_after(pose: jax.Array, action: jax.Array) -> jax.Array:
            state = task.cycle(task.start(*pose), action, cycle_steps(dt, task.env_dt)).state
            return jnp.stack(state[:6])

        slopes = jax.jit(jax.jacfwd(pose_after, argnums=(0, 1)))
        a, b = map(np.asarray, slopes(jnp.full(6, 1e-9), jnp.zeros(1)))
    cost = np.eye(6)
    for _ in range(3000):
        gains = np.linalg.solve(0.1 + b.T @ cost @ b, b.T @ cost @ a)
        cost = np.eye(6) + a.T @ cost @ (a - b @ gains)
    regulator_gains: Array = -gains[0]
    return regulator_gains


@dataclass
class Episodes:
    returns: Array
    lengths: NDArray[np.int64]
    hit_a_limit: NDArray[np.bool_]


def bullet_episodes(env: Any, dt: str, policy: Policy, starts: Array, noise: Array) -> Episodes:  # noqa: ANN401
    env = CycleTime(env, dt)
    returns, lengths = [], []
    for start, shocks in zip(starts, noise, strict=True):
        env.reset(options={"state": start.tolist()})
        total, ended, cycle = 0.0, False, 0
        while not ended:
            action = policy(np, env.unwrapped.exact_observation(), shocks[cycle])
            _, reward, terminated, truncated, info = env.step(action)
            total, ended, cycle = total + float(reward), terminated or truncated, cycle + 1
        returns.append(total)
        lengths.append(info["env_steps"])
    env.close()
    return Episodes(np.array(returns), np.array(lengths), np.zeros(len(starts), bool))


def closed_form_episodes(task: Any, dt: str, policy: Policy, starts: Array, noise: Array) -> Episodes:  # noqa: ANN401
    """All episodes side by side, each until its end."""
    k = cycle_steps(dt, task.env_dt)
    place, limit = ("q2", 3.0) if isinstance(task, Reacher) else ("x", 1.0)

    def passes_limit(state: Any, action: jax.Array) -> jax.Array:  # noqa: ANN401
        """Whether any environment step of a cycle begins at or beyond the limit, where PyBullet pushes back."""

        def step(state: Any, _: None) -> tuple[Any, jax.Array]:  # noqa: ANN401
            return task.step(state, action).state, jnp.abs(getattr(state, place)) >= limit

        return jax.lax.scan(step, state, None, length=k)[1].any()

    def episode(start: jax.Array, shocks: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        def cycle(carry: Any, shock: jax.Array) -> tuple[Any, jax.Array]:  # noqa: ANN401
            state, ended, hit = carry
            action = policy(jnp, task.observe(state), shock)
            out = task.cycle(state, action, k)
            if task.dtype == jnp.float64:  # nobody asks it of the others, and it doubles the program
                hit = hit | passes_limit(state, action)
            new = (out.state, out.terminated | out.truncated, hit)
            kept = jax.tree.map(lambda old, new: jnp.where(ended, old, new), carry, new)
            return kept, jnp.where(ended, 0, out.reward)

        state = task.start(*start)
        begun = (state, jnp.bool(False), jnp.bool(False))
        (state, _, hit), rewards = jax.lax.scan(cycle, begun, shocks)
        return rewards, state.env_steps, hit

    cast = jnp.asarray(starts, task.dtype), jnp.asarray(noise, task.dtype)
    rewards, lengths, hit = map(np.asarray, jax.jit(jax.vmap(episode))(*cast))
    return Episodes(rewards.sum(axis=1, dtype=np.float64), lengths, hit)


def policy_for(name: str, task_type: type[ClosedFormTask], dt: str) -> Policy:
    if name == "scripted":
        return REACH[dt] if task_type is Reacher else balance(regulator(dt))
    return gentle_policy if name == "gentle" else random_policy


def paired_starts(task_type: type[ClosedFormTask], episodes: int, widest_angle: float) -> Array:
    rng = np.random.default_rng(11)
    if task_type is Reacher:
        angles = rng.uniform(-widest_angle, widest_angle, (episodes, 2))
        target = rng.uniform(-0.27, 0.27, (episodes, 2))
        return np.hstack([angles, np.zeros((episodes, 2)), target])
    return np.hstack([np.zeros((episodes, 1)), rng.uniform(-0.1, 0.1, (episodes, 2)), np.zeros((episodes, 3))])


EVERY = [
    *((Reacher, dt, name) for dt in ("2ms", "16ms", "64ms") for name in ("random", "gentle", "scripted")),
    *((DoublePendulum, dt, name) for dt in ("4ms", "16ms", "64ms") for name in ("random", "scripted")),
]
SOME = [
    (Reacher, "2ms", "gentle"),
    (Reacher, "16ms", "scripted"),
    (Reacher, "64ms", "random"),
    (DoublePendulum, "4ms", "random"),
    (DoublePendulum, "16ms", "scripted"),
    (DoublePendulum, "64ms", "random"),
]
"""Each cycle time and each policy, for CI."""


@pytest.mark.parametrize(
    ("task_type", "dt", "policy_name", "episodes"),
    [
        *(pytest.param(*case, 6) for case in SOME),
        *(pytest.param(*case, 200, marks=pytest.mark.slow) for case in EVERY),
    ],
)
def test_returns_of_paired_episodes_are_pybullet_s(
    task_type: type[ClosedFormTask], dt: str, policy_name: str, episodes: int
) -> None:
    policy = policy_for(policy_name, task_type, dt)
    env = BulletReacherEnv() if task_type is Reacher else BulletDoublePendulumEnv()
    starts = paired_starts(task_type, episodes, widest_angle=2.0 if policy_name == "gentle" else 3.14)
    cycles = -(-task_type(jnp.float32).limit_steps // cycle_steps(dt, task_type.usual_env_dt))
    noise = np.random.default_rng(5).normal(size=(episodes, cycles, task_type.action_size))
    bullet = bullet_episodes(env, dt, policy, starts, noise)
    with jax.enable_x64(True):
        exact = closed_form_episodes(task_type(jnp.float64), dt, policy, starts, noise)
    single = closed_form_episodes(task_type(jnp.float32), dt, policy, starts, noise)

    differences = np.abs(exact.returns - bullet.returns)
    calm = differences[~exact.hit_a_limit]
    print(
        f"\n{task_type.__name__} {dt} {policy_name}: {episodes} episodes, mean return "
        f"{bullet.returns.mean():.3f}; difference median {np.median(differences):.1e}, worst {differences.max():.1e}, "
        f"worst of the {len(calm)} without a limit hit {calm.max(initial=0):.1e}; "
        f"float32 mean difference {np.mean(single.returns - bullet.returns):+.1e}"
    )
    assert np.median(differences) < 1e-9
    assert differences.max() < 1e-4
    assert calm.max(initial=0) < 1e-8
    # At full strength random torques drive the elbow into its limit in nearly every episode.
    assert len(calm) > 0 or (task_type, policy_name) == (Reacher, "random")
    np.testing.assert_array_equal(exact.lengths, bullet.lengths)
    standard_error = bullet.returns.std(ddof=1) / np.sqrt(episodes)
    assert abs(np.mean(single.returns - bullet.returns)) < standard_error
