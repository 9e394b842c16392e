"""Algorithm 1 of the paper around a closed-form task, as one compiled program: a chunk of learning periods.

Random numbers of a chunk are drawn by a program of their own, which serves other tasks, cycle times and mini-batches
too. A rollout has two forms: a run alone has a loop over episodes around one over cycles, so that a new episode is only
computed where one ends; runs side by side (under `vmap`) must all take the same path, so that every cycle chooses.

With N environments a run takes N agent steps at a time, a row of the buffer: b samples are N columns of b / N rows, and
the advantages of each column end in its own successor's value. Everything is counted over all of them: agent steps,
environment steps and episodes, which have numbers (and so their starts) in the order of rows, then columns, in which
those before them end. The noise of a row is that of as many agent steps that follow each other, as in `stepped_loop`.

The program's shapes depend on the task, the agent's shapes, k, N, the buffer's capacity and the number of lanes, and on
nothing else: seeds and the agents' rates are data. A lane's numbers differ in their last bits between widths, and not
by its place or its neighbours at one width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from math import ceil
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from cycletime.agents import Agent, Buffer, Transition
from cycletime.agents.agent import AgentState, Draws, Metrics, choose_action
from cycletime.agents.exploration import CoherentNoise, NoiseState, explore, initial_noise_state, normals_per_step
from cycletime.agents.sac import stack_critics, unstack_critics
from cycletime.duration import Duration, cycle_steps
from cycletime.tasks.closed_form import ClosedFormTask, State
from cycletime.training.random_numbers import (
    CompilerOptions,
    Purpose,
    draw_normals,
    draw_updates,
    fast_compile,
    key_for,
    keys_for,
)

_Count = TypeVar("_Count", int, jax.Array)


@dataclass(frozen=True)
class TimedTask:
    task: ClosedFormTask
    cycle_steps: int
    """k, the environment steps that an action is held for."""
    num_envs: int = 1
    """N, the environments of a run."""

    def cycles_in(self, duration: Duration) -> int:
        return -(-cycle_steps(duration, self.task.env_dt) // self.cycle_steps)

    @property
    def episodes_vary(self) -> bool:
        return self.cycles_in(self.task.shortest_episode) < self.cycles_in(self.task.time_limit)

    def steps_until_learning(self, agent: Agent) -> int:
        """The most agent steps from one learning to the next, of all environments."""
        if agent.learn_when == "batch":
            return max(agent.period, self.num_envs)
        longest = self.cycles_in(self.task.time_limit)
        return agent.period - 1 + longest if self.episodes_vary else ceil(agent.period / longest) * longest

    def updates_at_once(self, agent: Agent) -> int:
        """The updates due after one row of the buffer: several where it has more agent steps than a period."""
        return max(1, self.num_envs // agent.period)

    def most_episodes(self, agent_steps: _Count) -> _Count:
        """The most episodes that can end within so many agent steps."""
        each = -(-agent_steps // (self.num_envs * self.cycles_in(self.task.shortest_episode))) + 1
        return each * self.num_envs


class EpisodeState(NamedTuple):
    """The state of a run's episode; with several environments, all but the run's counts have an entry for each."""

    steps: jax.Array
    """The run's agent steps since the last learning."""
    state: State
    observation: jax.Array
    episode_return: jax.Array
    episode_steps: jax.Array
    episodes: jax.Array
    noise: NoiseState = None
    env_steps: jax.Array | None = None
    """The environment steps since the run began; None with one environment, whose episodes say it."""


class EpisodeTable(NamedTuple):
    episode_return: jax.Array
    env_steps: jax.Array
    agent_steps: jax.Array
    run_env_steps: jax.Array | None = None
    """The run's environment steps at its end; None with one environment, where episodes follow each other."""
    run_agent_steps: jax.Array | None = None


class RolloutState(NamedTuple):
    walk: EpisodeState
    buffer: Buffer
    episodes: EpisodeTable


class RolloutDraws(NamedTuple):
    normals: jax.Array
    """[steps, numbers], for the noise of the actions."""
    starts: State
    first: jax.Array
    """The number of the episode after which the first of them begins, and whose row is the first of the table."""


