"""The buffer: what it keeps, in which order, and how it samples."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents import Buffer, Transition
from tests.agents.conftest import filled_buffer, random_transitions, rows_of

pytestmark = pytest.mark.usefixtures("compiled_quickly")
store, store_first = jax.jit(Buffer.store), jax.jit(Buffer.store_first)
oldest_first, sample = jax.jit(Buffer.oldest_first), jax.jit(Buffer.sample)
EMPTY = Buffer.empty(5, 3, 2)


def numbered(count: int) -> Transition:
    """Transitions that carry their number as reward."""
    return random_transitions(count)._replace(reward=np.arange(count, dtype=float))  # type: ignore[arg-type]


def stored(buffer: Buffer, transitions: Transition, put: Any = store) -> Buffer:  # noqa: ANN401 - one of the two above
    """The buffer after storing one row after another."""
    for row in range(len(transitions.reward)):
        buffer = put(buffer, jax.tree.map(lambda part, row=row: part[row].astype(np.float32), transitions))
    return buffer


def rewards(transitions: Transition) -> list[float]:
    return [float(each) for each in np.ravel(transitions.reward)]


def bits(count: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(count).integers(2**32, size=count, dtype=np.uint32))


@pytest.mark.parametrize("count", [5, 6, 9, 10, 12])
def test_the_ring_keeps_the_newest_in_the_order_of_time(count: int) -> None:
    data = numbered(count)
    buffer = stored(EMPTY, data)
    kept = oldest_first(buffer)
    assert rewards(kept) == list(range(count - 5, count))
    assert (int(buffer.stored), int(buffer.filled)) == (count, 5)
    np.testing.assert_array_equal(kept.observation[:, 0], data.observation[-5:].astype(np.float32))
    np.testing.assert_array_equal(buffer.newest_successor[0], data.next_observation[-1].astype(np.float32))


@pytest.mark.parametrize("count", [5, 6, 7, 10, 12])
def test_storing_first_keeps_the_oldest_in_the_order_of_time(count: int) -> None:
    data = numbered(count)
    buffer = stored(EMPTY, data, store_first)
    assert rewards(oldest_first(buffer)) == [0, 1, 2, 3, 4]
    assert buffer.filled == 5
    np.testing.assert_array_equal(buffer.newest_successor[0], data.next_observation[-1].astype(np.float32))


def test_storing_after_emptying_starts_over() -> None:
    first = stored(EMPTY, numbered(7), store_first).emptied()
    assert first.filled == 0
    assert rewards(oldest_first(stored(first, rows_of(numbered(12), 7), store_first))) == [7, 8, 9, 10, 11]
    ring = stored(stored(EMPTY, numbered(7)).emptied(), numbered(3))
    assert ring.filled == 3
    assert set(rewards(sample(ring, bits(50)))) == {0, 1, 2}


@pytest.mark.parametrize(("observation_size", "action_size", "copies"), [(1, 1, 1), (9, 7, 4)])
def test_a_transition_comes_back_as_it_went_in(observation_size: int, action_size: int, copies: int) -> None:
    random = np.random.default_rng(0)
    states, flags = (copies, observation_size), (copies,)
    shapes: list[tuple[int, ...]] = [states, (copies, action_size), flags, states, flags, flags]
    transition = Transition._make(jnp.asarray(random.normal(size=shape), jnp.float32) for shape in shapes)
    back = oldest_first(store(Buffer.empty(1, observation_size, action_size, copies), transition))
    for name, part, found in zip(Transition._fields, transition, back, strict=True):
        assert found.shape == (1, *part.shape)
        np.testing.assert_array_equal(found[0], part, err_msg=name)


def test_flags_are_stored_as_numbers_and_either_ends_the_episode() -> None:
    buffer, one = Buffer.empty(4, 1, 1), np.ones(1, np.float32)
    for terminated, truncated in [(False, False), (True, False), (False, True), (True, True)]:
        flags = np.bool_(terminated), np.bool_(truncated)
        buffer = store(buffer, Transition(one, one, np.float32(1), one, *flags))  # type: ignore[arg-type]
    back = oldest_first(buffer)
    assert np.ravel(back.terminated).tolist() == [0, 1, 0, 1]
    assert np.ravel(back.truncated).tolist() == [0, 0, 1, 1]
    assert np.ravel(back.ended).tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("count", [1, 7, 20, 33])
def test_samples_are_uniform_over_what_is_stored(count: int) -> None:
    drawn = sample(filled_buffer(numbered(count), capacity=20), bits(20_000))
    numbers, counts = np.unique(np.asarray(drawn.reward), return_counts=True)
    assert numbers.tolist() == list(range(max(0, count - 20), count))
    expected = counts.sum() / counts.size
    # Of 19 degrees of freedom, 43.8 is exceeded once in a thousand times; fewer give less.
    assert np.sum((counts - expected) ** 2) / expected < 43.8


def test_samples_are_whole_transitions_of_all_copies_and_rows() -> None:
    columns = [numbered(4)._replace(reward=np.arange(4.0) + 10 * copy) for copy in range(3)]  # type: ignore[arg-type]
    drawn = sample(filled_buffer(*columns, capacity=9), bits(400))
    numbers, counts = np.unique(np.asarray(drawn.reward), return_counts=True)
    assert numbers.tolist() == [10 * copy + row for copy in range(3) for row in range(4)]
    assert np.sum((counts - 400 / 12) ** 2) / (400 / 12) < 31.3  # once in a thousand times, of 11 degrees of freedom
    row = np.asarray(drawn.reward).astype(int) % 10
    for name in ("observation", "action", "next_observation", "terminated", "truncated"):
        np.testing.assert_array_equal(getattr(drawn, name), getattr(columns[0], name)[row].astype(np.float32))


def test_copies_lie_side_by_side() -> None:
    columns = [random_transitions(5, seed=seed) for seed in range(3)]
    rows = jax.tree.map(lambda *parts: np.stack(parts, axis=1), *columns)
    back = oldest_first(stored(Buffer.empty(4, 3, 2, num_envs=3), rows))
    for copy, column in enumerate(columns):
        np.testing.assert_array_equal(back.action[:, copy], column.action[1:].astype(np.float32))


@pytest.mark.parametrize("put", [store, store_first])
def test_double_precision_is_stored_as_well(put: Any) -> None:  # noqa: ANN401 - one of the two above
    with jax.enable_x64(True):
        data = random_transitions(1)
        buffer = put(Buffer.empty(5, 3, 2), jax.tree.map(lambda part: part[0], data))
        np.testing.assert_array_equal(buffer.rows[0, 0, :3], data.observation[0])
