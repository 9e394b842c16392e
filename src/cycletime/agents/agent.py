"""What every agent is, and the buffer that it learns from.

An agent is a frozen dataclass of hyper-parameters with pure functions on a state, the paper's Psi. JAX sees it as a
tree whose leaves are its rates (discount, trace decay, learning rate). A program is therefore compiled for the agent's
shapes alone, and agents that differ in rates only can train side by side under `vmap`.

The buffer B of Algorithm 1 holds transitions (S, A, R, S', T) in the order of time, the oldest overwritten when full.
One row of one array holds a transition, so that storing is one write and sampling one gather. Several copies of an
environment fill columns side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import partial
from math import ceil
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from cycletime.agents.exploration import CoherentNoise
from cycletime.agents.networks import PolicyNetwork


class Transition(NamedTuple):
    """One agent step, or an array of them."""

    observation: jax.Array
    """S, what the agent saw."""
    action: jax.Array
    """A, what it did."""
    reward: jax.Array
    """R, the sum of rewards until the next action."""
    next_observation: jax.Array
    """S', what came of it; at an episode's end its last observation, not the first of the next."""
    terminated: jax.Array
    """Whether the task itself ended the episode."""
    truncated: jax.Array
    """Whether a time limit did."""

    @property
    def ended(self) -> jax.Array:
        return jnp.maximum(self.terminated, self.truncated)


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["rows", "stored", "newest_successor"],
    meta_fields=["observation_size", "action_size"],
)
@dataclass(frozen=True)
class Buffer:
    rows: jax.Array
    """[capacity, num_envs, numbers of a transition]."""
    stored: jax.Array
    """How many rows were stored since the buffer was last empty; those overwritten count, those refused do not."""
    newest_successor: jax.Array
    """[num_envs, observation_size]: S' of the newest transition, also of one that found no room."""
    observation_size: int
    action_size: int

    @classmethod
    def empty(cls, capacity: int, observation_size: int, action_size: int, num_envs: int = 1) -> Buffer:
        return cls(
            rows=jnp.zeros((capacity, num_envs, 2 * observation_size + action_size + 3)),
            stored=jnp.zeros((), jnp.int32),
            newest_successor=jnp.zeros((num_envs, observation_size)),
            observation_size=observation_size,
            action_size=action_size,
        )

    @property
    def capacity(self) -> int:
        return self.rows.shape[0]

    @property
    def filled(self) -> jax.Array:
        """How many rows hold a transition."""
        return jnp.minimum(self.stored, self.capacity)

    def store(self, transition: Transition) -> Buffer:
        """Add one agent step of each copy; when the buffer is full, in place of the oldest."""
        row = self._row(transition)
        rows = lax.dynamic_update_slice_in_dim(self.rows, row[None], self.stored % self.capacity, axis=0)
        return replace(
            self, rows=rows, stored=self.stored + 1, newest_successor=self._per_env(transition.next_observation)
        )

    def store_first(self, transition: Transition) -> Buffer:
        """Add one agent step of each copy; when the buffer is full, nowhere."""
        rows = self.rows.at[self.stored].set(self._row(transition), mode="drop")
        stored = jnp.minimum(self.stored + 1, self.capacity)
        return replace(self, rows=rows, stored=stored, newest_successor=self._per_env(transition.next_observation))

    def emptied(self) -> Buffer:
        return replace(self, stored=jnp.zeros_like(self.stored))

    def oldest_first(self) -> Transition:
        """All transitions of a full buffer in the order of time, [capacity, num_envs, ...]."""
        return self.read(jnp.roll(self.rows, -(self.stored % self.capacity), axis=0))

    def sample(self, bits: jax.Array) -> Transition:
        """One transition for each random word, uniformly from those stored."""
        num_envs = self.rows.shape[1]
        # The remainder favours small numbers by less than one part in a thousand, for up to four million rows.
        chosen = (bits % (self.filled * num_envs).astype(jnp.uint32)).astype(jnp.int32)
        return self.read(self.rows.reshape(-1, self.rows.shape[-1])[chosen])

    def read(self, rows: jax.Array) -> Transition:
        s, a = self.observation_size, self.action_size
        return Transition(
            observation=rows[..., :s],
            action=rows[..., s : s + a],
            reward=rows[..., s + a],
            next_observation=rows[..., s + a + 1 : 2 * s + a + 1],
            terminated=rows[..., 2 * s + a + 1],
            truncated=rows[..., 2 * s + a + 2],
        )

    def _row(self, transition: Transition) -> jax.Array:
        return jnp.concatenate([self._per_env(part) for part in transition], axis=1)

    def _per_env(self, part: jax.Array) -> jax.Array:
        return jnp.asarray(part, self.rows.dtype).reshape(self.rows.shape[1], -1)


