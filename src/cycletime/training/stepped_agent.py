"""The agent's side of a stepped run: act, remember, and learn at the right agent steps.

A call of JAX costs more than a small network, and each array that it is given costs time: so there are few calls, and
the agent's state is packed into few arrays. Acting is done in NumPy, which rounds in other places than XLA.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import erf, prod
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from cycletime.agents import Agent, Buffer
from cycletime.agents.agent import AgentState, Draws, cycles_between_updates
from cycletime.agents.exploration import explore, initial_noise_state, normals_per_step
from cycletime.training.env_adapter import Counters, EnvAdapter, StepResult
from cycletime.training.random_numbers import Purpose, draw_normals, draw_updates, keys_for, seed_key

_Tree = TypeVar("_Tree")

MOST_SMALL = 2**14
"""Numbers of an array that costs less to copy than to carry by itself."""


@dataclass(frozen=True, eq=False)
class PackedLayout:
    structure: Any
    places: tuple[tuple[str | int, slice, tuple[int, ...]], ...]
    """Where each of its arrays is: the kind of its numbers, where they stand among those, and its shape; of a large
    one, its number among the large ones instead."""


@lru_cache
def _packed_layout(structure: Any, shapes: tuple[tuple[int, ...], ...], dtypes: tuple[str, ...]) -> PackedLayout:  # noqa: ANN401
    """One for all trees that are packed alike, so that JAX sees at a glance that it has their program."""
    places: list[tuple[str | int, slice, tuple[int, ...]]] = []
    ends, large = dict.fromkeys(dtypes, 0), 0
    for shape, dtype in zip(shapes, dtypes, strict=True):
        if (count := prod(shape)) > MOST_SMALL:
            places.append((large, slice(None), shape))
            large += 1
        else:
            places.append((dtype, slice(ends[dtype], ends[dtype] + count), shape))
            ends[dtype] += count
    return PackedLayout(structure, tuple(places))


@partial(jax.tree_util.register_dataclass, data_fields=["large", "small"], meta_fields=["layout"])
@dataclass(frozen=True)
class PackedAgentState:
    """A tree of arrays, itself a tree of a few."""

    large: tuple[Any, ...]
    small: dict[str, Any]
    layout: PackedLayout

    @classmethod
    def of(cls, tree: Any) -> PackedAgentState:  # noqa: ANN401 - any tree of arrays
        leaves, structure = jax.tree.flatten(tree)
        layout = _packed_layout(
            structure, tuple(each.shape for each in leaves), tuple(str(each.dtype) for each in leaves)
        )
        small: dict[str, list[Any]] = {}
        large: list[Any] = []
        for leaf, (where, _, _) in zip(leaves, layout.places, strict=True):
            if isinstance(where, int):
                large.append(leaf)
            else:
                small.setdefault(where, []).append(leaf.reshape(-1))
        return cls(tuple(large), {dtype: jnp.concatenate(parts) for dtype, parts in small.items()}, layout)

    def unpacked(self) -> Any:  # noqa: ANN401
        """The tree; of small arrays, parts of those that they are packed in."""
        return jax.tree.map(self._array, self.numbered())

    def on_host(self) -> PackedAgentState:
        """The same with its small arrays in NumPy, so that taking them apart makes no calls of JAX."""
        return PackedAgentState(
            self.large, {dtype: np.asarray(each) for dtype, each in self.small.items()}, self.layout
        )

    def numbered(self) -> Any:  # noqa: ANN401
        """The tree with the arrays' numbers in their places, to choose some of them for `chosen`."""
        return jax.tree.unflatten(self.layout.structure, range(len(self.layout.places)))

    def chosen(self, numbers: _Tree) -> _Tree:
        """The arrays, on the host, in the places of their numbers."""
        arrays: _Tree = jax.tree.map(self.on_host()._array, numbers)
        return arrays

    def _array(self, number: int) -> Any:  # noqa: ANN401
        where, part, shape = self.layout.places[number]
        return self.large[where] if isinstance(where, int) else self.small[where][part].reshape(shape)


