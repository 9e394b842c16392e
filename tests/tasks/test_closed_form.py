"""The closed-form tasks as pure functions: cycles, ends, precision, vmap and scan."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.errors import InputError
from cycletime.tasks import Acrobot, CartPole, DoublePendulum, MountainCar, Pendulum, Reacher, URReacher

pytestmark = pytest.mark.usefixtures("compiled_quickly")
TASKS: list[Any] = [Reacher(), DoublePendulum(), Pendulum(), CartPole(), MountainCar(), Acrobot(), URReacher()]
"""The last one's draws are slow; test_ur_reacher.py has what they are."""
ALL = pytest.mark.parametrize("task", TASKS, ids=[task.title for task in TASKS])


@cache
def reset_of(task: Any) -> Callable[..., Any]:  # noqa: ANN401
    """Its `reset` as one program, which compiles faster than its parts one by one."""
    return jax.jit(task.reset)


@cache
def step_of(task: Any) -> Callable[..., Any]:  # noqa: ANN401
    """Its `step`, in the same way."""
    return jax.jit(task.step)


@cache
def cycle_of(task: Any, k: int) -> Callable[..., Any]:  # noqa: ANN401
    """Its `cycle`, in the same way."""
    return jax.jit(lambda state, action: task.cycle(state, action, k))


def steps_of(task: Any, state: Any, action: jax.Array, count: int) -> list[Any]:  # noqa: ANN401
    """Environment steps one after another, until one ends the episode."""
    taken: list[Any] = []
    for _ in range(count):
        taken.append(step_of(task)(state, action))
        state = taken[-1].state
        if taken[-1].terminated or taken[-1].truncated:
            break
    return taken


