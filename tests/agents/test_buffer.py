"""The buffer: what it keeps, in which order, and how it samples."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents import Buffer, Transition
from tests.agents.conftest import filled_buffer, random_transitions, row_of, stored


def numbered(count: int) -> Transition:
    """Transitions that carry their number as reward."""
    return random_transitions(count)._replace(reward=np.arange(count, dtype=float))  # type: ignore[arg-type]


def rewards(transitions: Transition) -> list[float]:
    return [float(each) for each in np.ravel(transitions.reward)]


@pytest.mark.parametrize("count", [5, 6, 9, 10, 12])
def test_the_ring_keeps_the_newest_in_the_order_of_time(count: int) -> None:
    data = numbered(count)
    buffer = filled_buffer(data, capacity=5)
    assert rewards(buffer.oldest_first()) == list(range(count - 5, count))
    assert buffer.stored == count
    assert buffer.filled == 5
    np.testing.assert_array_equal(buffer.oldest_first().observation[:, 0], data.observation[-5:].astype(np.float32))
    np.testing.assert_array_equal(buffer.newest_successor[0], data.next_observation[-1].astype(np.float32))


@pytest.mark.parametrize("count", [5, 6, 7, 10, 12])
def test_storing_first_keeps_the_oldest_in_the_order_of_time(count: int) -> None:
    data, buffer = numbered(count), Buffer.empty(5, 3, 2)
    for row in range(count):
        buffer = buffer.store_first(row_of(data, row))
    assert rewards(buffer.oldest_first()) == [0, 1, 2, 3, 4]
    assert buffer.filled == 5
    np.testing.assert_array_equal(buffer.newest_successor[0], data.next_observation[-1].astype(np.float32))


def test_storing_first_after_emptying_starts_over() -> None:
    data, buffer = numbered(12), Buffer.empty(5, 3, 2)
    for row in range(7):
        buffer = buffer.store_first(row_of(data, row))
    buffer = buffer.emptied()
    assert buffer.filled == 0
    for row in range(7, 12):
        buffer = buffer.store_first(row_of(data, row))
    assert rewards(buffer.oldest_first()) == [7, 8, 9, 10, 11]


def test_storing_after_emptying_starts_over() -> None:
    buffer = filled_buffer(numbered(7), capacity=5).emptied()
    later = stored(buffer, jax.tree.map(lambda part: part[:, None], numbered(3)))
    assert later.filled == 3
    drawn = later.sample(jax.random.bits(jax.random.key(0), (50,), jnp.uint32))
    assert set(rewards(drawn)) == {0, 1, 2}


@pytest.mark.parametrize(("observation_size", "action_size", "copies"), [(1, 1, 1), (3, 2, 1), (9, 7, 4), (2, 1, 3)])
@pytest.mark.parametrize("has_gaps", [False, True])
def test_a_transition_comes_back_as_it_went_in(
    observation_size: int, action_size: int, copies: int, has_gaps: bool
) -> None:
    random = np.random.default_rng(0)
    states, flags = (copies, observation_size), (copies,)
    shapes: list[tuple[int, ...]] = [states, (copies, action_size), flags, states, flags, flags]
    parts: list[Any] = [jnp.asarray(random.normal(size=shape), jnp.float32) for shape in shapes]
    weight = jnp.asarray(random.normal(size=copies), jnp.float32) if has_gaps else None
    transition = Transition._make([*parts, weight])
    buffer = Buffer.empty(1, observation_size, action_size, copies, has_gaps=has_gaps).store(transition)
    back = buffer.oldest_first()
    for name, part, found in zip(Transition._fields, transition, back, strict=True):
        if part is None:
            assert found is None
        else:
            assert found is not None
            assert found.shape == (1, *part.shape)
            np.testing.assert_array_equal(found[0], part, err_msg=name)


def test_flags_are_stored_as_numbers_and_either_ends_the_episode() -> None:
    buffer = Buffer.empty(4, 1, 1)
    for terminated, truncated in [(False, False), (True, False), (False, True), (True, True)]:
        flags = jnp.array(terminated), jnp.array(truncated)
        buffer = buffer.store(Transition(jnp.ones(1), jnp.ones(1), jnp.array(1.0), jnp.ones(1), *flags))
    back = buffer.oldest_first()
    assert np.ravel(back.terminated).tolist() == [0, 1, 0, 1]
    assert np.ravel(back.truncated).tolist() == [0, 0, 1, 1]
    assert np.ravel(back.ended).tolist() == [0, 1, 1, 1]


def chi_square(counts: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> float:
    expected = counts.sum() / counts.size
    return float(np.sum((counts - expected) ** 2) / expected)


@pytest.mark.parametrize(("count", "capacity"), [(7, 20), (20, 20), (33, 20), (1, 20)])
def test_samples_are_uniform_over_what_is_stored(count: int, capacity: int) -> None:
    buffer = filled_buffer(numbered(count), capacity=capacity)
    drawn = buffer.sample(jax.random.bits(jax.random.key(1), (20_000,), jnp.uint32))
    kept = np.arange(max(0, count - capacity), count)
    numbers, counts = np.unique(np.asarray(drawn.reward), return_counts=True)
    assert numbers.tolist() == kept.tolist()
    # Of 19 degrees of freedom, 43.8 is exceeded once in a thousand times; fewer give less.
    assert chi_square(counts) < 43.8


def test_samples_are_uniform_over_copies_and_rows() -> None:
    columns = [numbered(4)._replace(reward=np.arange(4.0) + 10 * copy) for copy in range(3)]  # type: ignore[arg-type]
    drawn = filled_buffer(*columns, capacity=9).sample(jax.random.bits(jax.random.key(2), (20_000,), jnp.uint32))
    numbers, counts = np.unique(np.asarray(drawn.reward), return_counts=True)
    assert numbers.tolist() == [10 * copy + row for copy in range(3) for row in range(4)]
    assert chi_square(counts) < 31.3  # once in a thousand times, of 11 degrees of freedom


def test_a_sample_is_one_whole_transition() -> None:
    data = numbered(6)
    drawn = filled_buffer(data).sample(jax.random.bits(jax.random.key(3), (40,), jnp.uint32))
    row = np.asarray(drawn.reward).astype(int)
    for name in ("observation", "action", "next_observation", "terminated", "truncated"):
        np.testing.assert_array_equal(getattr(drawn, name), getattr(data, name)[row].astype(np.float32))


def test_copies_lie_side_by_side() -> None:
    columns = [random_transitions(5, seed=seed) for seed in range(3)]
    back = filled_buffer(*columns, capacity=4).oldest_first()
    for copy, column in enumerate(columns):
        np.testing.assert_array_equal(back.action[:, copy], column.action[1:].astype(np.float32))


def test_double_precision_stores_as_well() -> None:
    with jax.enable_x64(True):
        data = numbered(7)
        ring = filled_buffer(data, capacity=5).oldest_first()
        np.testing.assert_array_equal(ring.observation[:, 0], data.observation[-5:])
        first = Buffer.empty(5, 3, 2).store_first(row_of(data, 0))
        np.testing.assert_array_equal(first.rows[0, 0, :3], data.observation[0])
