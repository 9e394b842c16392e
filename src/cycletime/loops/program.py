"""Algorithm 1 around a closed-form task as one compiled program: a chunk of learning periods.

The program's shapes depend on the task, the agent's shapes, k, the buffer's capacity and the number of lanes, and on
nothing else: seeds and the agents' rates are data. A lane's numbers differ in their last bits between widths, and not
by its place or its neighbours at one width.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from cycletime.agents import Agent, Buffer
from cycletime.agents.agent import Draws, Metrics, Psi
from cycletime.agents.sac import stack_critics, unstack_critics
from cycletime.loops.beginning import first_psi, first_walk
from cycletime.loops.drawing import ChunkDraws, DrawPlan, Since, draw
from cycletime.loops.rollout import EpisodeTable, Rollout, RolloutDraws, RolloutState, TimedTask, Walk

Matmul: TypeAlias = Literal["fastest", "float32"]
"""How matrices are multiplied: in TF32 where the device can, as GPUs do, or with all of float32's digits."""
# By name, so that JAX's setting of the precision cannot change a run's numbers.
_PRECISIONS = {"fastest": "high", "float32": "highest"}


class LoopState(NamedTuple):
    """All that a run is, between two learning periods."""

    seed_key: jax.Array
    """The run's seed, from which all random numbers follow."""
    period: jax.Array
    """The learning periods done."""
    agent_steps: jax.Array
    """The agent steps done."""
    psi: Psi
    """What the agent has learned."""
    walk: Walk
    """Where the task is."""
    buffer: Buffer
    """What the agent remembers."""


class ProgramOutput(NamedTuple):
    """What a program gives besides the state: what happened in a chunk."""

    episodes: EpisodeTable
    """The episodes that ended in it; the tables may have room for more."""
    metrics: Metrics
    """By name, one number for each learning period, and the run's `agent_steps` at each; empty while the agent does not
    learn yet."""


@dataclass(frozen=True)
class Shape:
    """What a program is compiled for, besides the agent's own shapes."""

    timed_task: TimedTask
    capacity: int
    """Rows in the buffer."""
    periods: int
    """The most learning periods of one chunk."""
    alone: bool
    """Whether it carries one run, or several under `vmap`."""
    matmul: Matmul = "fastest"
    """How matrices are multiplied."""


def initialize(shape: Shape, agent: Agent, seed_key: jax.Array) -> LoopState:
    """A run before its first step; of several, by keys and rates in arrays, all side by side."""
    task = shape.timed_task.task
    sizes = (task.observation_size, task.action_size)
    key, nothing, buffer = _empty(seed_key, shape.capacity, *sizes)
    psi, walk = first_psi(agent, seed_key, *sizes), first_walk(task, agent.exploration, seed_key)
    return LoopState(seed_key=key, period=nothing[0], agent_steps=nothing[1], psi=psi, walk=walk, buffer=buffer)


@partial(jax.jit, static_argnums=(1, 2, 3))
def _empty(seed_key: jax.Array, *sizes: int) -> tuple[jax.Array, tuple[jax.Array, jax.Array], Buffer]:
    """A copy of the key, since chunks take it over, two counts, and a buffer, or those of several runs.

    In one program, since a start feels each of them.
    """
    lanes, buffer = seed_key.shape, Buffer.empty(*sizes)
    if lanes:
        buffer = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*lanes, *leaf.shape)), buffer)
    return jnp.copy(seed_key), (jnp.zeros(lanes, jnp.int32), jnp.zeros(lanes, jnp.int32)), buffer


def advance(
    shape: Shape, agent: Agent, state: LoopState, periods: jax.Array | np.int32, *, learns: bool
) -> tuple[LoopState, ProgramOutput]:
    """The run after so many learning periods more; without learning, while there is too little to learn from.

    It takes the state over.
    """
    draws = draw_for(shape, agent, state, periods, learns=learns)
    after: tuple[LoopState, ProgramOutput] = advance_with(shape, agent, state, draws, periods, learns=learns)
    return after


