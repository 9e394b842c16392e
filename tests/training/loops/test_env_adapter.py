from __future__ import annotations

from functools import partial

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from cycletime.agents import Transition
from cycletime.errors import InputError
from cycletime.tasks import CycleTime, DoublePendulum, Reacher
from cycletime.tasks.closed_form import ClosedFormTask
from cycletime.training import algorithm_1
from cycletime.training.algorithm_1 import TimedTask
from cycletime.training.env_adapter import Counters, SingleEnvAdapter, StepResult, adapt_env
from cycletime.training.random_numbers import Purpose, key_for
from cycletime.training.stepped_loop import SteppedLoop
from tests.training.loops import conftest
from tests.training.loops.conftest import Spy

pytestmark = pytest.mark.usefixtures("compiled_quickly")

Counter = partial(conftest.Counter, first_reward=1)


def history(length: int, rows: int) -> list[list[float]]:
    """S, R, S', terminated and truncated of a counter, told from what it is."""
    told: list[list[float]] = []
    episode = total = 0
    while len(told) < rows:
        for step in range(length):
            total, ends = total + 1, step == length - 1
            told.append([episode, step, total, episode, step + 1, ends and not episode % 2, ends and episode % 2])
        episode += 1
    return told[:rows]


def test_rows_hold_the_true_transitions_of_each_copy() -> None:
    env = SyncVectorEnv([partial(Counter, length) for length in (2, 3)], autoreset_mode=AutoresetMode.DISABLED)
    loop = SteppedLoop(env=env, agent=Spy(batch=26, minibatch=26, hidden=()), env_steps=1)
    *_, chunk = loop.run(0)
    buffer = chunk.position.buffer
    rows = buffer.read(buffer.rows)
    numbers = [rows.observation, rows.reward, rows.next_observation, rows.terminated, rows.truncated]
    got = np.concatenate([np.asarray(part).reshape(13, 2, -1) for part in numbers], axis=2)
    for copy, length in enumerate((2, 3)):
        np.testing.assert_array_equal(got[:, copy], history(length, 13))
    assert chunk.position.agent_steps == chunk.position.env_steps == 26


def test_copies_tell_the_steps_of_cycles_that_episodes_cut_short() -> None:
    makers = [lambda: CycleTime(Counter(7), "3ms", env_dt="1ms")] * 2
    copies = adapt_env(SyncVectorEnv(makers, autoreset_mode=AutoresetMode.DISABLED))
    copies.begin(0, 0)
    steps = []
    for _ in range(5):
        result = copies.step(np.zeros((2, 1), np.float32))
        steps.append(result.env_steps.tolist())
        if result.ended.all():  # as the loop does
            copies.begin(0, 2)
    assert steps == [[3, 3], [3, 3], [1, 1], [3, 3], [3, 3]]


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_copies_that_begin_episodes_by_themselves_are_refused(mode: AutoresetMode) -> None:
    for env in (
        SyncVectorEnv([partial(Counter, 2)], autoreset_mode=mode),
        gymnasium.make_vec("cycletime/Reacher-v0", num_envs=2, dt="64ms"),
    ):
        with pytest.raises(
            InputError, match=r"mode is AutoresetMode\.[A-Z_]+, is none of .*: make it with .*AutoresetMode\.DISABLED"
        ):
            adapt_env(env)


def test_episodes_begin_with_a_seed_of_their_own() -> None:
    env = SingleEnvAdapter(gymnasium.make("Pendulum-v1"))
    first, second, again = env.begin(3, 0), env.begin(3, 1), env.begin(3, 0)
    np.testing.assert_array_equal(first, again)
    assert (first != second).any()
    assert (first != env.begin(4, 0)).any()


# The same worlds as in the compiled loop.


def compiled_transitions(
    task: ClosedFormTask, cycle_steps: int, count: int
) -> tuple[Transition, algorithm_1.ChunkOutput]:
    """So many agent steps of a run of the compiled loop that does not learn."""
    agent = Spy(batch=count, minibatch=count, hidden=())
    shape = algorithm_1.ProgramShape(TimedTask(task, cycle_steps), capacity=count, periods=1, alone=True)
    state = algorithm_1.initialize(shape, agent, jax.random.key(0))
    state, output = algorithm_1.advance(shape, agent, state, jnp.int32(1), learns=False)
    return jax.tree.map(lambda part: np.asarray(part)[:, 0], state.buffer.oldest_first()), output


