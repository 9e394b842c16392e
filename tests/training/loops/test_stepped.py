from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from cycletime.agents import ActorCriticAgent, Agent, Buffer, PPOAgent, SACAgent, Transition
from cycletime.agents.agent import AgentState, choose_action
from cycletime.errors import InputError
from cycletime.tasks import CycleTime
from cycletime.training import stepped_loop
from cycletime.training.learning_curve import Episodes
from cycletime.training.process import HEARTBEAT
from cycletime.training.random_numbers import Purpose, key_for
from cycletime.training.stepped_agent import SteppedPosition
from cycletime.training.stepped_loop import SteppedChunk, SteppedLoop
from tests.training.loops.conftest import Counter, Spy, TickingClock

pytestmark = pytest.mark.usefixtures("compiled_quickly")


def ppo(**overrides: Any) -> PPOAgent:  # noqa: ANN401 - any of its fields
    return PPOAgent(**{"batch": 32, "minibatch": 16, "epochs": 1, "hidden": (4,), **overrides})


def spy(**overrides: Any) -> Spy:  # noqa: ANN401
    return Spy(**{"batch": 6, "minibatch": 1, "hidden": (), **overrides})


def sac(**overrides: Any) -> SACAgent:  # noqa: ANN401
    sizes = {"minibatch": 8, "hidden": (4,), "warmup_steps": 20, "replay_capacity": 64}
    return SACAgent(**{**sizes, **overrides})


def trained(loop: SteppedLoop, seed: int = 0) -> SteppedChunk:
    (chunk,) = loop.run(seed)
    return chunk


def stored(buffer: Buffer) -> Transition:
    """What a buffer that never overflowed holds, [rows, copies, ...]."""
    return cast(Transition, jax.tree.map(np.asarray, buffer.read(buffer.rows[: int(buffer.stored)])))


# Counters, with cycles that episodes cut short.


def test_counters_where_episodes_end_inside_a_cycle() -> None:
    env = CycleTime(Counter(), "3ms", env_dt="1ms")
    chunk = trained(SteppedLoop(env=env, agent=spy(), env_steps=21))
    # Seven environment steps are cycles of 3, 3 and 1. Twelve agent steps are 4 episodes; the fourth is over budget.
    assert (chunk.position.agent_steps, chunk.position.env_steps, chunk.env_steps) == (12, 28, 21)
    np.testing.assert_array_equal(chunk.episodes.env_steps, [7, 14, 21])
    np.testing.assert_array_equal(chunk.episodes.agent_steps, [3, 6, 9])
    np.testing.assert_array_equal(chunk.episodes.length_steps, [7, 7, 7])
    np.testing.assert_array_equal(chunk.episodes.returns, [sum(range(start, start + 7)) for start in (0, 7, 14)])


def test_each_agent_step_is_a_sign_that_it_gets_further() -> None:
    before = HEARTBEAT.count
    chunk = trained(SteppedLoop(env=CycleTime(Counter(), "3ms", env_dt="1ms"), agent=spy(), env_steps=21))
    assert HEARTBEAT.count - before == chunk.position.agent_steps


def test_transitions_keep_the_two_ends_apart_and_the_last_observation() -> None:
    env = CycleTime(Counter(), "3ms", env_dt="1ms")
    batch = stored(trained(SteppedLoop(env=env, agent=spy(), env_steps=14)).position.buffer)
    np.testing.assert_array_equal(batch.observation[:, 0], [[0, 0], [0, 3], [0, 6], [1, 0], [1, 3], [1, 6]])
    np.testing.assert_array_equal(batch.next_observation[:, 0], [[0, 3], [0, 6], [0, 7], [1, 3], [1, 6], [1, 7]])
    np.testing.assert_array_equal(batch.reward[:, 0], [0 + 1 + 2, 3 + 4 + 5, 6, 7 + 8 + 9, 10 + 11 + 12, 13])
    np.testing.assert_array_equal(batch.terminated[:, 0], [0, 0, 1, 0, 0, 0])
    np.testing.assert_array_equal(batch.truncated[:, 0], [0, 0, 0, 0, 0, 1])