@dataclass(frozen=True)
class Rollout:
    timed_task: TimedTask
    agent: Agent
    psi: AgentState
    agent_steps: jax.Array
    draws: RolloutDraws

    def alone(self, state: RolloutState) -> RolloutState:
        """Act until the next update; the form for one run."""

        def goes_on(carry: tuple[EpisodeState, Buffer, jax.Array]) -> jax.Array:
            walk, _, ended = carry
            return ~ended if self.agent.learn_when == "episode_end" else ~ended & (walk.steps < self.agent.period)

        def episode(state: RolloutState) -> RolloutState:
            start = (state.walk, state.buffer, jnp.zeros((), jnp.bool))
            walk, buffer, ended = lax.while_loop(goes_on, lambda carry: self._cycle(*carry[:2]), start)
            return self._end_episode(walk, buffer, state.episodes, ended)

        return lax.while_loop(lambda state: state.walk.steps < self.agent.period, episode, state)

    def side_by_side(self, state: RolloutState) -> RolloutState:
        """Act until the next update; the form for `vmap`."""
        rows = self.timed_task.steps_until_learning(self.agent) // self.timed_task.num_envs
        may_wait = self.agent.learn_when == "episode_end" and self.timed_task.episodes_vary

        def cycle(state: RolloutState, _: None) -> tuple[RolloutState, None]:
            walk, buffer, ended = self._cycle(state.walk, state.buffer)
            after = self._end_episode(walk, buffer, state.episodes, ended)
            if not may_wait:
                return after, None
            # Others still roll out: this run learns at the end of the episode that filled its batch.
            waits = (state.walk.steps >= self.agent.period) & (state.walk.episode_steps == 0)
            return jax.tree.map(lambda old, new: jnp.where(waits, old, new), state, after), None

        return lax.scan(cycle, state, None, length=rows)[0]

    def _cycle(self, walk: EpisodeState, buffer: Buffer) -> tuple[EpisodeState, Buffer, jax.Array]:
        task, num_envs, agent_steps = self.timed_task.task, self.timed_task.num_envs, self.agent_steps + walk.steps
        hold = partial(task.cycle, cycle_steps=self.timed_task.cycle_steps)
        if num_envs == 1:
            normals = self.draws.normals[walk.steps]
        else:
            normals = lax.dynamic_slice_in_dim(self.draws.normals, walk.steps, num_envs)
            agent_steps, hold = agent_steps + jnp.arange(num_envs)[:, None], jax.vmap(hold)
        noise, noise_state = explore(self.agent.exploration, walk.noise, normals, walk.episode_steps == 0)
        action = choose_action(self.agent, self.psi, walk.observation, noise, agent_steps)
        before, step = walk.state.env_steps, hold(walk.state, action)
        transition = Transition(
            walk.observation, action, step.reward, step.observation, step.terminated, step.truncated
        )
        first_only = self.agent.learn_when == "episode_end"
        buffer = buffer.store_first(transition) if first_only else buffer.store(transition)
        walk = EpisodeState(
            steps=walk.steps + num_envs,
            state=step.state,
            observation=step.observation,
            episode_return=walk.episode_return + step.reward,
            episode_steps=walk.episode_steps + 1,
            episodes=walk.episodes,
            noise=noise_state,
            env_steps=walk.env_steps,
        )
        if walk.env_steps is not None:
            walk = walk._replace(env_steps=walk.env_steps + jnp.sum(step.state.env_steps - before))
        return walk, buffer, step.terminated | step.truncated

    def _end_episode(
        self, walk: EpisodeState, buffer: Buffer, episodes: EpisodeTable, ended: jax.Array
    ) -> RolloutState:
        """Record the episode, and start another if it ended; if not, the record is overwritten later."""
        if self.timed_task.num_envs > 1:
            return self._end_episodes(walk, buffer, episodes, ended)
        index = walk.episodes - self.draws.first
        now = EpisodeTable(walk.episode_return, walk.state.env_steps, walk.episode_steps)
        episodes = jax.tree.map(lambda table, number: table.at[index].set(number), episodes, now)
        fresh = jax.tree.map(lambda table: table[index], self.draws.starts)
        begun = walk._replace(
            state=fresh,
            observation=self.timed_task.task.observe(fresh),
            episode_return=jnp.zeros_like(walk.episode_return),
            episode_steps=jnp.zeros_like(walk.episode_steps),
            episodes=walk.episodes + 1,
        )
        walk = jax.tree.map(lambda new, old: jnp.where(ended, new, old), begun, walk)
        return RolloutState(walk, buffer, episodes)

    def _end_episodes(
        self, walk: EpisodeState, buffer: Buffer, episodes: EpisodeTable, ended: jax.Array
    ) -> RolloutState:
        assert walk.env_steps is not None, "several environments have a count of their steps"
        totals = walk.env_steps, self.agent_steps + walk.steps

        def record() -> tuple[EpisodeState, EpisodeTable]:
            count = jnp.cumsum(ended, dtype=jnp.int32)
            index = walk.episodes - self.draws.first + count - 1
            now = EpisodeTable(
                walk.episode_return,
                walk.state.env_steps,
                walk.episode_steps,
                *(jnp.broadcast_to(total, ended.shape) for total in totals),
            )
            row = jnp.where(ended, index, len(episodes.env_steps))
            table = jax.tree.map(lambda table, numbers: table.at[row].set(numbers, mode="drop"), episodes, now)
            fresh = jax.tree.map(lambda starts: starts.at[index].get(mode="clip"), self.draws.starts)
            begun = walk._replace(
                state=fresh,
                observation=jax.vmap(self.timed_task.task.observe)(fresh),
                episode_return=jnp.zeros_like(walk.episode_return),
                episode_steps=jnp.zeros_like(walk.episode_steps),
            )

            def choose(new: jax.Array, old: jax.Array) -> jax.Array:
                return jnp.where(ended.reshape(-1, *[1] * (old.ndim - 1)), new, old) if old.ndim else old

            chosen: EpisodeState = jax.tree.map(choose, begun, walk)
            return chosen._replace(episodes=walk.episodes + count[-1]), table

        walk, episodes = lax.cond(ended.any(), record, lambda: (walk, episodes))
        return RolloutState(walk, buffer, episodes)


