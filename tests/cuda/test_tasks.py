"""What the host knows of the kernel's tasks: their numbers, how episodes begin, and what observations show."""

import ctypes
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import ks_2samp

from cycletime.cuda.layout import ACTIONS, OBSERVATION, POSITION, TASKS, position_of
from cycletime.cuda.ppo import ENDED, TERMINAL, initial_state_of
from cycletime.tasks import CLOSED_FORMS
from cycletime.training.worlds import ClosedFormWorld
from tests.cuda.cards import measured
from tests.cuda.device_checks.philox import PhiloxStream, philox
from tests.cuda.device_checks.tasks import KERNEL_TASKS
from tests.cuda.emulated import Emulated
from tests.cuda.small import Learned, learn, make_psi, make_spec

ALL = pytest.mark.parametrize("name", TASKS)
JUDGING = ("pendulum", "cart-pole", "mountain-car", "acrobot")
NOT_SEEN = {"reacher": ("late_q1", "late_q2", "target_x", "target_y"), "double-pendulum": ("late_x", "late_y")}
"""Poses of the step before, and what never changes."""
EDGES: dict[str, list[tuple[float, ...]]] = {
    "pendulum": [(3.14, 7.99), (-3.14, -7.99)],
    "cart-pole": [
        (1.8002, 3.0, 0.05, 0.0),
        (-1.8007, -2.0, 0.02, 3.0),
        (1.9, 1.0, -1.0, -9.0),
        (-1.79, 0.0, -8.0, 40.0),
    ],
    "mountain-car": [(-1.199, -0.07), (-1.2, 0.0), (0.3, 0.0699)],
    "acrobot": [(3.1, -3.1, 12.5, -28.2), (-3.1, 3.1, -12.5, 28.2)],
}
"""At rail ends, at the strongest speeds, and where angles begin anew."""


def test_both_sides_have_the_same_tasks_in_the_same_order(library: ctypes.CDLL) -> None:
    library.task_name.restype = ctypes.c_char_p
    told = [library.task_name(number).decode() for number in range(library.task_count())]
    assert told == list(TASKS)
    assert set(told) == set(CLOSED_FORMS) - {"ur-reacher"}, "every task in closed form but the robot's is in the kernel"


@ALL
def test_acting_takes_what_was_measured(name: str) -> None:
    found = measured(rf"us per agent step, {name}, .* about (\S+) \+ (\S+) k")
    assert [1e6 * each for each in TASKS[name]] == pytest.approx(list(map(float, found)), rel=0.01)


@ALL
def test_a_task_fits_into_the_kernel(name: str) -> None:
    task = ClosedFormWorld(name).task
    assert task.observation_size <= OBSERVATION
    assert task.action_size <= ACTIONS
    assert len(jax.eval_shape(task.reset, jax.random.key(0))) - 1 <= POSITION["world"].shape[0]


@ALL
def test_episodes_begin_as_those_of_the_closed_form_do(name: str) -> None:
    """The same distributions, by independent draws."""
    task, begin, rng = ClosedFormWorld(name).task, KERNEL_TASKS[name].begin, np.random.default_rng(1)
    ours = np.array([begin(words) for words in philox(1, PhiloxStream.STARTS, np.arange(1000))])
    theirs = np.array([task.draw_start(rng) for _ in range(1000)])
    for our, their in zip(ours.T, theirs.T, strict=True):
        assert ks_2samp(our, their).pvalue > 0.01
    drawn = ours[:, ours.std(axis=0) > 0]
    related = np.atleast_2d(np.corrcoef(drawn.T)) - np.eye(drawn.shape[1])
    assert np.abs(related).max() < 0.1, "numbers are drawn independently"


