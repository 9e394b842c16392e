"""Runs in chunks: where they stop, that chunks, lanes and neighbours leave no trace, and bad input."""

from dataclasses import replace
from itertools import islice
from typing import Any

import jax
import numpy as np
import pytest

from cycletime import rules
from cycletime.agents import Agent, PPOAgent, SACAgent
from cycletime.agents.agent import AgentState
from cycletime.errors import InputError
from cycletime.tasks import Reacher
from cycletime.tasks.closed_form import ClosedFormTask
from cycletime.training import compiled_loop as module
from cycletime.training.algorithm_1 import ProgramShape, advance_with_draws
from cycletime.training.compiled_loop import CompiledChunk, CompiledLoop
from cycletime.training.learning_curve import Episodes
from tests.training.loops.conftest import Spy, TickingClock

pytestmark = pytest.mark.usefixtures("compiled_quickly")
AGENT = PPOAgent(batch=24, minibatch=12, hidden=(4,), epochs=1)


def make_loop(task: ClosedFormTask, **overrides: object) -> CompiledLoop:
    options: dict[str, Any] = {"task": task, "agent": AGENT, "dt": "40ms", "env_steps": 1000, **overrides}
    return CompiledLoop(**options)


def finish(chunks: list[CompiledChunk], run: int = 0) -> tuple[Episodes, AgentState]:
    psi = next(chunk.finished[run] for chunk in chunks if run in chunk.finished)
    return Episodes.joined(chunk.episodes[run] for chunk in chunks), psi


def assert_same_bits(one: object, other: object) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def assert_same_runs(one: tuple[Episodes, AgentState], other: tuple[Episodes, AgentState]) -> None:
    assert_same_bits(one[1], other[1])
    assert_same_bits(list(vars(one[0]).values()), list(vars(other[0]).values()))


@pytest.fixture
def whole(wander: ClosedFormTask) -> tuple[Episodes, AgentState]:
    """A run that nobody stopped."""
    return finish(list(make_loop(wander).run([5])))


def test_a_run_ends_with_the_learning_that_reaches_its_budget(wander: ClosedFormTask) -> None:
    chunks = list(make_loop(wander).run([0]))
    episodes, _ = finish(chunks)
    assert chunks[-1].env_steps == (1000,)
    assert [list(chunk.finished) for chunk in chunks] == [[]] * (len(chunks) - 1) + [[0]]
    assert 1000 - 13 <= episodes.env_steps[-1] <= 1000
    np.testing.assert_array_equal(np.diff(episodes.env_steps), episodes.length_steps[1:])
    assert episodes.env_steps[0] == episodes.length_steps[0]
    position = chunks[-1].position
    done = int(position.ended_env_steps[0]) + int(position.state.walk.state.env_steps)
    assert 1000 <= done < 1000 + 24 * 4
    assert int(position.state.agent_steps) == 24 * position.period
    assert sum(len(chunk.metrics[0]["kl"]) for chunk in chunks) == position.period
    learned_at = np.concatenate([chunk.metrics[0]["agent_steps"] for chunk in chunks])
    assert learned_at.dtype == np.int64
    np.testing.assert_array_equal(learned_at, 24 * np.arange(1, position.period + 1))


def test_a_chunk_takes_about_a_second(wander: ClosedFormTask, clock: TickingClock) -> None:
    """By a clock on which a chunk takes a quarter of one, so that the next one is four times as long."""
    clock.tick_s = 0.25
    chunks = list(make_loop(wander, env_steps=2500).run([0]))
    assert np.diff([chunk.position.period for chunk in chunks], prepend=0).tolist()[:3] == [1, 4, 16]


@pytest.mark.usefixtures("short_chunks")
def test_chunks_leave_no_trace(wander: ClosedFormTask, whole: tuple[Episodes, AgentState]) -> None:
    cut = list(make_loop(wander).run([5]))
    assert len(cut) > 8
    assert_same_runs(finish(cut), whole)


