"""How much memory a compiled program takes for each of its lanes, told from shapes alone, before it is compiled."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from cycletime.agents.exploration import normals_per_step
from cycletime.loops import CompiledLoop
from cycletime.loops.program import advance, initialize
from cycletime.loops.randomness import draws_of

_STATES, _DRAWS = 2, 5
"""How often the state and the random numbers are there at the worst moment: XLA moves the state between programs, and
random numbers are made of keys, bits and uniform ones."""


def lane_bytes(loop: CompiledLoop) -> int:
    """About the most bytes that a lane takes, in a program of several."""
    task, shape = loop.task, replace(loop.shape, capacity=loop.room, alone=False)
    rates = jax.eval_shape(lambda: jax.tree.map(lambda rate: jnp.asarray(rate, task.dtype), loop.agent))
    key = jax.eval_shape(lambda: jax.random.key(0, impl="threefry2x32"))
    state = jax.eval_shape(partial(initialize, shape), rates, key)
    told = jax.eval_shape(partial(advance, shape, learns=True), _lanes(rates), _lanes(state), jnp.int32(1))[1]
    keys = jax.eval_shape(lambda each: jax.random.split(each, shape.periods), key)
    draws = jax.eval_shape(lambda each: draws_of(loop.agent, each, task.action_size), keys)
    steps = shape.timed_task.steps_until_learning(loop.agent) * shape.periods
    normals = int(steps * normals_per_step(loop.agent.exploration, task.action_size) * jnp.dtype(task.dtype).itemsize)
    return _STATES * _bytes(state) + _DRAWS * (_bytes(draws) + normals) + _bytes(told)


def _lanes(tree: Any) -> Any:  # noqa: ANN401 - any tree of shapes
    """A program of one lane."""
    return jax.eval_shape(lambda each: jax.tree.map(lambda leaf: leaf[None], each), tree)


def _bytes(tree: Any) -> int:  # noqa: ANN401 - any tree of shapes
    return sum(_item_bytes(each) * each.size for each in jax.tree.leaves(tree))


def _item_bytes(each: Any) -> int:  # noqa: ANN401 - a shape, or a key's
    return 8 if jnp.issubdtype(each.dtype, jax.dtypes.prng_key) else int(each.dtype.itemsize)
