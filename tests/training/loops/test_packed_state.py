"""PackedPsi trees: nothing is lost, in a compiled program or out of it, and few arrays travel."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cycletime.agents import SACAgent
from cycletime.training.stepped_agent import MOST_SMALL, PackedAgentState


class Tree(NamedTuple):
    weight: Any
    count: Any
    nothing: Any
    others: Any


def a_tree() -> Tree:
    return Tree(
        weight=jnp.arange(MOST_SMALL + 1.0),
        count=jnp.int32(2**30 + 1),  # which float32 has not
        nothing=None,
        others={"b": jnp.ones((2, 3)), "a": (jnp.float32(7), jnp.zeros((0, 4)), jnp.arange(3))},
    )


def assert_equal(found: Any, expected: Any) -> None:  # noqa: ANN401
    def check(one: Any, other: Any) -> None:  # noqa: ANN401
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_array_equal(one, other)

    jax.tree.map(check, found, expected)  # which refuses trees that differ


def test_a_packed_tree_comes_back_as_it_was() -> None:
    packed = PackedAgentState.of(a_tree())
    assert_equal(packed.unpacked(), a_tree())
    assert_equal(packed.on_host().unpacked(), a_tree())
    assert [type(each) for each in packed.on_host().small.values()] == [np.ndarray, np.ndarray]
    assert len(jax.tree.leaves(packed)) == 3  # one large, and the small ones of two kinds


def test_a_program_takes_it_apart_and_packs_it_again() -> None:
    calls = 0

    @jax.jit
    def doubled(packed: PackedAgentState) -> PackedAgentState:
        nonlocal calls
        calls += 1
        return PackedAgentState.of(jax.tree.map(lambda leaf: 2 * leaf, packed.unpacked()))

    twice = doubled(doubled(PackedAgentState.of(a_tree())))
    assert_equal(twice.unpacked(), jax.tree.map(lambda leaf: 4 * leaf, a_tree()))
    assert calls == 1


def test_some_arrays_are_chosen_by_their_places() -> None:
    packed = PackedAgentState.of(a_tree())
    numbers = packed.numbered()
    assert numbers.nothing is None
    some = packed.chosen({"sum": (numbers.count, numbers.others["b"]), "large": numbers.weight})
    assert_equal(some, {"sum": (a_tree().count, a_tree().others["b"]), "large": a_tree().weight})


def test_an_update_of_sac_carries_a_few_arrays() -> None:
    psi = jax.eval_shape(lambda: SACAgent().initialize(jax.random.key(0), 3, 1))
    packed = jax.eval_shape(lambda: PackedAgentState.of(SACAgent().initialize(jax.random.key(0), 3, 1)))
    assert (len(jax.tree.leaves(psi)), len(jax.tree.leaves(packed))) == (72, 13)
