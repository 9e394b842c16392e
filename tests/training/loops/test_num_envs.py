"""Several environments of a run: against Algorithm 1 written out for each of them, and that no cut leaves a trace."""

from itertools import islice
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents import Agent, Buffer, PPOAgent, SACAgent
from cycletime.agents.agent import AgentState, choose_action
from cycletime.agents.exploration import OrnsteinUhlenbeck
from cycletime.errors import InputError
from cycletime.tasks.closed_form import ClosedFormTask
from cycletime.training.compiled_loop import CompiledChunk, CompiledLoop
from cycletime.training.learning_curve import Episodes
from cycletime.training.random_numbers import Purpose, key_for, seed_key
from tests.training.loops.test_compiled import assert_same_runs, finish
from tests.training.loops.test_rollout import assert_alike

pytestmark = pytest.mark.usefixtures("compiled_quickly")
ENVS, K = 3, 4
PPO = PPOAgent(batch=24, minibatch=12, hidden=(4,), epochs=1)
SAC = SACAgent(minibatch=3, warmup_steps=20, replay_capacity=30, learning_period=6, gradient_steps=2, hidden=(4,))

ROWS_OF_UPDATES = SACAgent(minibatch=3, warmup_steps=20, replay_capacity=30, hidden=(4,))


def make_loop(task: ClosedFormTask, **overrides: object) -> CompiledLoop:
    options: dict[str, Any] = {"task": task, "agent": PPO, "dt": "40ms", "env_steps": 1000, "num_envs": ENVS}
    return CompiledLoop(**{**options, **overrides})