def algorithm_1(env: gymnasium.Env[Any, Any], agent: Agent, seed: int, cycle_steps: int, steps: int) -> AgentState:
    """The paper's Algorithm 1, line by line, with episodes begun as the loop promises."""
    seed_key, episode = jax.random.key(seed), 0
    psi = jax.jit(agent.initialize, static_argnums=(1, 2))(key_for(seed_key, Purpose.INITIALIZE), 3, 1)
    buffer = Buffer.empty(agent.capacity, 3, 1)
    learn, store = jax.jit(agent.learn), jax.jit(Buffer.store)
    draw = jax.jit(lambda period: agent.draw(key_for(seed_key, Purpose.LEARNING, period), 1))

    @jax.jit
    def choose(psi: AgentState, seen: jax.Array, k: jax.Array) -> jax.Array:
        noise = jax.random.normal(key_for(seed_key, Purpose.NOISE, k // agent.period), (agent.period, 1))
        return choose_action(agent, psi, seen, noise[k % agent.period], k)

    state, _ = env.reset(seed=int(np.random.SeedSequence([seed, 0]).generate_state(1)[0]))
    j = k = 0
    for _ in range(steps):
        if j % cycle_steps == 0:
            seen, total = state, 0.0
            action = np.asarray(choose(psi, seen, k))
        state, reward, terminated, truncated, _ = env.step(np.clip(2 * action, -2, 2))
        total += float(reward)
        if (j + 1) % cycle_steps == 0 or terminated or truncated:
            parts = (seen, action, total, state, terminated, truncated)
            buffer = store(buffer, Transition(*(np.asarray(part, np.float32) for part in parts)))  # type: ignore[arg-type]
            if (k + 1) % agent.period == 0 and k + 1 >= agent.learns_from:
                psi, _ = learn(psi, buffer, draw(k // agent.period))
            k += 1
        j += 1
        if terminated or truncated:
            episode += 1
            state, _ = env.reset(seed=int(np.random.SeedSequence([seed, episode]).generate_state(1)[0]))
            j = 0
    return psi


@pytest.mark.parametrize(
    "agent", [ppo(learning_period=20), sac(), ActorCriticAgent(hidden=(4,))], ids=["ppo", "sac", "ac"]
)
def test_it_learns_what_algorithm_1_learns(agent: Agent) -> None:
    # 200 is no multiple of 3: the episode's last cycle has two steps. 60 agent steps are 178 environment steps.
    steps = 2 * 200 - 2 if agent.period > 1 else 220
    loop = SteppedLoop(env=CycleTime(gymnasium.make("Pendulum-v1"), "150ms"), agent=agent, env_steps=steps)
    chunk = trained(loop, seed=3)
    expected = algorithm_1(gymnasium.make("Pendulum-v1"), agent, 3, 3, chunk.position.env_steps)
    jax.tree.map(
        lambda got, want: np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-4), chunk.finished, expected
    )
    start = loop.start(3).psi
    assert any(
        (np.asarray(a) != np.asarray(b)).any() for a, b in zip(*map(jax.tree.leaves, (start, expected)), strict=True)
    )


# Other worlds.


@pytest.mark.parametrize(
    ("make", "cycle_steps"),
    [
        (lambda: CycleTime(gymnasium.make("Reacher-v5"), "40ms"), 2),
        (lambda: CycleTime(gymnasium.make("cycletime/BulletReacher-v0"), "16ms"), 8),
        (lambda: gymnasium.make("cycletime/Reacher-v0", dt="8ms"), 4),
    ],
    ids=["mujoco", "bullet", "closed-form"],
)
def test_it_runs_elsewhere(make: Callable[[], gymnasium.Env[Any, Any]], cycle_steps: int) -> None:
    env = make()
    chunk = trained(SteppedLoop(env=env, agent=spy(batch=32), env_steps=90 * cycle_steps))
    assert chunk.position.agent_steps == 96
    assert chunk.position.env_steps == 96 * cycle_steps
    assert len(chunk.metrics["newest"]) == 3
    assert np.isfinite(chunk.metrics["newest"]).all()
    env.close()


# Stopping and going on.


def saved(position: SteppedPosition) -> SteppedPosition:
    """What another module would write and read."""
    return cast(SteppedPosition, jax.tree.map(np.array, position))


def run_and_resume(
    make: Callable[[], gymnasium.Env[Any, Any]], agent: Agent, env_steps: int, stop: int
) -> Iterator[Any]:
    def loop() -> SteppedLoop:
        return SteppedLoop(env=make(), agent=agent, env_steps=env_steps)

    whole = list(loop().run(5))
    first = list(itertools.islice(loop().run(5), stop))
    position = saved(first[-1].position)
    assert position.exact
    assert first[-1].finished is None
    rest = list(loop().run(5, position))
    for chunks in (whole, first + rest):
        episodes = Episodes.joined(chunk.episodes for chunk in chunks)
        metrics = [number for chunk in chunks for number in chunk.metrics.values()]
        last = chunks[-1].position
        numbers = last.period, last.rows, last.period_rows, last.env_steps, last.agent_steps, last.episodes
        yield [*jax.tree.leaves((chunks[-1].finished, last.buffer)), numbers, *vars(episodes).values()], len(metrics)


@pytest.mark.usefixtures("short_chunks")
@pytest.mark.parametrize(
    ("make", "agent", "env_steps", "stop"),
    [
        (lambda: gymnasium.make("Pendulum-v1"), sac(), 500, 1),
        (lambda: gymnasium.make("Pendulum-v1"), ppo(learning_period=20), 700, 2),
        (lambda: gymnasium.make("Pendulum-v1"), ppo(batch=300, minibatch=300, learn_when="episode_end"), 1000, 3),
        (lambda: gymnasium.make("Pendulum-v1"), ActorCriticAgent(hidden=(4,)), 500, 1),
    ],
    ids=["sac", "ppo", "ppo-episode-end", "ac"],
)
def test_a_run_that_was_stopped_and_resumed_is_the_same_bit_for_bit(
    make: Callable[[], gymnasium.Env[Any, Any]], agent: Agent, env_steps: int, stop: int
) -> None:
    (whole, _), (resumed, _) = run_and_resume(make, agent, env_steps, stop)
    for one, other in zip(whole, resumed, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_chunk_comes_at_an_episodes_end_after_about_a_second(clock: TickingClock) -> None:
    """Episodes of seven agent steps; by a clock on which each of them takes an eighth of a second."""
    clock.tick_s = 0.125
    chunks = list(SteppedLoop(env=Counter(), agent=spy(), env_steps=42).run(0))
    assert [chunk.position.agent_steps for chunk in chunks] == [14, 28, 42]
    assert all(chunk.position.exact for chunk in chunks)


def test_a_long_episode_does_not_hold_up_the_chunks(clock: TickingClock) -> None:
    """After 20 s, at the end of a learning period of six agent steps, each of which takes a second."""
    clock.tick_s = 1.0
    first, *_ = SteppedLoop(env=Counter(1000), agent=spy(), env_steps=42).run(0)
    assert first.position.agent_steps == 24
    assert not first.position.exact


def test_resuming_leaves_the_given_position_as_it_is() -> None:
    loop = SteppedLoop(env=Counter(), agent=spy(), env_steps=30)
    start = loop.start(0)
    before = saved(start)
    list(loop.run(0, start))
    jax.tree.map(np.testing.assert_array_equal, saved(start), before)


def test_a_finished_run_has_nothing_left_to_do() -> None:
    loop = SteppedLoop(env=Counter(), agent=spy(), env_steps=30)
    assert list(loop.run(0, trained(loop).position)) == []


def test_a_run_that_ends_inside_an_episode_is_not_exact() -> None:
    assert not trained(SteppedLoop(env=Counter(), agent=spy(), env_steps=30)).position.exact
    assert trained(SteppedLoop(env=Counter(), agent=spy(), env_steps=42)).position.exact


def test_seeds_give_different_runs() -> None:
    loops = [(SteppedLoop(env=Counter(), agent=spy(), env_steps=6), seed) for seed in (1, 1, 2)]
    first, again, other = (stored(trained(*each).position.buffer).action for each in loops)
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()


# Several copies.


def vector(copies: int) -> SyncVectorEnv:
    counters = [partial(Counter, 5 + copy) for copy in range(copies)]
    return SyncVectorEnv(counters, autoreset_mode=AutoresetMode.DISABLED)


def test_sac_learns_once_for_each_place_of_a_row() -> None:
    chunk = trained(SteppedLoop(env=vector(4), agent=sac(), env_steps=100))
    assert chunk.position.rows * 4 == chunk.position.agent_steps
    assert chunk.position.period == chunk.position.rows * 4
    assert len(chunk.metrics["alpha"]) == chunk.position.period - 4  # the first row is too little to learn from
    assert not chunk.position.exact


def test_ppo_trains_on_several_copies() -> None:
    chunk = trained(SteppedLoop(env=vector(4), agent=ppo(), env_steps=300))
    assert set(chunk.episodes.length_steps) == {5, 6, 7, 8}
    assert np.isfinite(chunk.metrics["value_loss"]).all()
    assert 300 <= chunk.position.env_steps < 300 + 32


def test_a_vector_environment_of_the_tasks_runs_and_counts_cycles() -> None:
    kwargs = {"autoreset_mode": AutoresetMode.DISABLED}
    env = gymnasium.make_vec("cycletime/Reacher-v0", 4, vectorization_mode="sync", vector_kwargs=kwargs, dt="64ms")
    chunk = trained(SteppedLoop(env=env, agent=spy(batch=40), env_steps=4 * 1200))
    # 38 cycles, the last of 16 steps.
    np.testing.assert_array_equal(chunk.episodes.length_steps, [1200] * 4)
    np.testing.assert_array_equal(chunk.episodes.agent_steps, [38 * 4] * 4)
    assert chunk.position.rows * 4 == chunk.position.agent_steps == 160


@pytest.mark.usefixtures("short_chunks")
def test_a_vector_environment_goes_on_with_new_episodes_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepped_loop, "LONG_EPISODE_S", 0.0)
    agent = ppo()
    first = next(SteppedLoop(env=vector(4), agent=agent, env_steps=300).run(0))
    assert not first.position.exact
    assert first.position.period_rows == 0
    *_, last = SteppedLoop(env=vector(4), agent=agent, env_steps=300).run(0, saved(first.position))
    assert last.finished is not None
    assert last.position.period == last.position.rows * 4 // 32
    assert last.env_steps == 300


# Wrong inputs.


@pytest.mark.parametrize(
    ("make", "agent", "message"),
    [
        (lambda: vector(4), spy(batch=8, learn_when="episode_end"), "'episode_end'"),
        (lambda: vector(4), ppo(batch=30), "batch is 30, which 4 environments do not divide: give 28 or 32."),
        (
            lambda: vector(4),
            ppo(batch=32, learning_period=6),
            "6 agent steps, which 4 environments do not divide: give 4 or 8.",
        ),
        (lambda: vector(4), ppo(batch=32, learning_period=2), "2 agent steps"),
        (lambda: vector(4), sac(learning_period=3), "give 4, or one that divides their number"),
        (lambda: vector(2), ActorCriticAgent(), "1 transitions at a time"),
        (lambda: "Pendulum-v1", ppo(), "'Pendulum-v1' is not an environment"),
        (lambda: gymnasium.make("CartPole-v1"), ppo(), "Discrete"),
    ],
)
def test_what_cannot_run_is_refused(make: Callable[[], Any], agent: Agent, message: str) -> None:
    with pytest.raises(InputError, match=message):
        SteppedLoop(env=make(), agent=agent, env_steps=100)


@pytest.mark.parametrize("env_steps", [0, -1, 1.5, True, "many"])
def test_budgets_that_are_no_counts_are_refused(env_steps: Any) -> None:  # noqa: ANN401
    with pytest.raises(InputError, match="env_steps is"):
        SteppedLoop(env=Counter(), agent=spy(), env_steps=env_steps)


@pytest.mark.parametrize("wrong", ["reward", "successor"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_numbers_that_are_none_stop_the_run_and_say_where(wrong: str, value: float) -> None:
    class Broken(Counter):
        def step(self, action: object) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            seen, reward, *rest = super().step(action)
            bad = self.reward + 1 == 10
            seen = np.array([value, 0.0]) if bad and wrong == "successor" else seen
            return (seen, value if bad and wrong == "reward" else reward, *rest)  # type: ignore[return-value]

    loop = SteppedLoop(env=Broken(), agent=spy(), env_steps=30)
    with pytest.raises(InputError, match=rf"The {wrong} is .* at agent step 3 of episode 2: the environment must"):
        list(loop.run(0))