@ALL
@pytest.mark.parametrize("k", [1, *(pytest.param(k, marks=pytest.mark.slow) for k in (2, 8)), 32])
def test_a_cycle_is_the_sum_of_its_environment_steps(task: Any, k: int) -> None:  # noqa: ANN401
    for seed in range(3):
        state, action = reset_of(task)(jax.random.key(seed)), jnp.full(task.action_size, 0.3)
        steps = steps_of(task, state, action, k)
        cycle = cycle_of(task, k)(state, action)
        np.testing.assert_allclose(cycle.reward, sum(float(step.reward) for step in steps), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(cycle.observation, steps[-1].observation, rtol=1e-5, atol=1e-5)
        assert cycle.state.env_steps == len(steps)
        assert (cycle.terminated, cycle.truncated) == (steps[-1].terminated, steps[-1].truncated)


def test_a_cycle_ends_with_the_episode_when_the_time_is_up() -> None:
    task = Reacher()
    state, lengths, truncated = reset_of(task)(jax.random.key(0)), [], False
    while not truncated:
        out = cycle_of(task, 32)(state, jnp.zeros(2))
        lengths.append(int(out.state.env_steps - state.env_steps))
        truncated = bool(out.truncated)
        assert not out.terminated
        state = out.state
    assert lengths == [32] * 37 + [16]


def test_a_cycle_ends_with_the_fall() -> None:
    task = DoublePendulum()
    state = task.start(*(jnp.float32(x) for x in (0.0, 0.4, 0.5, 0.0, 1.0, 1.0)))
    steps = steps_of(task, state, jnp.zeros(1), 200)
    assert 10 < len(steps) < 200
    out = cycle_of(task, 200)(state, jnp.zeros(1))
    assert (bool(out.terminated), bool(out.truncated), int(out.state.env_steps)) == (True, False, len(steps))
    np.testing.assert_allclose(out.reward, sum(float(step.reward) for step in steps), rtol=1e-5)


def test_a_balanced_pendulum_is_truncated_after_16_seconds_and_not_terminated() -> None:
    task = DoublePendulum()
    state = task.start(*(jnp.float32(x) for x in (0, 0, 0, 0, 0, 0)))._replace(env_steps=jnp.int32(3999))
    out = cycle_of(task, 4)(state, jnp.zeros(1))
    assert (bool(out.terminated), bool(out.truncated), int(out.state.env_steps)) == (False, True, 4000)
    np.testing.assert_allclose(out.reward, 2.34, atol=0.01)


@ALL
def test_many_copies_are_the_single_one(task: Any) -> None:  # noqa: ANN401
    keys = jax.random.split(jax.random.key(3), 5)
    actions = jax.random.normal(jax.random.key(4), (5, task.action_size))
    many = jax.jit(jax.vmap(lambda key, action: task.cycle(task.reset(key), action, 8)))(keys, actions)
    for i in range(5):
        alone = cycle_of(task, 8)(reset_of(task)(keys[i]), actions[i])
        np.testing.assert_allclose(many.observation[i], alone.observation, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(many.reward[i], alone.reward, rtol=1e-5, atol=1e-5)


@ALL
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_number_has_the_precision_that_was_asked_for(task: Any, dtype: str) -> None:  # noqa: ANN401
    with jax.enable_x64(True):
        task = type(task)(jnp.dtype(dtype).type)
        begin_and_cycle = partial(lambda key, action: task.cycle(task.reset(key), action, 4), jax.random.key(0))
        out = jax.eval_shape(begin_and_cycle, np.full(task.action_size, 0.5))
        numbers = {leaf.dtype for leaf in jax.tree.leaves(out)} - {jnp.dtype("bool"), jnp.dtype("int32")}
        assert numbers == {jnp.dtype(dtype)}


def test_a_precision_that_jax_would_replace_silently_is_refused() -> None:
    with pytest.raises(InputError, match="jax_enable_x64"):
        Reacher(jnp.float64)
    with pytest.raises(InputError, match="it must be"):
        Reacher(jnp.int32)


@ALL
def test_gradients_flow_through_a_cycle(task: Any) -> None:  # noqa: ANN401
    state, action = reset_of(task)(jax.random.key(1)), jnp.full(task.action_size, 0.1)
    slope = jax.jit(jax.grad(lambda action, state: task.cycle(state, action, 8).observation.sum()))(action, state)
    assert np.isfinite(slope).all()
    assert (np.abs(slope) > 0).all()


def test_resets_have_the_specified_distributions() -> None:
    states = jax.jit(jax.vmap(Reacher().reset))(jax.random.split(jax.random.key(0), 4000))
    for name, limit in (("q1", 3.14), ("q2", 3.14), ("target_x", 0.27), ("target_y", 0.27)):
        drawn = np.asarray(getattr(states, name)) / limit
        assert (np.abs(drawn) <= 1).all()
        np.testing.assert_allclose([drawn.mean(), drawn.var()], [0, 1 / 3], atol=0.03)
    assert 0.03 < np.mean(np.abs(states.q2) > 3) < 0.06, "the elbow may start beyond its limit"
    poles = jax.jit(jax.vmap(DoublePendulum().reset))(jax.random.split(jax.random.key(0), 4000))
    for name in ("lower", "upper"):
        np.testing.assert_allclose(np.asarray(getattr(poles, name)).std(), 0.1 / np.sqrt(3), rtol=0.03)
    assert (np.abs(poles.x) == 0).all()


@pytest.mark.parametrize("task", TASKS[:-1], ids=[task.title for task in TASKS[:-1]])
def test_resets_of_jax_and_of_numpy_have_one_distribution(task: Any) -> None:  # noqa: ANN401
    keys, rng = jax.random.split(jax.random.key(1), 4000), np.random.default_rng(1)
    reset = np.asarray(jax.jit(jax.vmap(lambda key: jnp.stack(task.numbers(task.reset(key)))))(keys))
    drawn = np.array([task.draw_start(rng) for _ in keys])
    spread = drawn.std(axis=0) + 1e-9
    np.testing.assert_allclose((reset.mean(axis=0) - drawn.mean(axis=0)) / spread, 0, atol=0.1)
    np.testing.assert_allclose(reset.std(axis=0), drawn.std(axis=0), rtol=0.1, atol=1e-6)