BLOCK_NUMBERS = 2**13
"""About as many numbers are drawn at once; fewer take as long."""

_Tree = TypeVar("_Tree")


@dataclass(frozen=True)
class DrawPlan:
    """The static arguments of the drawing program, besides the agent's own shapes."""

    timed_task: TimedTask
    periods: int
    """The most learning periods of a chunk; those that end with one row count as one."""
    alone: bool
    """Whether it draws for one run, or for several under `vmap`, where all go as far as they can."""
    learns: bool


class DrawStart(NamedTuple):
    period: jax.Array
    episodes: jax.Array


class ChunkDraws(NamedTuple):
    normals: jax.Array
    """[periods, steps, numbers], for the noise of the actions."""
    learning: Draws
    starts: State


def draw_chunk(
    plan: DrawPlan, agent: Agent, seed_key: jax.Array, since: DrawStart, periods: jax.Array | np.int32
) -> ChunkDraws:
    if isinstance(seed_key, jax.core.Tracer):  # a part of another program, which has options of its own
        return _draw_runs(plan, agent, seed_key, since, jnp.asarray(periods))
    return fast_compile(
        jax.default_backend(), lambda options: _draw_program(options)(plan, agent, seed_key, since, periods)
    )


@cache
def _draw_program(options: CompilerOptions) -> Callable[..., ChunkDraws]:
    return jax.jit(_draw_runs, static_argnames="plan", compiler_options=dict(options))


def _draw_runs(plan: DrawPlan, agent: Agent, seed_key: jax.Array, since: DrawStart, periods: jax.Array) -> ChunkDraws:
    if plan.alone:
        return _draw_run(plan, agent, seed_key, since, periods)
    lanes: ChunkDraws = jax.vmap(partial(_draw_run, plan, periods=periods))(agent, seed_key, since)
    return lanes


