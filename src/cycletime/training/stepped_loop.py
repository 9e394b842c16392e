"""The stepped loop: Algorithm 1 with the same agents on any Gymnasium environment, single or vector.

One step of the environment is one agent step: `tasks.CycleTime` holds the action inside of it. A run ends with the
learning period in which its environment steps reach the budget, as in the compiled loop, and draws the same random
numbers for its agent; episodes begin with the environment's own. Several copies take their agent steps in rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from cycletime.agents import Agent, Buffer
from cycletime.agents.agent import AgentState
from cycletime.agents.checks import check_agent, check_counts, check_precision, check_rows
from cycletime.errors import InputError
from cycletime.training.algorithm_1 import initial_agent_state
from cycletime.training.compiled_loop import CHUNK_S
from cycletime.training.env_adapter import Counters, adapt_env, check_exploration_dt
from cycletime.training.learning_curve import Episodes
from cycletime.training.machine import keep_compiled_programs
from cycletime.training.process import HEARTBEAT
from cycletime.training.random_numbers import seed_key
from cycletime.training.stepped_agent import Learner, SteppedPosition, with_array_rates

clock: Callable[[], float] = time.monotonic
"""Tells the seconds since the last chunk; tests have one of their own."""
LONG_EPISODE_S = 20.0
"""An episode that lasts longer does not hold up the chunks."""
ENDLESS_EPISODE_STEPS = 10_000
"""An episode that outlasts both this and the budget is taken for one without an end."""


@dataclass(frozen=True)
class SteppedChunk:
    position: SteppedPosition
    env_steps: int
    episodes: Episodes
    metrics: Mapping[str, NDArray[Any]]
    """By name, one number for each learning, and as `agent_steps` the run's agent steps at each, counted as in the
    position: after a row of several copies that makes several updates, they all have the same."""
    finished: AgentState | None = None
    """What was learned, where the run reached its budget."""


@dataclass(frozen=True, kw_only=True)
class SteppedLoop:
    """Algorithm 1 for one run."""

    env: gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]
    """The world. One step of it is one agent step: wrap it in `CycleTime` to set the cycle time."""
    agent: Agent
    env_steps: int
    """The budget in environment steps, of all copies together: what the environment tells as
    ``info["cycle_steps"]``, else one for each step."""

    def __post_init__(self) -> None:
        check_agent(self.agent)
        check_counts(self, "env_steps")
        check_precision(jnp.float32)
        check_rows(self.agent, adapt_env(self.env).num_envs)
        check_exploration_dt(self.env, self.agent.exploration)

    def start(self, seed: int) -> SteppedPosition:
        env = adapt_env(self.env)
        sizes = env.observation_size, env.bounds.size
        rows = self.agent.capacity // env.num_envs
        if self.agent.learn_when == "batch":  # no more than the run fills: an agent step takes an environment step
            rows = min(rows, ceil(self.env_steps / env.num_envs) + ceil(self.agent.period / env.num_envs))
        return SteppedPosition(
            psi=initial_agent_state(with_array_rates(self.agent), seed_key(seed), *sizes, env.num_envs),
            buffer=Buffer.empty(rows, *sizes, env.num_envs),
        )

    def run(self, seed: int, position: SteppedPosition | None = None) -> Iterator[SteppedChunk]:
        """Train from the start or from a position, which stays as it is; ends when the budget is reached.

        A chunk comes at the first end of an episode after about a second, where one of all copies together comes within
        20 s; else at a learning period's end. A run that was finished at the position gives none.
        """
        keep_compiled_programs()
        run = _SteppedRun(self, seed, self.start(seed) if position is None else self._copied(seed, position))
        began = clock()
        while not run.is_finished():
            run.step()
            if run.is_finished() or run.may_pause(clock() - began):
                yield run.chunk()
                began = clock()

    def _copied(self, seed: int, position: SteppedPosition) -> SteppedPosition:
        """A copy of a position, since the buffer is written to in place; it must have the shapes of this run."""
        if not isinstance(position, SteppedPosition):
            raise InputError(f"The position is a {type(position).__name__}: give the position of a chunk of this loop.")
        start = jax.eval_shape(lambda: self.start(seed))
        leaves, likes = (jax.tree.leaves((each.psi, each.buffer)) for each in (position, start))
        if any(isinstance(leaf, jax.Array) and leaf.is_deleted() for leaf in leaves):
            remedy = "as in jax.tree.map(numpy.array, position), before you ask for the next chunk"
            taken = "The position was taken over by the chunk after it"
            raise InputError(f"{taken}: copy a position that you want to use later, {remedy}.")
        if [np.shape(leaf) for leaf in leaves] != [like.shape for like in likes]:
            needed = "env_steps, the number of copies and the agent's sizes must be those that it came from"
            raise InputError(f"The position's arrays have other shapes than this run's: {needed}.")
        copies = [jnp.array(leaf, like.dtype) for leaf, like in zip(leaves, likes, strict=True)]
        psi, buffer = jax.tree.unflatten(jax.tree.structure((start.psi, start.buffer)), copies)
        return position._replace(psi=psi, buffer=buffer)


@dataclass
class _SteppedRun:
    loop: SteppedLoop
    seed: int
    position: SteppedPosition
    observation: NDArray[np.float32] = field(init=False)

    def __post_init__(self) -> None:
        self.env = adapt_env(self.loop.env)
        self.learner = Learner(with_array_rates(self.loop.agent), self.seed, self.position, self.env)
        counts = (int(each) for each in (self.position.env_steps, self.position.agent_steps, self.position.episodes))
        self.counters = Counters(self.env.num_envs, *counts)
        self.begins = True

    def is_finished(self) -> bool:
        """Whether the learning period in which the budget was reached is over."""
        return self.counters.env_steps >= self.loop.env_steps and self.learner.period_rows == 0

    def may_pause(self, waited_s: float) -> bool:
        """Whether it is time for a chunk: at an episode's end, else where the least is in hand."""
        patience_s = CHUNK_S if self.begins else LONG_EPISODE_S
        return waited_s > patience_s and (self.begins or self.learner.period_rows == 0)

    def step(self) -> None:
        if self.begins:
            self.observation = self.env.begin(self.seed, self.counters.episodes)
            self.counters.check_finite(observation=self.observation)
            self.begins = False
        actions = self.learner.act(self.observation)
        self.counters.check_finite(action=actions)
        result = self.env.step(actions)
        HEARTBEAT.tick()
        self.counters.check_finite(reward=result.reward, successor=result.successor)
        episodes = self.counters.episodes
        self.counters.count(result)
        self.learner.store(self.observation, actions, result)
        self.learner.learn_if_due(self.counters.agent_steps, ended=self.counters.episodes > episodes)
        waits = self.loop.agent.learn_when == "episode_end" and self.learner.period_rows > self.loop.agent.period
        if waits and self.counters.current_steps > max(self.loop.env_steps, ENDLESS_EPISODE_STEPS):
            remedy = "give the environment a time limit, or learn_when='batch'"
            lasts = f"{self.counters.current_steps} environment steps, more than the whole budget"
            raise InputError(f"An episode has lasted {lasts}, while learn_when is 'episode_end': {remedy}.")
        if result.observation is not result.successor:
            self.counters.check_finite(observation=result.observation)
        self.observation = result.observation
        self.begins = bool(result.ended.all())

    def chunk(self) -> SteppedChunk:
        learner, counters = self.learner, self.counters
        return SteppedChunk(
            position=learner.position(counters, exact=self.begins),
            env_steps=min(counters.env_steps, self.loop.env_steps),
            episodes=counters.pop_episodes().up_to(self.loop.env_steps),
            metrics=learner.pop_metrics(),
            finished=learner.psi if self.is_finished() else None,
        )