@ALL
def test_an_observation_shows_the_state(name: str) -> None:
    with jax.enable_x64(True):
        task: Any = replace(ClosedFormWorld(name).task, dtype=jnp.float64)
        state, other = (task.start(*np.linspace(first, 0.6, len(task.state_limits))) for first in (0.1, -0.2))
        other = other._replace(**{part: getattr(state, part) for part in NOT_SEEN.get(name, ())})
        shown = KERNEL_TASKS[name].as_seen(np.asarray(task.observe(state)), other)
        for part, expected in state._asdict().items():
            assert float(getattr(shown, part)) == pytest.approx(float(expected), abs=1e-9), part


@pytest.mark.parametrize("name", EDGES)
def test_a_cycle_at_the_edges_is_that_of_the_closed_form(device: Emulated, name: str) -> None:
    with jax.enable_x64(True):
        task = replace(ClosedFormWorld(name).task, dtype=jnp.float64)
        cycle = jax.jit(partial(task.cycle, cycle_steps=4))
        for numbers in EDGES[name]:
            told = _from_state(device, name, numbers, 0)
            expected = cycle(task.start(*np.array(numbers, np.float32)), told.rows["action"][0, :1].astype(np.float64))
            seen = told.rows["observation"][1, : task.observation_size]
            np.testing.assert_allclose(seen, expected.observation, atol=4e-6)
            assert told.beside["reward"][0] == pytest.approx(float(expected.reward), abs=1e-6)


@pytest.mark.parametrize("name", JUDGING)
def test_the_time_limit_ends_an_episode_inside_a_cycle(device: Emulated, name: str) -> None:
    task = ClosedFormWorld(name).task
    told = _from_state(device, name, KERNEL_TASKS[name].begin(np.arange(4, dtype=np.uint32)), task.limit_steps - 10)
    assert _ended(told) == [2], "ten steps are two cycles of four, and a short one"
    assert told.result.records["env_steps"].tolist() == [task.limit_steps]
    assert told.rows["next"][2] & TERMINAL


def test_a_car_at_its_goal_gets_the_bonus_and_pays_for_the_steps_that_it_took(device: Emulated) -> None:
    told = _from_state(device, "mountain-car", (0.42, 0.07), 100)
    assert _ended(told) == [0]
    assert told.result.records["env_steps"].tolist() == [103], "0.014 a step, and 0.45 is the goal"
    cost = 0.1 * 3 / 5 * float(told.rows["action"][0, 0]) ** 2
    assert told.beside["reward"][0] == pytest.approx(100 - cost, abs=1e-4)


def test_a_car_that_arrives_backwards_goes_on(device: Emulated) -> None:
    assert not _ended(_from_state(device, "mountain-car", (0.5, -0.07), 0))


def test_a_tip_above_the_line_ends_the_episode_and_that_step_costs_nothing(device: Emulated) -> None:
    """Both links point upwards at 60 degrees, where the tip is at twice 0.5, and rise by 0.87 m/s each."""
    told = _from_state(device, "acrobot", (2 * np.pi / 3 - 0.005, 0.0, 1.0, 0.0), 7)
    assert _ended(told) == [0]
    assert told.result.records["env_steps"].tolist() == [9]
    assert told.beside["reward"][0] == pytest.approx(-1 / 50), "one step of 4 ms below the line, of 200"


def _from_state(device: Emulated, name: str, numbers: tuple[float, ...], env_steps: int) -> Learned:
    """Five cycles of four environment steps, from the middle of an episode."""
    env_dt, task = ClosedFormWorld(name).env_dt, ClosedFormWorld(name).task
    state = initial_state_of(make_psi(1, observations=task.observation_size))
    position: Any = position_of(state)
    position["status"], position["world_steps"] = 1, env_steps
    position["world"][: len(numbers)] = numbers
    return learn(device, make_spec(name, str(4 * env_dt), batch=5, minibatch=5, epochs=1), state)


def _ended(told: Learned) -> list[int]:
    rows: list[int] = np.flatnonzero(told.rows["next"][:5] & ENDED).tolist()
    return rows