class Actor:
    """Acts for all copies of an environment, and remembers the state of noise that is coherent in time."""

    def __init__(self, agent: Agent, psi: PackedAgentState, num_envs: int, action_size: int) -> None:
        """Find the arrays of the agent's state that acting needs."""
        self._agent, self._needed = agent, agent.acting(psi.numbered())
        self._noise = jax.tree.map(np.asarray, initial_noise_state(agent.exploration, num_envs, action_size))
        self._indices, self._none_begins = np.arange(num_envs)[:, None], np.zeros(num_envs, np.bool_)
        self._take(psi)

    def act(
        self,
        psi: PackedAgentState,
        observation: NDArray[np.float32],
        normals: NDArray[np.float32],
        agent_steps: int,
        begins: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.float32]:
        """The actions of all copies, [num_envs, |A|], the first of which is the run's agent step of this number.

        What is not finite in Psi or in the observation makes actions that are not. `begins` says of each copy whether
        an episode begins with it; by default none does.
        """
        if psi is not self._psi:
            self._take(psi)
        begins = self._none_begins if begins is None else begins
        noise, self._noise = explore(self._agent.exploration, self._noise, normals, begins)
        left_steps = self._agent.random_steps - agent_steps
        if left_steps >= len(normals):
            return uniform_from_normal(noise)
        with np.errstate(over="ignore", invalid="ignore"):
            actions = self._network.act(observation, noise)
        return actions if left_steps <= 0 else np.where(self._indices < left_steps, uniform_from_normal(noise), actions)

    def _take(self, psi: PackedAgentState) -> None:
        self._psi, self._network = psi, psi.chosen(self._needed).in_numpy()


def uniform_from_normal(noise: NDArray[np.float32]) -> NDArray[np.float32]:
    """Uniform numbers on [-1, 1] of normal ones, as `choose_action` makes them."""
    return np.array([erf(each / 2**0.5) for each in noise.ravel().tolist()], np.float32).reshape(noise.shape)


MOST_ROWS = 256
"""Rows that are gathered before they are stored, at most."""
MOST_PERIODS, MOST_AGENT_STEPS = 256, 20_000
"""What random numbers are drawn for at once, at most."""


class SteppedPosition(NamedTuple):
    """The state of a run: with the loop and the seed, enough to resume. Its names are keys of checkpoints."""

    psi: AgentState
    buffer: Buffer
    """What it remembers; the next chunk writes into it, so save or copy before it what you want to keep."""
    period: int = 0
    rows: int = 0
    """The rows stored; with one environment, its agent steps."""
    period_rows: int = 0
    env_steps: int = 0
    """Environment steps done, also those beyond the budget."""
    agent_steps: int = 0
    episodes: int = 0
    exact: bool = True
    """Whether a run that goes on from here equals one that was never stopped, bit for bit, given that a reset with a
    seed determines an episode: wrappers with a memory, such as NormalizeObservation, and unseeded noise break that. Not
    so inside episodes, as mostly with several copies: there new ones begin."""


@partial(jax.tree_util.register_dataclass, data_fields=["numbers"], meta_fields=["names"])
@dataclass(frozen=True)
class MetricsTable:
    """The metrics of one or several updates, in one array since each array costs time to fetch."""

    names: tuple[str, ...]
    numbers: jax.Array


class UpdateResult(NamedTuple):
    psi: PackedAgentState
    buffer: Buffer
    metrics: MetricsTable


def with_array_rates(agent: Agent) -> Agent:
    """The agent with its rates as arrays, which calls take faster than numbers."""
    data: Agent = jax.tree.map(lambda rate: jnp.asarray(rate, jnp.float32), agent)
    return data


@partial(jax.jit, static_argnames="first_only", donate_argnames="buffer")
def store_rows(buffer: Buffer, rows: jax.Array, count: jax.Array, first_only: bool) -> Buffer:
    """The buffer with the first `count` of some rows, written in place; when it is full, over the oldest or nowhere."""

    def add(index: jax.Array, buffer: Buffer) -> Buffer:
        transition = buffer.read(rows[index])
        return buffer.store_first(transition) if first_only else buffer.store(transition)

    stored: Buffer = lax.fori_loop(0, count, add, buffer)
    return stored


