"""All random numbers of a chunk of learning periods, by a program of their own.

It serves programs that learn by other tasks' rules, cycle times or mini-batches, and is compiled in a fraction of the
time that drawing takes XLA inside of them. Alone, a run draws in blocks, and no further than it goes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from cycletime.agents import Agent
from cycletime.agents.agent import Draws
from cycletime.agents.exploration import normals_per_step
from cycletime.loops.randomness import Purpose, draws_of, keys_for, normals_of
from cycletime.loops.rollout import TimedTask
from cycletime.loops.soon import Options, soon
from cycletime.tasks.closed_form import State

BLOCK_NUMBERS = 2**13
"""About as many numbers are drawn at once; fewer take as long."""

_Tree = TypeVar("_Tree")


@dataclass(frozen=True)
class DrawPlan:
    """What the program is compiled for, besides the agent's own shapes."""

    timed_task: TimedTask
    periods: int
    """The most learning periods of a chunk."""
    alone: bool
    """Whether it draws for one run, or for several under `vmap`, where all go as far as they can."""
    learns: bool
    """Whether the agent learns in this chunk."""


class Since(NamedTuple):
    """From where on numbers are drawn."""

    period: jax.Array
    """The first learning period."""
    episodes: jax.Array
    """The episodes that ended before."""


class ChunkDraws(NamedTuple):
    """What is drawn for a chunk; the tables may have room for more."""

    normals: jax.Array
    """[periods, steps, numbers], for the noise of the actions."""
    learning: Draws
    """By period, what the agent's learning needs; None while it does not learn."""
    starts: State
    """States that the next episodes begin with."""


def draw(plan: DrawPlan, agent: Agent, seed_key: jax.Array, since: Since, periods: jax.Array | np.int32) -> ChunkDraws:
    """The numbers of so many learning periods; of several runs side by side where they are not alone."""
    if isinstance(seed_key, jax.core.Tracer):  # a part of another program, which has options of its own
        return _draw(plan, agent, seed_key, since, jnp.asarray(periods))
    return soon(jax.default_backend(), lambda options: _program(options)(plan, agent, seed_key, since, periods))


@cache
def _program(options: Options) -> Callable[..., ChunkDraws]:
    return jax.jit(_draw, static_argnames="plan", compiler_options=dict(options))


def _draw(plan: DrawPlan, agent: Agent, seed_key: jax.Array, since: Since, periods: jax.Array) -> ChunkDraws:
    if plan.alone:
        return _draw_run(plan, agent, seed_key, since, periods)
    lanes: ChunkDraws = jax.vmap(partial(_draw_run, plan, periods=periods))(agent, seed_key, since)
    return lanes


def _draw_run(plan: DrawPlan, agent: Agent, seed_key: jax.Array, since: Since, periods: jax.Array) -> ChunkDraws:
    task, steps = plan.timed_task.task, plan.timed_task.steps_until_learning(agent)
    numbers = normals_per_step(agent.exploration, task.action_size)

    def of_periods(counts: jax.Array) -> tuple[jax.Array, Draws]:
        keys = keys_for(seed_key, dict.fromkeys((Purpose.NOISE, Purpose.LEARNING), since.period + counts))
        normals = normals_of(keys[Purpose.NOISE], steps, numbers)
        return normals, draws_of(agent, keys[Purpose.LEARNING], task.action_size) if plan.learns else None

    def of_episodes(counts: jax.Array) -> State:
        return jax.vmap(task.reset)(keys_for(seed_key, {Purpose.STARTS: since.episodes + 1 + counts})[Purpose.STARTS])

    most_episodes = plan.timed_task.most_episodes(plan.periods * steps)
    if not plan.alone:
        return ChunkDraws(*of_periods(jnp.arange(plan.periods)), of_episodes(jnp.arange(most_episodes)))
    episodes = plan.timed_task.most_episodes(periods * steps)
    drawn = _in_blocks(of_periods, periods, plan.periods)
    return ChunkDraws(*drawn, _in_blocks(of_episodes, episodes, most_episodes))


def _in_blocks(draw: Callable[[jax.Array], _Tree], count: jax.Array, most: int) -> _Tree:
    """What is drawn for the counts below a number, in tables for the most that it can be."""
    one = jax.eval_shape(draw, jnp.arange(1))
    block = min(most, max(1, BLOCK_NUMBERS // sum(each.size for each in jax.tree.leaves(one))))
    rows = -(-most // block) * block
    tables: _Tree = jax.tree.map(lambda each: jnp.zeros((rows, *each.shape[1:]), each.dtype), one)

    def write(index: jax.Array, tables: _Tree) -> _Tree:
        drawn = draw(index * block + jnp.arange(block))
        put = partial(lax.dynamic_update_slice_in_dim, start_index=index * block, axis=0)
        after: _Tree = jax.tree.map(put, tables, drawn)
        return after

    filled: _Tree = lax.fori_loop(0, -(-count // block), write, tables)
    return filled
