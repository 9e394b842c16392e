"""The compiled loop against Algorithm 1 written out, environment step by environment step."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents import ActorCriticAgent, Agent, Buffer, PPOAgent, SACAgent
from cycletime.agents.agent import AgentState, choose_action
from cycletime.tasks import DoublePendulum, Reacher
from cycletime.tasks.closed_form import ClosedFormTask
from cycletime.training.algorithm_1 import ChunkOutput, LoopState, ProgramShape, TimedTask, advance, initialize
from cycletime.training.random_numbers import Purpose, key_for

pytestmark = pytest.mark.usefixtures("compiled_quickly")
SEED = jax.random.key(3)


def buffer_of(kept: list[Any], agent: Agent, task: ClosedFormTask, newest: jax.Array, agent_steps: int) -> Buffer:
    """The buffer as the agent would find it: what a list of transitions holds, oldest first.

    SAC draws places in the buffer, so that for it each transition must stand in the place where it was stored.
    """
    if isinstance(agent, SACAgent) and len(kept) == agent.capacity:
        newest_place = agent_steps % agent.capacity
        kept = kept[-newest_place:] + kept[:-newest_place] if newest_place else kept
    rows = [np.concatenate([np.asarray(part, np.float32).reshape(-1) for part in row]) for row in kept]
    room = np.zeros((agent.capacity - len(rows), len(rows[0])), np.float32)
    return Buffer(
        rows=jnp.asarray(np.concatenate([np.stack(rows), room]))[:, None],
        stored=jnp.int32(len(rows)),
        newest_successor=jnp.asarray(newest)[None],
        observation_size=task.observation_size,
        action_size=task.action_size,
    )


@cache
def programs_of(task: ClosedFormTask) -> tuple[Any, Any, Any]:
    """Its step, what is seen, and how the n-th episode begins; compiled once for all agents."""
    begin = jax.jit(lambda count: task.reset(key_for(SEED, Purpose.STARTS, count)))
    return jax.jit(task.step), jax.jit(task.observe), begin


def algorithm_1(
    task: ClosedFormTask, agent: Agent, k: int, learnings: int
) -> tuple[AgentState, list[tuple[float, int, int]]]:
    """The paper's loop as it is written: one environment step at a time, with a list for a buffer.

    Returns what was learned, and the return, environment steps and agent steps of each episode.
    """
    initialize = jax.jit(agent.initialize, static_argnums=(1, 2))
    psi = initialize(key_for(SEED, Purpose.INITIALIZE), task.observation_size, task.action_size)
    one_step, observe, begin = programs_of(task)
    draw = jax.jit(lambda count: agent.draw(key_for(SEED, Purpose.LEARNING, count), task.action_size))
    act = jax.jit(lambda psi, s, noise, n: choose_action(agent, psi, s, noise, n))
    learn = jax.jit(agent.learn)
    period, used = 0, 0  # learning periods done, agent steps in the current one
    at_end = agent.learn_when == "episode_end"
    most = TimedTask(task, k).steps_until_learning(agent)

    @jax.jit
    def noise_of(period: int) -> jax.Array:
        return jax.random.normal(key_for(SEED, Purpose.NOISE, period), (most, task.action_size))

    noise = noise_of(0)
    kept: list[Any] = []
    episodes: list[tuple[float, int, int]] = []
    state = begin(0)
    j = agent_steps = in_episode = 0
    total = 0.0
    while period < learnings:
        if j % k == 0:
            seen, reward = np.asarray(observe(state)), 0.0
            action = act(psi, seen, noise[used], agent_steps)
        step = one_step(state, action)
        reward += float(step.reward)
        ended = bool(step.terminated | step.truncated)
        if (j + 1) % k == 0 or ended:
            row = (seen, action, reward, step.observation, step.terminated, step.truncated)
            kept = [*kept, row]
            kept = kept[: agent.capacity] if at_end else kept[-agent.capacity :]
            agent_steps, used, in_episode, total = agent_steps + 1, used + 1, in_episode + 1, total + reward
            due = (ended and used >= agent.period) if at_end else agent_steps % agent.period == 0
            if due:
                if len(kept) >= agent.learns_from:
                    psi, _ = learn(psi, buffer_of(kept, agent, task, step.observation, agent_steps), draw(period))
                period, used = period + 1, 0
                noise, kept = noise_of(period), [] if at_end else kept
        j += 1
        state = step.state
        if ended:
            episodes.append((total, j, in_episode))
            j, in_episode, total = 0, 0, 0.0
            state = begin(len(episodes))
    return psi, episodes


def compiled(
    task: ClosedFormTask, agent: Agent, k: int, learnings: int, width: int = 1
) -> tuple[LoopState, ChunkOutput, int]:
    """The same by the compiled loop; of several lanes, the last one."""
    shape = ProgramShape(TimedTask(task, k), agent.capacity, periods=max(learnings, 4), alone=width == 1)
    before = max(0, -(-agent.learns_from // agent.period) - 1)
    if width == 1:
        state = initialize(shape, agent, SEED)
    else:
        keys = jnp.stack([*jax.random.split(jax.random.key(9), width - 1), SEED])
        agent = jax.tree.map(lambda rate: jnp.full((width,), rate), agent)
        state = initialize(shape, agent, keys)
    if before:
        state, _ = advance(shape, agent, state, jnp.int32(before), learns=False)
    first = state.walk.episodes + 0  # a copy, since the next call takes the state over
    state, output = advance(shape, agent, state, jnp.int32(learnings - before), learns=True)
    if width > 1:
        first, state, output = jax.tree.map(lambda leaf: leaf[-1], (first, state, output))
    return state, output, int(first)


def assert_alike(ours: object, expected: object, tolerance: float) -> None:
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=tolerance, atol=tolerance)


SMALL: dict[str, Any] = {"hidden": (4,), "epochs": 1, "minibatch": 4}
RELEASED = PPOAgent(batch=20, learn_when="episode_end", batch_end="episode_end", **SMALL)


@pytest.mark.parametrize(
    ("agent", "widths"),
    [
        pytest.param(PPOAgent(batch=20, learning_period=8, **SMALL), (3,), id="PPO"),
        pytest.param(RELEASED, (3,), id="released PPO"),
        pytest.param(RELEASED, (1,), id="released PPO alone", marks=pytest.mark.slow),
        pytest.param(
            SACAgent(
                minibatch=3,
                warmup_steps=20,
                replay_capacity=30,
                learning_period=3,
                gradient_steps=2,
                acts="before_learning",
                hidden=(4,),
            ),
            (1, 3),
            id="SAC",
        ),
        pytest.param(ActorCriticAgent(hidden=(4,)), (1,), id="actor-critic"),
    ],
)
def test_equals_algorithm_1_written_out(agent: Agent, widths: tuple[int, ...], wander: ClosedFormTask) -> None:
    """Episodes of the toy end inside cycles of 4 steps, and after 13 at the latest. Alone, and as a lane of three."""
    learnings = 30 if agent.period <= 3 else 6
    psi, episodes = algorithm_1(wander, agent, 4, learnings)
    for width in widths:
        state, output, first = compiled(wander, agent, 4, learnings, width)
        assert str(jax.tree.structure(state.psi)) == str(jax.tree.structure(psi))
        assert_alike(state.psi, psi, 2e-4)
        counted = int(state.walk.episodes)
        assert counted == len(episodes) > 3
        for table, column in zip(output.episodes[:3], zip(*episodes[first:], strict=True), strict=True):
            np.testing.assert_allclose(np.asarray(table)[: counted - first], column, atol=1e-4)


def test_bounds_on_steps_and_episodes(wander: ClosedFormTask) -> None:
    assert TimedTask(Reacher(), 8).steps_until_learning(PPOAgent()) == 2000
    at_end = PPOAgent(learn_when="episode_end")
    assert TimedTask(Reacher(), 8).steps_until_learning(at_end) == 2100  # 14 episodes of 150 cycles
    assert (
        TimedTask(DoublePendulum(), 4).steps_until_learning(at_end) == 2999
    )  # the b-th sample begins the longest episode
    assert TimedTask(Reacher(), 32).cycles_in(Reacher.time_limit) == 38
    assert TimedTask(Reacher(), 8).most_episodes(2000) == 15
    assert TimedTask(wander, 4).most_episodes(10) == 11