def written_out(  # noqa: C901 - the paper's loops, one inside the other
    task: ClosedFormTask, agent: Agent, periods: int
) -> tuple[AgentState, list[tuple[float, ...]]]:
    """What is learned, and of each episode the run's steps at its end, its return and its environment steps.

    One environment after the other, one environment step at a time; rows of the buffer in a list.
    """
    key = seed_key(5)
    psi = jax.jit(agent.initialize, static_argnums=(1, 2))(
        key_for(key, Purpose.INITIALIZE), task.observation_size, task.action_size
    )
    begin = jax.jit(lambda number: task.reset(key_for(key, Purpose.STARTS, number)))
    act = jax.jit(lambda psi, s, noise, n: choose_action(agent, psi, s, noise, n))
    one_step, observe, learn = jax.jit(task.step), jax.jit(task.observe), jax.jit(agent.learn)
    states, totals, lengths = [begin(number) for number in range(ENVS)], [0.0] * ENVS, [0] * ENVS
    begun, env_steps, agent_steps = ENVS, 0, 0
    rows: list[Any] = []
    episodes: list[tuple[float, ...]] = []
    at_once = max(1, ENVS // agent.period)
    for first in range(0, periods, at_once):
        keys = [key_for(key, Purpose.NOISE, first + each) for each in range(at_once)]
        noise = np.concatenate([jax.random.normal(each, (agent.period, task.action_size)) for each in keys])
        for place in range(len(noise) // ENVS):
            row, ended_now = [], []
            for env in range(ENVS):
                seen, reward, ended = observe(states[env]), 0.0, False
                action = act(psi, seen, noise[place * ENVS + env], agent_steps + env)
                for _ in range(K):
                    step = one_step(states[env], action)
                    states[env], reward, ended = (
                        step.state,
                        reward + float(step.reward),
                        bool(step.terminated | step.truncated),
                    )
                    env_steps, lengths[env] = env_steps + 1, lengths[env] + 1
                    if ended:
                        break
                parts = (seen, action, reward, step.observation, step.terminated, step.truncated)
                row.append(np.concatenate([np.asarray(part, np.float32).reshape(-1) for part in parts]))
                totals[env] += reward
                if ended:
                    ended_now.append(env)
            agent_steps += ENVS
            rows = [*rows, np.stack(row)][-(agent.capacity // ENVS) :]
            for env in ended_now:
                episodes.append((env_steps, agent_steps, totals[env], lengths[env]))
                states[env], totals[env], lengths[env], begun = begin(begun), 0.0, 0, begun + 1
        if len(rows) * ENVS >= agent.learns_from:
            table = np.zeros((agent.capacity // ENVS, *rows[0].shape), np.float32)
            stored = agent_steps // ENVS
            for age, row_ in enumerate(reversed(rows)):
                table[(stored - 1 - age) % len(table)] = row_
            newest = jnp.zeros((ENVS, task.observation_size))
            buffer = Buffer(jnp.asarray(table), jnp.int32(stored), newest, task.observation_size, task.action_size)
            for period in range(first, first + at_once):
                psi, _ = learn(psi, buffer, agent.draw(key_for(key, Purpose.LEARNING, period), task.action_size))
    return psi, episodes


@pytest.mark.parametrize("agent", [PPO, SAC, ROWS_OF_UPDATES], ids=["PPO", "SAC", "three updates for each row"])
@pytest.mark.parametrize("width", [1, 2])
def test_equals_algorithm_1_written_out(agent: Agent, width: int, wander: ClosedFormTask) -> None:
    loop = make_loop(wander, agent=agent, env_steps=400, width=width)
    chunks = list(loop.run([5] if width == 1 else [9, 5]))
    run = width - 1
    episodes = Episodes.joined(chunk.episodes[run] for chunk in chunks)
    at_end = next(chunk for chunk in chunks if run in chunk.finished).position
    periods = int(np.atleast_1d(at_end.state.agent_steps)[run]) // agent.period
    psi, expected = written_out(wander, agent, periods)
    expected = [each for each in expected if each[0] <= 400]
    columns = (episodes.env_steps, episodes.agent_steps, episodes.returns, episodes.length_steps)
    assert len(episodes) > 20
    for column, numbers in zip(columns, zip(*expected, strict=True), strict=True):
        np.testing.assert_allclose(column, numbers, atol=1e-4)
    (learned,) = [chunk.finished[run] for chunk in chunks if run in chunk.finished]
    assert_alike(learned, psi, 2e-4)


@pytest.mark.usefixtures("short_chunks")
@pytest.mark.parametrize("width", [1, 2])
def test_no_cut_leaves_a_trace(wander: ClosedFormTask, width: int) -> None:
    """Chunks of one period, and a run that goes on from each of its odd ones, against one that nobody stopped."""
    agent = PPOAgent(batch=24, minibatch=12, hidden=(4,), epochs=1, exploration=OrnsteinUhlenbeck("100ms").at("40ms"))
    loop = make_loop(wander, agent=agent, width=width)
    seeds = list(range(width))
    (whole,) = [finish(list(each.run(seeds))) for each in [loop]]
    for cut in (1, 4, 7):
        begun = list(islice(make_loop(wander, agent=agent, width=width).run(seeds), cut))
        rest = make_loop(wander, agent=agent, width=width).run(seeds, position=begun[-1].position)
        chunks: list[CompiledChunk] = [*begun, *rest]
        assert_same_runs(finish(chunks), whole)


def test_environment_steps_are_of_all_environments(wander: ClosedFormTask) -> None:
    chunks = list(make_loop(wander).run([0]))
    episodes, _ = finish(chunks)
    state = chunks[-1].position.state
    assert state.walk.env_steps is not None
    open_steps = int(np.sum(state.walk.state.env_steps))
    assert int(chunks[-1].position.ended_env_steps[0]) + open_steps == int(state.walk.env_steps)
    assert int(state.walk.env_steps) >= 1000 == chunks[-1].env_steps[0]
    assert (np.diff(episodes.env_steps) >= 0).all()
    assert (np.diff(episodes.env_steps) == 0).any()
    assert (episodes.agent_steps % ENVS == 0).all()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"num_envs": 5}, "The batch is 24, which 5 environments do not divide: give 20 or 25."),
        ({"num_envs": 0}, "num_envs is 0: it must be a whole number"),
        ({"num_envs": 48}, "keeps 24 transitions at a time, but 48 environments make more"),
        ({"agent": SACAgent(learning_period=3), "num_envs": 8}, "give 8, or one that divides their number"),
        ({"agent": PPOAgent(learn_when="episode_end"), "num_envs": 2}, "learn_when is 'episode_end'"),
        ({"env_steps": 2**31 - 5}, "must be below"),
    ],
)
def test_what_cannot_run_is_refused(wander: ClosedFormTask, overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_loop(wander, **overrides)