@pytest.mark.usefixtures("short_chunks")
def test_a_run_goes_on_from_a_saved_position(wander: ClosedFormTask, whole: tuple[Episodes, AgentState]) -> None:
    begun = list(islice(make_loop(wander).run([5]), 4))
    position = begun[-1].position.copied()
    rest = list(make_loop(wander).run([5], position=begun[-1].position))
    assert_same_runs(finish([*begun, *rest]), whole)
    assert_same_runs(finish([*begun, *make_loop(wander).run([5], position=position)]), whole)
    with pytest.raises(InputError, match=r"The position was taken over by the chunk after it: .* position.copied\(\)"):
        list(make_loop(wander).run([5], position=position))
    with pytest.raises(InputError, match="The position belongs to other seeds"):
        list(make_loop(wander).run([6], position=rest[-1].position))
    assert list(make_loop(wander).run([5], position=rest[-1].position)) == []


def test_what_was_learned_stays_when_a_run_goes_on(wander: ClosedFormTask) -> None:
    last = list(make_loop(wander).run([0]))[-1]
    for _ in make_loop(wander, env_steps=1200).run([0], position=last.position):
        pass
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(last.finished[0]))


def test_a_lane_knows_neither_its_place_nor_its_neighbours(wander: ClosedFormTask) -> None:
    """Rates differ between lanes without a new compilation, and short groups are padded."""
    loop = make_loop(wander, width=3)
    hasty = replace(AGENT, discount=0.5, learning_rate=1e-2)
    together = list(loop.run([1, 2, 3], [AGENT, hasty, AGENT]))
    programs = advance_with_draws._cache_size()  # type: ignore[attr-defined]
    padded = list(loop.run([2], [hasty]))
    elsewhere = list(loop.run([3, 9, 2], [AGENT, AGENT, hasty]))
    assert advance_with_draws._cache_size() == programs  # type: ignore[attr-defined]
    assert_same_runs(finish(padded), finish(together, 1))
    assert_same_runs(finish(elsewhere, 2), finish(together, 1))
    assert_same_runs(finish(elsewhere, 0), finish(together, 2))
    assert {run for chunk in together for run in chunk.finished} == {0, 1, 2}
    for run, agent in enumerate([AGENT, hasty]):
        alone = finish(list(make_loop(wander).run([run + 1], [agent])))[0]
        np.testing.assert_allclose(alone.returns[:8], finish(together, run)[0].returns[:8], rtol=1e-4)


def sac_shape(env_steps: int, width: int = 1, **settings: int) -> ProgramShape:
    agent = SACAgent(hidden=(4,), minibatch=8, **settings)  # type: ignore[arg-type]
    return make_loop(Reacher(), agent=agent, dt="16ms", env_steps=env_steps, width=width).shape


def test_one_program_serves_all_budgets_of_a_run_alone() -> None:
    assert sac_shape(2_000) == sac_shape(400_000) == sac_shape(20_000_000)
    assert sac_shape(2_000).capacity == 1_000_000
    assert sac_shape(1_000, replay_capacity=300).capacity == 300


def test_a_replay_far_larger_than_the_run_is_not_allocated() -> None:
    numbers, huge = 2 * 9 + 2 + 3, 2**30
    assert sac_shape(2_000, replay_capacity=huge).capacity == 2**25 // numbers
    assert sac_shape(20_000_000, replay_capacity=huge).capacity == 2**22  # of 2.5 million


def test_the_replay_of_lanes_is_as_large_as_a_run_can_fill() -> None:
    assert 50_000 <= sac_shape(400_000, width=2).capacity < 50_500
    assert sac_shape(1_000, width=2, replay_capacity=300).capacity == 127


def test_many_lanes_make_short_chunks(wander: ClosedFormTask) -> None:
    few, many = (make_loop(wander, agent=SACAgent(), width=width).shape.periods for width in (30, 720))
    assert few == 1024
    assert 200 < many < 300  # each of 768 numbers