@partial(jax.jit, static_argnames="updates", donate_argnames="buffer")
def store_and_learn(
    agent: Agent,
    psi: PackedAgentState,
    buffer: Buffer,
    rows: jax.Array,
    count: jax.Array,
    draws: Draws,
    index: jax.Array,
    updates: int,
) -> UpdateResult:
    """Store rows, then learn so many times, with the random numbers from an index on."""
    episode_end = agent.learn_when == "episode_end"
    buffer = store_rows(buffer, rows, count, first_only=episode_end)

    def learn(psi: AgentState, index: jax.Array) -> tuple[AgentState, jax.Array]:
        psi, metrics = agent.learn(psi, buffer, jax.tree.map(lambda each: each[index], draws))
        names.append(tuple(metrics))
        return psi, jnp.stack([jnp.asarray(number, jnp.float32) for number in metrics.values()])

    names: list[tuple[str, ...]] = []
    if updates == 1:
        learned, numbers = learn(psi.unpacked(), index)
        numbers = numbers[None]
    else:
        learned, numbers = lax.scan(learn, psi.unpacked(), index + jnp.arange(updates))
    emptied = buffer.emptied() if episode_end else buffer
    return UpdateResult(PackedAgentState.of(learned), emptied, MetricsTable(names[0], numbers))


@partial(jax.jit, static_argnames=("periods", "steps", "numbers"))
def _draw_normals(seed_key: jax.Array, first: jax.Array, periods: int, steps: int, numbers: int) -> jax.Array:
    keys = keys_for(seed_key, {Purpose.NOISE: first + jnp.arange(periods)})[Purpose.NOISE]
    return draw_normals(keys, steps, numbers).reshape(-1, numbers)


@partial(jax.jit, static_argnames=("periods", "action_size"))
def _draw_learning(agent: Agent, seed_key: jax.Array, first: jax.Array, periods: int, action_size: int) -> Draws:
    keys = keys_for(seed_key, {Purpose.LEARNING: first + jnp.arange(periods)})[Purpose.LEARNING]
    return draw_updates(agent, keys, action_size)


