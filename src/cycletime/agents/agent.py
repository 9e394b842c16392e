"""What every agent is: a frozen dataclass of hyper-parameters with pure functions on a state, the paper's Psi.

JAX sees an agent as a tree whose leaves are its rates (discount, trace decay, learning rate). A program is therefore
compiled for the agent's shapes alone, and agents that differ in rates only can train side by side under `vmap`.
"""

from __future__ import annotations

from dataclasses import field, fields
from math import ceil
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import jax

from cycletime.agents.buffer import Buffer
from cycletime.agents.exploration import CoherentNoise
from cycletime.agents.networks import PolicyNetwork

Psi: TypeAlias = Any
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

    def initialize(self, key: jax.Array, observation_size: int, action_size: int) -> Psi:
        """A fresh state."""

    def act(self, psi: Psi, observation: jax.Array, noise: jax.Array) -> jax.Array:
        """An action from the policy; `noise` is standard normal, and without noise the action is the policy's mean."""

    def draw(self, key: jax.Array, action_size: int) -> Draws:
        """All random numbers that one `learn` needs, apart from it so that they can be drawn in bulk."""

    def learn(self, psi: Psi, buffer: Buffer, draws: Draws) -> tuple[Psi, Metrics]:
        """The state after learning from the buffer."""

    def policy(self, psi: Psi) -> PolicyNetwork:
        """The newest policy by itself, for taking it elsewhere."""

    def acting(self, psi: Psi) -> PolicyNetwork:
        """The policy that acts, by itself: what `act` computes with."""


def choose_action(
    agent: Agent, psi: Psi, observation: jax.Array, noise: jax.Array, agent_steps: jax.Array
) -> jax.Array:
    """The policy's action, or a uniform one while the run is at its random start."""
    action = agent.act(psi, observation, noise)
    if not agent.random_steps:
        return action
    # A normal number pushed through its own distribution function is uniform, here on [-1, 1].
    anything = jax.lax.erf(noise / 2**0.5)
    return jax.numpy.where(agent_steps < agent.random_steps, anything, action)


def periods_before_learning(agent: Agent) -> int:
    """The periods at a run's start after which there is too little in the buffer to learn from."""
    return max(0, ceil(agent.learns_from / agent.period) - 1)


def rate(default: float) -> Any:  # noqa: ANN401 - a dataclass field passes for its value
    """A field that JAX sees as data: it may change without a new compilation, and differ under `vmap`."""
    return field(default=default, metadata={"rate": True})


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