AgentState: TypeAlias = Any
"""An agent's own NamedTuple of everything that learning changes."""
Draws: TypeAlias = Any
"""The random numbers of one `learn`, a tree of arrays."""
Metrics: TypeAlias = dict[str, jax.Array]
"""What one `learn` tells about itself, by name."""
LearnWhen: TypeAlias = Literal["batch", "episode_end"]
TimeLimit: TypeAlias = Literal["terminal", "bootstrap"]

_Agent = TypeVar("_Agent", bound="type[Any]")


class Agent(Protocol):
    """What a loop asks of an agent."""

    @property
    def learn_when(self) -> LearnWhen:
        """Whether it learns every U agent steps, or at the end of an episode once U are stored."""

    @property
    def capacity(self) -> int:
        """b, the transitions that its buffer holds."""

    @property
    def period(self) -> int:
        """U, the agent steps between two updates."""

    @property
    def learns_from(self) -> int:
        """The fewest transitions in the buffer that it learns from."""

    @property
    def random_steps(self) -> int:
        """The agent steps at a run's start that are taken at random."""

    @property
    def exploration(self) -> CoherentNoise | None:
        """What makes the noise of its actions coherent in time; None leaves it white."""

    def initialize(self, key: jax.Array, observation_size: int, action_size: int, num_envs: int = 1) -> AgentState:
        """A fresh state, of a run with so many environments."""

    def act(self, psi: AgentState, observation: jax.Array, noise: jax.Array) -> jax.Array:
        """An action from the policy; `noise` is standard normal, and without noise the action is the policy's mean."""

    def draw(self, key: jax.Array, action_size: int) -> Draws:
        """All random numbers that one `learn` needs, apart from it so that they can be drawn in bulk."""

    def learn(self, psi: AgentState, buffer: Buffer, draws: Draws) -> tuple[AgentState, Metrics]:
        """The state after learning from the buffer."""

    def policy(self, psi: AgentState) -> PolicyNetwork:
        """The newest policy by itself, for taking it elsewhere."""

    def acting(self, psi: AgentState) -> PolicyNetwork:
        """The policy that acts, by itself: what `act` computes with."""


def choose_action(
    agent: Agent, psi: AgentState, observation: jax.Array, noise: jax.Array, agent_steps: jax.Array
) -> jax.Array:
    """The policy's action, or a uniform one while the run is at its random start."""
    action = agent.act(psi, observation, noise)
    if not agent.random_steps:
        return action
    # A normal number pushed through its own distribution function is uniform, here on [-1, 1].
    anything = jax.lax.erf(noise / 2**0.5)
    return jax.numpy.where(agent_steps < agent.random_steps, anything, action)


def cycles_between_updates(agent: Agent, num_envs: int) -> int:
    """The cycles from one learning to the next, in each of which so many environments take an agent step."""
    return max(1, agent.period // num_envs)


def periods_before_learning(agent: Agent, num_envs: int = 1) -> int:
    """The periods at a run's start after which there is too little in the buffer to learn from."""
    return max(0, ceil(agent.learns_from / max(agent.period, num_envs)) - 1)


def rate(default: float | None) -> Any:  # noqa: ANN401 - a dataclass field passes for its value
    """A field that JAX sees as data: it may change without a new compilation, and differ under `vmap`.

    One that is None by default is an `option` too; None is no data, so that a program with it set is another one.
    """
    return field(default=default, metadata={"rate": True, "option": default is None})


def option(default: object) -> Any:  # noqa: ANN401 - as above
    """A field that was added later: a run's identity has it only where it is not as by default."""
    return field(default=default, metadata={"option": True})


def pytree_of_rates(agent: _Agent) -> _Agent:
    """Register a dataclass as a tree: its rates are the leaves, all else is part of the tree's structure."""
    rates = tuple(each.name for each in fields(agent) if each.metadata.get("rate"))
    others = tuple(each.name for each in fields(agent) if not each.metadata.get("rate"))

    def flatten(self: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:  # noqa: ANN401
        return tuple(getattr(self, name) for name in rates), tuple(getattr(self, name) for name in others)

    def unflatten(structure: tuple[Any, ...], leaves: tuple[Any, ...]) -> Any:  # noqa: ANN401
        made = object.__new__(agent)  # without its checks, since a leaf may be a tracer
        for name, value in (*zip(others, structure, strict=True), *zip(rates, leaves, strict=True)):
            object.__setattr__(made, name, value)
        return made

    jax.tree_util.register_pytree_node(agent, flatten, unflatten)
    return agent