def test_learning_begins_when_enough_is_stored(wander: ClosedFormTask) -> None:
    agent = Spy(batch=50, minibatch=1, hidden=(), learning_period=4)
    chunks = list(make_loop(wander, agent=agent, env_steps=300).run([0]))
    learned = sum(len(chunk.metrics[0].get("newest", ())) for chunk in chunks)
    assert chunks[0].metrics[0] == {}
    assert learned == chunks[-1].position.period - 12  # 12 x 4 are fewer than 50
    learned_at = np.concatenate([chunk.metrics[0].get("agent_steps", []) for chunk in chunks])
    np.testing.assert_array_equal(learned_at, 52 + 4 * np.arange(learned))


def test_the_first_chunk_that_learns_is_short_however_fast_the_agent_was(
    wander: ClosedFormTask, clock: TickingClock
) -> None:
    """By a clock on which each chunk takes a quarter of a second."""
    clock.tick_s = 0.25
    agent = Spy(batch=50, minibatch=1, hidden=(), learning_period=4)
    chunks = list(make_loop(wander, agent=agent, env_steps=300).run([0]))
    assert np.diff([chunk.position.period for chunk in chunks], prepend=0).tolist()[:5] == [1, 4, 7, 1, 4]
    assert [bool(chunk.metrics[0]) for chunk in chunks[:5]] == [False, False, False, True, True]


def test_more_episodes_than_a_task_allows_are_no_silent_loss(
    wander: ClosedFormTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wrong(type(wander)):  # type: ignore[misc]
        shortest_episode = wander.time_limit

    monkeypatch.setattr(module, "MOST_AGENT_STEPS", 24)
    with pytest.raises(RuntimeError, match="shortest_episode"):
        list(make_loop(Wrong(), agent=Spy(batch=24, minibatch=1, hidden=())).run([0]))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"dt": "15ms"}, "The cycle time 15ms is not a whole multiple"),
        ({"env_steps": 0}, "env_steps is 0: it must be a whole number of at least 1."),
        ({"env_steps": 1e6}, "env_steps is 1000000.0: it must be a whole number"),
        ({"width": 0}, "width is 0"),
        ({"matmul": "tf32"}, "matmul is 'tf32'"),
        ({"env_steps": 2**31}, "env_steps is 2147483648: it must be below"),
        ({"agent": PPOAgent}, "is not an agent: give an object of cycletime.agents"),
        (
            {"agent": rules.PPO(dt="16ms")},
            "are hyper-parameters: make an agent of them with",
        ),
    ],
)
def test_what_cannot_run_is_refused(overrides: dict[str, Any], message: str, wander: ClosedFormTask) -> None:
    with pytest.raises(InputError, match=message):
        make_loop(wander, **overrides)


@pytest.mark.parametrize(
    ("seeds", "agents", "message"),
    [
        ([], None, "There are 0 seeds: a program of width 1 takes 1 to 1."),
        ([1, 2], None, "There are 2 seeds"),
        ([-1], None, "The seed is -1: it must be a whole number from 0"),
        ([2**32], None, "The seed is 4294967296"),
        ([0.5], None, "The seed is 0.5"),
        ([1], [AGENT, AGENT], "There are 2 agents for 1 seeds"),
        ([1], [PPOAgent(batch=25, minibatch=10)], "only rates may differ"),
    ],
)
def test_lanes_that_do_not_fit_are_refused(
    seeds: list[int], agents: list[Agent] | None, message: str, wander: ClosedFormTask
) -> None:
    with pytest.raises(InputError, match=message):
        list(make_loop(wander).run(seeds, agents))


def test_a_task_and_jax_must_compute_alike(wander: ClosedFormTask) -> None:
    with jax.enable_x64(True), pytest.raises(InputError, match="The task computes in float32, JAX in float64"):
        make_loop(wander)


def test_many_gradient_steps_make_short_chunks(wander: ClosedFormTask) -> None:
    assert make_loop(wander, agent=SACAgent()).shape.periods == 1024
    assert make_loop(wander, agent=SACAgent(gradient_steps=64)).shape.periods < 100