@dataclass
class RandomNumbers:
    """A run's random numbers, the same as the compiled loop's for each agent step and each learning period.

    With several copies, those of a row take the numbers of as many agent steps that follow each other.
    """

    agent: Agent
    seed_key: jax.Array
    action_size: int
    num_envs: int
    _normals: NDArray[np.float32] = field(init=False)
    _normals_from: int = field(default=0, init=False)
    """The period that the normals in hand begin with."""
    _draws: Draws = field(default=None, init=False)
    _draws_from: int = field(default=0, init=False)
    _draws_until: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._numbers = normals_per_step(self.agent.exploration, self.action_size)
        self._normals = np.zeros((0, self._numbers), np.float32)

    @property
    def updates(self) -> int:
        """Learning periods that one row makes up, where it has more agent steps than one of them."""
        return max(1, self.num_envs // self.agent.period)

    def noise(self, period: int, row: int) -> NDArray[np.float32]:
        """The normals of the noise of a period's row, [num_envs, numbers]."""
        at = (period - self._normals_from) * self.agent.period + row * self.num_envs
        waits = self.agent.learn_when == "episode_end"
        if at < 0 or at + self.num_envs > len(self._normals) or (waits and period != self._normals_from):
            steps, periods = self.agent.period, 1 if waits else self._periods
            # A period that waits for an episode's end has no known length. More numbers of a key begin with the same.
            while waits and steps <= row:
                steps *= 2
            self._normals = np.asarray(_draw_normals(self.seed_key, np.int32(period), periods, steps, self._numbers))
            self._normals_from, at = period, row * self.num_envs
        return self._normals[at : at + self.num_envs]

    def draws(self, period: int) -> tuple[Draws, np.int32]:
        """The random numbers of many updates, and where those of a period and the next ones stand among them."""
        if not self._draws_from <= period < self._draws_until:
            self._draws = _draw_learning(self.agent, self.seed_key, np.int32(period), self._periods, self.action_size)
            self._draws_from, self._draws_until = period, period + self._periods
        return self._draws, np.int32(period - self._draws_from)

    @property
    def _periods(self) -> int:
        periods = int(np.clip(MOST_AGENT_STEPS // self.agent.period, 1, MOST_PERIODS))
        return max(1, periods // self.updates) * self.updates


class Learner:
    def __init__(self, agent: Agent, seed: int, position: SteppedPosition, env: EnvAdapter) -> None:
        self.agent, self._psi = agent, position.psi
        self.period, self.rows, self.period_rows = int(position.period), int(position.rows), int(position.period_rows)
        self.packed, self._buffer, self._num_envs = PackedAgentState.of(position.psi), position.buffer, env.num_envs
        # Whether a copy's next step is its episode's first; going on from a position begins new episodes.
        self._begins = np.ones(env.num_envs, np.bool_)
        self._actor = Actor(agent, self.packed, env.num_envs, env.bounds.size)
        self._random = RandomNumbers(agent, seed_key(seed), env.bounds.size, env.num_envs)
        # One row where the agent learns after each, so that its call carries no more than that.
        self._room = min(MOST_ROWS, cycles_between_updates(agent, env.num_envs))
        self._begin_block()
        self._metrics: list[tuple[int, MetricsTable]] = []  # each with the run's agent steps

    @property
    def psi(self) -> AgentState:
        """The agent's state; the same object until the next update. Waits for a running update to end."""
        if self._psi is None:
            self._psi = self.packed.on_host().unpacked()
        return self._psi

    def act(self, observation: NDArray[np.float32]) -> NDArray[np.float32]:
        normals = self._random.noise(self.period, self.period_rows)
        return self._actor.act(self.packed, observation, normals, self.rows * self._num_envs, self._begins)

    def store(self, observation: NDArray[np.float32], actions: NDArray[np.float32], result: StepResult) -> None:
        """Remember a row, its parts in the order of `Transition`."""
        row = self._block[self._gathered]
        begin = 0
        for part in (observation, actions, result.reward[:, None], result.successor):
            end = begin + part.shape[1]
            row[:, begin:end] = part
            begin = end
        row[:, begin], row[:, begin + 1] = result.terminated, result.truncated
        self._gathered += 1
        self.rows += 1
        self.period_rows += 1
        self._begins = result.ended

    def learn_if_due(self, agent_steps: int, *, ended: bool) -> None:
        """Update at a learning period's end, once the buffer has enough; `agent_steps` are the run's so far."""
        steps = self.period_rows * self._num_envs
        if steps >= self.agent.period and (ended or self.agent.learn_when == "batch"):
            if self.rows * self._num_envs >= self.agent.learns_from:
                self._learn(agent_steps)
            self.period += self._random.updates
            self.period_rows = 0
        if self._gathered == self._room:
            self.flush()

    def flush(self) -> Buffer:
        """Store what was gathered; the buffer with all rows."""
        if self._gathered:
            first_only = self.agent.learn_when == "episode_end"
            self._buffer = store_rows(self._buffer, *self._take_block(), first_only=first_only)
        return self._buffer

    def position(self, counters: Counters, *, exact: bool) -> SteppedPosition:
        return SteppedPosition(
            psi=self.psi,
            buffer=self.flush(),
            period=self.period,
            rows=self.rows,
            period_rows=self.period_rows,
            env_steps=counters.env_steps,
            agent_steps=counters.agent_steps,
            episodes=counters.episodes,
            exact=exact,
        )

    def pop_metrics(self) -> dict[str, NDArray[Any]]:
        """By name, one number for each learning since the last call, and the agent steps done at each."""
        if not self._metrics:
            return {}
        agent_steps, tables = zip(*self._metrics, strict=True)
        self._metrics = []
        numbers = np.concatenate([np.asarray(table.numbers) for table in tables])
        metrics = {name: numbers[:, column] for column, name in enumerate(tables[0].names)}
        return {**metrics, "agent_steps": np.repeat(np.array(agent_steps, np.int64), self._random.updates)}

    def _learn(self, agent_steps: int) -> None:
        draws, index = self._random.draws(self.period)
        self.packed, self._buffer, metrics = store_and_learn(
            self.agent, self.packed, self._buffer, *self._take_block(), draws, index, updates=self._random.updates
        )
        self._psi = None
        self._metrics.append((agent_steps, metrics))

    def _take_block(self) -> tuple[NDArray[np.float32], np.int32]:
        """The gathered rows, in an array of constant shape that is not written to afterwards."""
        block, count = self._block, np.int32(self._gathered)
        self._begin_block()
        return block, count

    def _begin_block(self) -> None:
        self._block = np.zeros((self._room, self._num_envs, self._buffer.rows.shape[2]), np.float32)
        self._gathered = 0