@pytest.mark.parametrize(
    ("name", "task", "cycle_steps", "count"),
    [
        ("Reacher", Reacher(), 32, 50),
        ("DoublePendulum", DoublePendulum(), 4, 120),
    ],
)
def test_the_same_actions_give_the_same_transitions_as_in_the_compiled_loop(
    name: str, task: ClosedFormTask, cycle_steps: int, count: int
) -> None:
    compiled, output = compiled_transitions(task, cycle_steps, count)
    env = gymnasium.make(f"cycletime/{name}-v0", dt=str(task.env_dt * cycle_steps))
    copies, lengths, steps = SingleEnvAdapter(env), [0], [0]
    ended, reset = True, jax.jit(task.reset)
    for row in range(count):
        if ended:
            key = key_for(jax.random.key(0), Purpose.STARTS, len(lengths) - 1)
            state = [float(number) for number in task.numbers(reset(key))]
            observation = np.array([env.reset(options={"state": state})[0]])
        np.testing.assert_allclose(observation[0], compiled.observation[row], rtol=1e-5, atol=1e-5)
        result = copies.step(np.asarray(compiled.action[row])[None])
        np.testing.assert_allclose(result.reward[0], compiled.reward[row], rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(result.successor[0], compiled.next_observation[row], rtol=1e-5, atol=1e-5)
        assert result.terminated[0] == compiled.terminated[row]
        assert result.truncated[0] == compiled.truncated[row]
        ended, observation = bool(compiled.ended[row]), result.observation
        lengths[-1], steps[-1] = lengths[-1] + int(result.env_steps[0]), steps[-1] + 1
        if ended:
            lengths.append(0)
            steps.append(0)
    episodes = len(lengths) - 1
    assert episodes >= 1
    np.testing.assert_array_equal(output.episodes.env_steps[:episodes], lengths[:-1])
    np.testing.assert_array_equal(output.episodes.agent_steps[:episodes], steps[:-1])
    assert any(length % cycle_steps for length in lengths[:-1])  # some end inside a cycle


# Counting.


def result(*, reward: list[float], ended: list[bool], env_steps: list[int]) -> StepResult:
    seen, flags = np.zeros((len(reward), 1), np.float32), np.array(ended)
    return StepResult(seen, np.array(reward), flags, np.zeros_like(flags), np.array(env_steps), seen)


def test_copies_are_counted_together_and_their_episodes_apart() -> None:
    counters = Counters(2)
    counters.count(result(reward=[1, 10], ended=[False, True], env_steps=[3, 2]))
    counters.count(result(reward=[2, 20], ended=[True, True], env_steps=[3, 3]))
    assert (counters.env_steps, counters.agent_steps, counters.episodes) == (11, 4, 3)
    episodes = counters.pop_episodes()
    np.testing.assert_array_equal(episodes.env_steps, [5, 11, 11])
    np.testing.assert_array_equal(episodes.agent_steps, [2, 4, 4])
    np.testing.assert_array_equal(episodes.returns, [10, 3, 20])
    np.testing.assert_array_equal(episodes.length_steps, [2, 6, 3])
    assert len(counters.pop_episodes()) == 0


def test_refusals_name_the_copy() -> None:
    counters = Counters(3)
    counters.check_finite(reward=np.array([0.0, 1e30, -1e30]))
    with pytest.raises(InputError, match=r"The reward of copy 1 is nan at agent step 1 of its episode"):
        counters.check_finite(reward=np.array([0.0, np.nan, np.inf]))
    with pytest.raises(InputError, match=r"The action of copy 2 is \[0.0, inf\].*smaller learning rate"):
        counters.check_finite(action=np.array([[0, 0], [0, 0], [0, np.inf]], np.float32))


def test_great_numbers_that_float32_holds_are_taken_and_no_greater_ones() -> None:
    counters, greatest = Counters(1), float(np.finfo(np.float32).max)
    for fine in (0.0, 1e19, 1e30, greatest, -greatest):
        counters.check_finite(observation=np.array([[1, fine]], np.float32), reward=np.array([fine]))
    for wrong in (np.nan, np.inf, -np.inf, 1e39, -1e300):
        with pytest.raises(InputError, match=r"The reward is .* must give finite numbers that fit float32"):
            counters.check_finite(reward=np.array([wrong]))
        with np.errstate(over="ignore"), pytest.raises(InputError, match="The successor is "):
            counters.check_finite(successor=np.array([[0, wrong]]).astype(np.float32))
