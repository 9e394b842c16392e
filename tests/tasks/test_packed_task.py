"""The row that a state travels in: nothing but the task's own numbers, to the last bit."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.tasks import DoublePendulum, Pendulum, Reacher, URReacher
from cycletime.tasks.closed_form import ClosedFormTask
from cycletime.tasks.closed_form_env import ClosedFormEnv, packed_task


@pytest.mark.parametrize(("task", "cycle_steps"), [(Reacher(), 512), (DoublePendulum(), 7)])
def test_an_episode_is_that_of_the_task_bit_for_bit(task: ClosedFormTask, cycle_steps: int) -> None:
    """With ends by the task, and cycles that the time limit cuts."""
    packed, cycle = packed_task(task, cycle_steps), jax.jit(task.cycle, static_argnums=2)
    rng = np.random.default_rng(3)
    numbers = task.draw_start(rng)
    state, ours = jax.jit(task.start)(*numbers), packed.start(numbers)
    np.testing.assert_array_equal(ours.observation, jax.jit(task.observe)(state))
    assert (ours.reward, ours.terminated, ours.env_steps) == (0.0, False, 0)
    for _ in range(40):
        action = rng.uniform(-1, 1, task.action_size).astype(np.float32)
        step, ours = cycle(state, action, cycle_steps), packed.cycle(ours.row, action.tolist())
        jax.tree.map(np.testing.assert_array_equal, packed.state(ours.row), step.state)
        np.testing.assert_array_equal(ours.observation, step.observation)
        assert ours[2:] == (float(step.reward), bool(step.terminated), int(step.state.env_steps))
        if step.terminated or step.truncated:
            break
        state = step.state
    else:
        pytest.fail("No episode has ended.")


def test_flags_and_nested_parts_of_a_state_travel_as_well() -> None:
    task, packed = URReacher(), packed_task(URReacher(), 4)
    numbers = task.draw_start(np.random.default_rng(0))
    state = packed.state(packed.start(numbers).row)
    jax.tree.map(np.testing.assert_array_equal, state, task.start(*numbers))
    assert [leaf.dtype for leaf in jax.tree.leaves(state)] == [
        leaf.dtype for leaf in jax.tree.leaves(task.start(*numbers))
    ]


def test_steps_are_counted_beyond_what_a_float32_counts() -> None:
    packed = packed_task(Pendulum(), 1)
    row = packed.start((0.1, 0.2)).row.copy()
    row[-1:].view(np.int32)[0] = 2**24
    step = packed.cycle(row, [0.0])
    assert step.env_steps == int(packed.state(step.row).env_steps) == 2**24 + 1


def test_in_float64_a_row_keeps_all_digits() -> None:
    with jax.enable_x64(True):
        task = Pendulum(jnp.float64)
        packed = packed_task(task, 8)
        begun = packed.start((0.1, 0.2))
        after = packed.cycle(begun.row, [0.3])
        assert begun.row.tolist()[:2] == [0.1, 0.2]
        expected = task.cycle(task.start(*jnp.array([0.1, 0.2])), jnp.array([0.3]), 8)
        np.testing.assert_allclose(after.row[:2], expected.state[:2], rtol=1e-13)
        assert after.env_steps == 8


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_of_an_environment_goes_on_alike_and_by_itself(copied: Callable[[Any], Any]) -> None:
    env = ClosedFormEnv(DoublePendulum(), "28ms")
    env.reset(seed=4)
    env.step(np.array([0.5]))
    twin = copied(env)
    went = [env.step(np.array([0.2])) for _ in range(3)]
    for ours, theirs in zip([twin.step(np.array([0.2])) for _ in range(3)], went, strict=True):
        np.testing.assert_array_equal(ours[0], theirs[0])
        assert ours[1:] == theirs[1:]


def test_environments_of_a_task_and_a_cycle_time_share_their_programs() -> None:
    assert packed_task(Reacher(), 8) is packed_task(Reacher(), 8)
    assert packed_task(Reacher(), 8) is not packed_task(Reacher(), 4)


def test_what_an_environment_shows_can_be_written_to_and_does_not_reach_it() -> None:
    env, other = ClosedFormEnv(DoublePendulum(), "28ms"), ClosedFormEnv(DoublePendulum(), "28ms")
    for each in (env, other):
        each.reset(seed=1)
    env.step(np.zeros(1))[0][:] = 7.0
    other.step(np.zeros(1))
    np.testing.assert_array_equal(env.step(np.zeros(1))[0], other.step(np.zeros(1))[0])
