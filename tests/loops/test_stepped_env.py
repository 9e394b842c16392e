from __future__ import annotations

from functools import partial
from typing import Any, cast

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from cycletime.agents import PPOAgent, Transition
from cycletime.errors import InputError
from cycletime.loops import program
from cycletime.loops.randomness import Purpose, key_for
from cycletime.loops.rollout import World
from cycletime.loops.stepped import SteppedLoop
from cycletime.loops.stepped_env import One, copies_of
from cycletime.tasks import CycleTime, DoublePendulum, Reacher
from cycletime.tasks.closed_form import ClosedFormTask
from tests.loops import conftest

pytestmark = pytest.mark.usefixtures("compiled_quickly")

Clock = partial(conftest.Clock, first_reward=1)


def history(length: int, rows: int, *, gaps: bool) -> list[list[float]]:
    """S, R, S', terminated, truncated and weight of a clock, told from what it is."""
    told: list[list[float]] = []
    episode = total = 0
    while len(told) < rows:
        for step in range(length):
            total, ends = total + 1, step == length - 1
            told.append([episode, step, total, episode, step + 1, ends and not episode % 2, ends and episode % 2, 1])
        if gaps:
            told.append([episode, length, 0, episode + 1, 0, 0, 0, 0])
        episode += 1
    return told[:rows]


@pytest.mark.parametrize("mode", AutoresetMode)
def test_rows_hold_the_true_transitions_in_every_autoreset_mode(mode: AutoresetMode) -> None:
    env = SyncVectorEnv([partial(Clock, length) for length in (2, 3)], autoreset_mode=mode)
    gaps = mode is AutoresetMode.NEXT_STEP
    loop = SteppedLoop(env=env, agent=PPOAgent(batch=26, minibatch=26, epochs=1, hidden=(4,)), env_steps=1)
    *_, chunk = loop.run(0)
    buffer = chunk.position.buffer
    rows = buffer.read(buffer.rows)
    weight = np.ones((13, 2)) if rows.weight is None else rows.weight
    numbers = [rows.observation, rows.reward, rows.next_observation, rows.terminated, rows.truncated, weight]
    got = np.concatenate([np.asarray(part).reshape(13, 2, -1) for part in numbers], axis=2)
    # With gaps the twelfth step only begins episodes, in both copies, and is no row.
    expected = [history(length, 14, gaps=gaps) for length in (2, 3)]
    for copy in (0, 1):
        if gaps:
            assert expected[copy].pop(11)[-1] == 0
        np.testing.assert_array_equal(got[:, copy], expected[copy][:13])
    assert chunk.position.agent_steps == chunk.position.env_steps == weight.sum()


@pytest.mark.parametrize("mode", AutoresetMode)
def test_copies_tell_the_steps_of_cycles_that_episodes_cut_short(mode: AutoresetMode) -> None:
    makers = [lambda: CycleTime(Clock(7), "3ms", env_dt="1ms")] * 2
    copies = copies_of(SyncVectorEnv(makers, autoreset_mode=mode))
    copies.begin(0, 0)
    steps = [copies.step(np.zeros((2, 1), np.float32)).env_steps.tolist() for _ in range(5)]
    gap = [[0, 0]] if mode is AutoresetMode.NEXT_STEP else []
    assert steps == [[3, 3], [3, 3], [1, 1], *gap, [3, 3], [3, 3]][:5]


def test_one_copy_never_has_gaps() -> None:
    loop = SteppedLoop(
        env=SyncVectorEnv([partial(Clock, 2)]), agent=PPOAgent(batch=6, minibatch=6, hidden=(4,)), env_steps=6
    )
    *_, chunk = loop.run(0)
    assert chunk.position.agent_steps == chunk.position.rows == 6
    assert not chunk.position.buffer.has_gaps


def test_an_unknown_autoreset_mode_is_refused() -> None:
    env = SyncVectorEnv([partial(Clock, 2)])
    env.metadata = {}
    with pytest.raises(InputError, match="autoreset_mode None"):
        copies_of(cast("VectorEnv[Any, Any, Any]", env))


def test_episodes_begin_with_a_seed_of_their_own() -> None:
    env = One(gymnasium.make("Pendulum-v1"))
    first, second, again = env.begin(3, 0), env.begin(3, 1), env.begin(3, 0)
    np.testing.assert_array_equal(first, again)
    assert (first != second).any()
    assert (first != env.begin(4, 0)).any()


# The same worlds as in the compiled loop.


def compiled_transitions(task: ClosedFormTask, cycle_steps: int, count: int) -> tuple[Transition, program.Report]:
    """So many agent steps of a run of the compiled loop that does not learn."""
    agent = PPOAgent(batch=count, minibatch=count, hidden=(8,))
    shape = program.Shape(World(task, cycle_steps), capacity=count, periods=1, alone=True)
    state = program.initialize(shape, agent, jax.random.key(0))
    state, report = program.advance(shape, agent, state, jnp.int32(1), learns=False)
    return jax.tree.map(lambda part: np.asarray(part)[:, 0], state.buffer.oldest_first()), report


@pytest.mark.parametrize(
    ("name", "task", "cycle_steps", "count", "inside"),
    [
        ("Reacher", Reacher(), 8, 170, False),
        ("Reacher", Reacher(), 32, 50, True),
        ("DoublePendulum", DoublePendulum(), 4, 120, True),
    ],
)
def test_the_same_actions_give_the_same_transitions_as_in_the_compiled_loop(
    name: str, task: ClosedFormTask, cycle_steps: int, count: int, inside: bool
) -> None:
    compiled, report = compiled_transitions(task, cycle_steps, count)
    env = gymnasium.make(f"cycletime/{name}-v0", dt=str(task.env_dt * cycle_steps))
    copies, lengths, steps = One(env), [0], [0]
    ended = True
    for row in range(count):
        if ended:
            key = key_for(jax.random.key(0), Purpose.STARTS, len(lengths) - 1)
            state = [float(number) for number in task.numbers(jax.jit(task.reset)(key))]
            observation = np.array([env.reset(options={"state": state})[0]])
        np.testing.assert_allclose(observation[0], compiled.observation[row], rtol=1e-5, atol=1e-5)
        outcome = copies.step(np.asarray(compiled.action[row])[None])
        np.testing.assert_allclose(outcome.reward[0], compiled.reward[row], rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(outcome.successor[0], compiled.next_observation[row], rtol=1e-5, atol=1e-5)
        assert outcome.terminated[0] == compiled.terminated[row]
        assert outcome.truncated[0] == compiled.truncated[row]
        ended, observation = bool(compiled.ended[row]), outcome.observation
        lengths[-1], steps[-1] = lengths[-1] + int(outcome.env_steps[0]), steps[-1] + 1
        if ended:
            lengths.append(0)
            steps.append(0)
    episodes = len(lengths) - 1
    assert episodes >= 1
    np.testing.assert_array_equal(report.records.env_steps[:episodes], lengths[:-1])
    np.testing.assert_array_equal(report.records.agent_steps[:episodes], steps[:-1])
    assert any(length % cycle_steps for length in lengths[:-1]) == inside