def draw_for(
    shape: Shape, agent: Agent, state: LoopState, periods: jax.Array | np.int32, *, learns: bool
) -> ChunkDraws:
    """The random numbers of the next learning periods."""
    plan = DrawPlan(shape.timed_task, shape.periods, shape.alone, learns)
    return draw(plan, agent, state.seed_key, Since(state.period, state.walk.episodes), periods)


@partial(jax.jit, static_argnames=("shape", "learns"), donate_argnames="state")
def advance_with(
    shape: Shape, agent: Agent, state: LoopState, draws: ChunkDraws, periods: jax.Array, *, learns: bool
) -> tuple[LoopState, ProgramOutput]:
    """The same with random numbers that were drawn beforehand; this is what takes long to compile."""
    with jax.default_matmul_precision(_PRECISIONS[shape.matmul]):
        if shape.alone:
            return _advance(shape, agent, state, draws, periods=periods, learns=learns)
        lanes = partial(_advance, shape, periods=periods, learns=learns)
        after: tuple[LoopState, ProgramOutput] = jax.vmap(lanes)(agent, state, draws)
        return after


def _advance(
    shape: Shape, agent: Agent, state: LoopState, draws: ChunkDraws, *, periods: jax.Array, learns: bool
) -> tuple[LoopState, ProgramOutput]:
    first = state.walk.episodes
    if not shape.alone:
        state = state._replace(psi=stack_critics(state.psi))

    def period(index: jax.Array, carry: tuple[LoopState, ProgramOutput]) -> tuple[LoopState, ProgramOutput]:
        state, output = carry
        rolling = RolloutDraws(draws.normals[index], draws.starts, first)
        rollout = Rollout(shape.timed_task, agent, state.psi, state.agent_steps, rolling)
        roll_out = rollout.alone if shape.alone else rollout.side_by_side
        walk, buffer, episodes = roll_out(RolloutState(state.walk, state.buffer, output.episodes))
        psi, metrics, agent_steps = state.psi, output.metrics, state.agent_steps + walk.steps
        if learns:
            psi, learned = _learn(agent, psi, buffer, jax.tree.map(lambda each: each[index], draws.learning))
            learned = {**learned, "agent_steps": agent_steps}
            metrics = jax.tree.map(lambda table, number: table.at[index].set(number), metrics, learned)
        if agent.learn_when == "episode_end":
            buffer = buffer.emptied()
        after = LoopState(
            seed_key=state.seed_key,
            period=state.period + 1,
            agent_steps=agent_steps,
            psi=psi,
            walk=walk._replace(steps=jnp.zeros_like(walk.steps)),
            buffer=buffer,
        )
        return after, ProgramOutput(episodes, metrics)

    start = (state, _empty_output(shape, agent, state, draws.learning, learns))
    state, output = lax.fori_loop(0, periods, period, start)
    return state._replace(psi=unstack_critics(state.psi)), output


@partial(jax.jit, inline=True)
def _learn(agent: Agent, psi: Psi, buffer: Buffer, draws: Draws) -> tuple[Psi, Metrics]:
    """What the agent learns, which is traced once though its metrics' shapes are asked for beforehand."""
    return agent.learn(psi, buffer, draws)


def _empty_output(shape: Shape, agent: Agent, state: LoopState, draws: Draws, learns: bool) -> ProgramOutput:
    task = shape.timed_task
    episodes = task.most_episodes(shape.periods * task.steps_until_learning(agent))
    numbers, counts = jnp.zeros((episodes,), task.task.dtype), jnp.zeros((episodes,), jnp.int32)
    metrics: Metrics = {}
    if learns:
        one = jax.tree.map(lambda each: each[0], draws)
        learned = jax.eval_shape(_learn, agent, state.psi, state.buffer, one)[1]
        metrics = {name: jnp.zeros((shape.periods,), each.dtype) for name, each in learned.items()}
        metrics["agent_steps"] = jnp.zeros((shape.periods,), jnp.int32)
    return ProgramOutput(EpisodeTable(numbers, counts, counts), metrics)
