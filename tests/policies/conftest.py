"""Policies with weights that reach far, as an agent's state and as they are saved; and action spaces of all kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import gymnasium
import jax
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from cycletime.agents import ActorCriticAgent, PPOAgent, SACAgent
from cycletime.training.policy_file import SavedPolicy
from cycletime.training.spec import RunSpec
from cycletime.training.worlds import ActionBounds, ClosedFormWorld

Numbers: TypeAlias = NDArray[Any]
AGENTS: dict[str, Any] = {
    "PPO": PPOAgent(hidden=(16, 8)),
    "SAC": SACAgent(hidden=(16, 8)),
    "actor-critic": ActorCriticAgent(hidden=(4,)),
}


class Spaces(gymnasium.Env[Any, Any]):
    def __init__(self, low: list[float], high: list[float], dtype: Any = np.float32, raw: bool = False) -> None:  # noqa: ANN401
        self.action_space: Any = Box(np.array(low, dtype), np.array(high, dtype), dtype=dtype)
        self.metadata = {"raw_actions": raw}


INF = float("inf")
BOUNDS = {
    "bounded": ActionBounds.of(Spaces([-2, 0.1], [2, 0.3])),
    "wide": ActionBounds.of(Spaces([-1000, 400], [3000, 500])),
    "float64": ActionBounds.of(Spaces([-0.1, -0.1], [0.1, 0.7], np.float64)),
    "unbounded": ActionBounds.of(Spaces([-INF, -INF], [INF, INF])),
    "one-sided": ActionBounds.of(Spaces([0, -INF], [INF, 0.5])),
    "raw": ActionBounds.of(Spaces([-1, -1], [1, 1], raw=True)),
}


@dataclass
class Trained:
    """An agent's state, and the same policy as it is saved."""

    agent: Any
    psi: Any
    saved: SavedPolicy

    def act(self, observation: Numbers, noise: Numbers | float = 0.0) -> Numbers:
        """What the agent itself gives to the environment."""
        shape = (*observation.shape[:-1], self.saved.bounds.size)
        own = self.agent.act(self.psi, observation, np.broadcast_to(np.float32(noise), shape))
        return self.saved.bounds.reach(np.asarray(own))


def trained(
    agent: Any = AGENTS["PPO"],  # noqa: ANN401
    bounds: ActionBounds = BOUNDS["bounded"],
    change: Callable[[Any], Any] = lambda psi: psi,
    scale: float = 0.7,
) -> Trained:
    random = np.random.default_rng(0)
    shapes = jax.eval_shape(lambda: agent.initialize(jax.random.key(0), 3, 2))
    psi = change(jax.tree.map(lambda leaf: random.normal(scale=scale, size=leaf.shape).astype(np.float32), shapes))
    return Trained(agent, psi, SavedPolicy.of(agent.policy(psi), bounds, spec_of(agent), 4000))


def spec_of(agent: Any = AGENTS["PPO"]) -> RunSpec:  # noqa: ANN401
    return RunSpec(world=ClosedFormWorld("reacher"), agent=replace(agent), dt="16ms", env_steps=8000, seed=0)


def observations(count: int = 50) -> Numbers:
    return np.random.default_rng(1).normal(size=(count, 3)).astype(np.float32)