def _draw_run(plan: DrawPlan, agent: Agent, seed_key: jax.Array, since: DrawStart, periods: jax.Array) -> ChunkDraws:
    task, steps = plan.timed_task.task, plan.timed_task.steps_until_learning(agent)
    numbers = normals_per_step(agent.exploration, task.action_size)

    updates = plan.timed_task.updates_at_once(agent)

    def of_periods(counts: jax.Array) -> tuple[jax.Array, Draws]:
        if updates > 1:
            counts = (updates * counts[:, None] + jnp.arange(updates)).ravel()
        keys = keys_for(seed_key, dict.fromkeys((Purpose.NOISE, Purpose.LEARNING), since.period + counts))
        normals = draw_normals(keys[Purpose.NOISE], steps // updates, numbers)
        drawn = normals, draw_updates(agent, keys[Purpose.LEARNING], task.action_size) if plan.learns else None
        if updates == 1:
            return drawn
        learning = jax.tree.map(lambda each: each.reshape(-1, updates, *each.shape[1:]), drawn[1])
        return normals.reshape(-1, steps, numbers), learning

    def of_episodes(counts: jax.Array) -> State:
        counts += since.episodes + plan.timed_task.num_envs
        return jax.vmap(task.reset)(keys_for(seed_key, {Purpose.STARTS: counts})[Purpose.STARTS])

    most_episodes = plan.timed_task.most_episodes(plan.periods * steps)
    if not plan.alone:
        return ChunkDraws(*of_periods(jnp.arange(plan.periods)), of_episodes(jnp.arange(most_episodes)))
    episodes = plan.timed_task.most_episodes(periods * steps)
    drawn = _in_blocks(of_periods, periods, plan.periods)
    return ChunkDraws(*drawn, _in_blocks(of_episodes, episodes, most_episodes))


def _in_blocks(draw: Callable[[jax.Array], _Tree], count: jax.Array, most: int) -> _Tree:
    """Draw for all counts below a number, block by block, into tables of the largest possible size."""
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


_initial_state_programs: dict[tuple[str, str, Any], Callable[[list[jax.Array], jax.Array], AgentState]] = {}
"""By device, steps and what they give: agents that differ in other things than networks have the same steps."""


def initial_agent_state(agent: Agent, seed_key: jax.Array, *sizes: int) -> AgentState:
    """The agent's state before the first step of a run, or of several side by side; one program for equal networks.

    The sizes are those of an observation and of an action, and the number of environments unless it is one.
    """
    rates, structure = jax.tree.flatten(agent)
    if isinstance(seed_key, jax.core.Tracer):  # a part of another program, which has options of its own
        return _initializer(structure, sizes)(rates, seed_key)
    rates = [np.asarray(rate, jnp.result_type(rate)) for rate in rates]
    shapes = tuple(jax.typeof(each) for each in (*rates, seed_key))
    return _initial_state_program(jax.default_backend(), structure, sizes, shapes)(rates, seed_key)


def _initializer(structure: Any, sizes: tuple[int, ...]) -> Callable[[list[jax.Array], jax.Array], AgentState]:  # noqa: ANN401 - JAX's
    def one(rates: list[jax.Array], seed_key: jax.Array) -> AgentState:
        return structure.unflatten(rates).initialize(key_for(seed_key, Purpose.INITIALIZE), *sizes)

    return lambda rates, seed_key: (jax.vmap(one) if seed_key.ndim else one)(rates, seed_key)


@cache
def _initial_state_program(
    backend: str,
    structure: Any,  # noqa: ANN401 - JAX's
    sizes: tuple[int, ...],
    shapes: tuple[Any, ...],  # JAX's
) -> Callable[[list[jax.Array], jax.Array], AgentState]:
    steps = jax.jit(_initializer(structure, sizes)).trace(list(shapes[:-1]), shapes[-1])
    known = (backend, str(steps.jaxpr), jax.tree.structure(steps.out_info))
    if known not in _initial_state_programs:
        lowered = steps.lower()
        _initial_state_programs[known] = fast_compile(
            backend, lambda options: lowered.compile(compiler_options=dict(options))
        )
    return _initial_state_programs[known]


@partial(jax.jit, static_argnames=("task", "exploration", "num_envs"))
def initial_episode_state(
    task: ClosedFormTask, exploration: CoherentNoise | None, seed_key: jax.Array, num_envs: int = 1
) -> EpisodeState:
    """Compiled with all optimisations, since what is seen of a state depends on them in its last bits."""

    def one(seed_key: jax.Array) -> EpisodeState:
        state = task.reset(key_for(seed_key, Purpose.STARTS))
        count, nothing = jnp.zeros((), jnp.int32), jnp.zeros((), task.dtype)
        noise = initial_noise_state(exploration, task.action_size, dtype=task.dtype)
        return EpisodeState(count, state, task.observe(state), nothing, count, count, noise)

    def several(seed_key: jax.Array) -> EpisodeState:
        states = jax.vmap(lambda count: task.reset(key_for(seed_key, Purpose.STARTS, count)))(jnp.arange(num_envs))
        counts, nothing = jnp.zeros((num_envs,), jnp.int32), jnp.zeros((num_envs,), task.dtype)
        noise = initial_noise_state(exploration, num_envs, task.action_size, dtype=task.dtype)
        seen = jax.vmap(task.observe)(states)
        return EpisodeState(counts[0], states, seen, nothing, counts, counts[0], noise, env_steps=counts[0])

    begin = one if num_envs == 1 else several
    return jax.vmap(begin)(seed_key) if seed_key.ndim else begin(seed_key)


Matmul: TypeAlias = Literal["fastest", "float32"]
"""How matrices are multiplied: in TF32 where the device can, as GPUs do, or with all of float32's digits."""
# By name, so that JAX's setting of the precision cannot change a run's numbers.
_PRECISIONS = {"fastest": "high", "float32": "highest"}


class LoopState(NamedTuple):
    """The state of a run between two learning periods. The names of its fields are keys of checkpoints on disk."""

    seed_key: jax.Array
    period: jax.Array
    agent_steps: jax.Array
    psi: AgentState
    walk: EpisodeState
    buffer: Buffer


class ChunkOutput(NamedTuple):
    episodes: EpisodeTable
    """The episodes that ended in it; the tables may have room for more."""
    metrics: Metrics
    """By name, one number for each learning, and the run's `agent_steps` at each; empty while the agent does not
    learn yet."""


@dataclass(frozen=True)
class ProgramShape:
    timed_task: TimedTask
    capacity: int
    """Rows of the buffer, each with an agent step of every environment."""
    periods: int
    alone: bool
    matmul: Matmul = "fastest"


def initialize(shape: ProgramShape, agent: Agent, seed_key: jax.Array) -> LoopState:
    task, num_envs = shape.timed_task.task, shape.timed_task.num_envs
    sizes = (task.observation_size, task.action_size)
    key, nothing, buffer = _empty_state(seed_key, shape.capacity, *sizes, num_envs)
    psi = initial_agent_state(agent, seed_key, *sizes, num_envs)
    walk = initial_episode_state(task, agent.exploration, seed_key, num_envs)
    return LoopState(seed_key=key, period=nothing[0], agent_steps=nothing[1], psi=psi, walk=walk, buffer=buffer)


@partial(jax.jit, static_argnums=(1, 2, 3, 4))
def _empty_state(seed_key: jax.Array, *sizes: int) -> tuple[jax.Array, tuple[jax.Array, jax.Array], Buffer]:
    """A copy of the key, since chunks take it over, two counts and a buffer; one program, since a start feels each."""
    lanes, buffer = seed_key.shape, Buffer.empty(*sizes)
    if lanes:
        buffer = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*lanes, *leaf.shape)), buffer)
    return jnp.copy(seed_key), (jnp.zeros(lanes, jnp.int32), jnp.zeros(lanes, jnp.int32)), buffer


def advance(
    shape: ProgramShape, agent: Agent, state: LoopState, periods: jax.Array | np.int32, *, learns: bool
) -> tuple[LoopState, ChunkOutput]:
    """Advance a run by so many periods, with updates if it `learns`; the memory of the given state is reused."""
    draws = draw_for_periods(shape, agent, state, periods, learns=learns)
    after: tuple[LoopState, ChunkOutput] = advance_with_draws(shape, agent, state, draws, periods, learns=learns)
    return after


def draw_for_periods(
    shape: ProgramShape, agent: Agent, state: LoopState, periods: jax.Array | np.int32, *, learns: bool
) -> ChunkDraws:
    plan = DrawPlan(shape.timed_task, shape.periods, shape.alone, learns)
    return draw_chunk(plan, agent, state.seed_key, DrawStart(state.period, state.walk.episodes), periods)


@partial(jax.jit, static_argnames=("shape", "learns"), donate_argnames="state")
def advance_with_draws(
    shape: ProgramShape, agent: Agent, state: LoopState, draws: ChunkDraws, periods: jax.Array, *, learns: bool
) -> tuple[LoopState, ChunkOutput]:
    """Advance with random numbers that were drawn beforehand; this program takes long to compile."""
    with jax.default_matmul_precision(_PRECISIONS[shape.matmul]):
        if shape.alone:
            return _advance_run(shape, agent, state, draws, periods=periods, learns=learns)
        lanes = partial(_advance_run, shape, periods=periods, learns=learns)
        after: tuple[LoopState, ChunkOutput] = jax.vmap(lanes)(agent, state, draws)
        return after


def _advance_run(
    shape: ProgramShape, agent: Agent, state: LoopState, draws: ChunkDraws, *, periods: jax.Array, learns: bool
) -> tuple[LoopState, ChunkOutput]:
    first, updates = state.walk.episodes, shape.timed_task.updates_at_once(agent)
    if not shape.alone:
        state = state._replace(psi=stack_critics(state.psi))

    def period(index: jax.Array, carry: tuple[LoopState, ChunkOutput]) -> tuple[LoopState, ChunkOutput]:
        state, output = carry
        rolling = RolloutDraws(draws.normals[index], draws.starts, first)
        rollout = Rollout(shape.timed_task, agent, state.psi, state.agent_steps, rolling)
        roll_out = rollout.alone if shape.alone and shape.timed_task.num_envs == 1 else rollout.side_by_side
        walk, buffer, episodes = roll_out(RolloutState(state.walk, state.buffer, output.episodes))
        psi, metrics, agent_steps = state.psi, output.metrics, state.agent_steps + walk.steps
        if learns:
            now = jax.tree.map(lambda each: each[index], draws.learning)
            if updates == 1:
                psi, learned = _update(agent, psi, buffer, now)
            else:
                psi, learned = lax.scan(lambda psi, draws: _update(agent, psi, buffer, draws), psi, now)
            learned = {**learned, "agent_steps": agent_steps}
            metrics = jax.tree.map(lambda table, number: table.at[index].set(number), metrics, learned)
        if agent.learn_when == "episode_end":
            buffer = buffer.emptied()
        after = LoopState(
            seed_key=state.seed_key,
            period=state.period + updates,
            agent_steps=agent_steps,
            psi=psi,
            walk=walk._replace(steps=jnp.zeros_like(walk.steps)),
            buffer=buffer,
        )
        return after, ChunkOutput(episodes, metrics)

    start = (state, _empty_output(shape, agent, state, draws.learning, learns))
    state, output = lax.fori_loop(0, periods, period, start)
    return state._replace(psi=unstack_critics(state.psi)), output


@partial(jax.jit, inline=True)
def _update(agent: Agent, psi: AgentState, buffer: Buffer, draws: Draws) -> tuple[AgentState, Metrics]:
    """One update; traced once, though the shapes of its metrics are needed beforehand."""
    return agent.learn(psi, buffer, draws)


def _empty_output(shape: ProgramShape, agent: Agent, state: LoopState, draws: Draws, learns: bool) -> ChunkOutput:
    task = shape.timed_task
    episodes = task.most_episodes(shape.periods * task.steps_until_learning(agent))
    numbers, counts = jnp.zeros((episodes,), task.task.dtype), jnp.zeros((episodes,), jnp.int32)
    metrics: Metrics = {}
    if learns:
        updates = task.updates_at_once(agent)
        one = jax.tree.map(lambda each: each[0] if updates == 1 else each[0, 0], draws)
        learned = jax.eval_shape(_update, agent, state.psi, state.buffer, one)[1]
        rows = (shape.periods,) if updates == 1 else (shape.periods, updates)
        metrics = {name: jnp.zeros(rows, each.dtype) for name, each in learned.items()}
        metrics["agent_steps"] = jnp.zeros(rows, jnp.int32)
    totals = (counts, counts) if task.num_envs > 1 else ()
    return ChunkOutput(EpisodeTable(numbers, counts, counts, *totals), metrics)
