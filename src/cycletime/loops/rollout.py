"""The part of Algorithm 1 between two learnings: act, hold, store, and begin anew at an episode's end.

There are two forms of it. A run alone has a loop over episodes around one over cycles, so that a new episode is only
computed where one ends. Runs side by side (under `vmap`) must all take the same path, so that every cycle chooses
between going on and beginning anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from cycletime.agents import Agent, Buffer, Transition
from cycletime.agents.agent import Psi, choose_action
from cycletime.agents.exploration import NoiseState, explore
from cycletime.duration import Duration, cycle_steps
from cycletime.tasks.closed_form import ClosedFormTask, State

_Count = TypeVar("_Count", int, jax.Array)


@dataclass(frozen=True)
class TimedTask:
    """A closed-form task at a cycle time."""

    task: ClosedFormTask
    cycle_steps: int
    """k, the environment steps that an action is held for."""

    def cycles_in(self, duration: Duration) -> int:
        """The agent steps of an episode that lasts so long."""
        return -(-cycle_steps(duration, self.task.env_dt) // self.cycle_steps)

    @property
    def episodes_vary(self) -> bool:
        """Whether some episodes have fewer agent steps than others."""
        return self.cycles_in(self.task.shortest_episode) < self.cycles_in(self.task.time_limit)

    def steps_until_learning(self, agent: Agent) -> int:
        """The most agent steps from one learning to the next."""
        if agent.learn_when == "batch":
            return agent.period
        longest = self.cycles_in(self.task.time_limit)
        return agent.period - 1 + longest if self.episodes_vary else ceil(agent.period / longest) * longest

    def most_episodes(self, agent_steps: _Count) -> _Count:
        """No more episodes than this end within so many agent steps."""
        return -(-agent_steps // self.cycles_in(self.task.shortest_episode)) + 1


class Walk(NamedTuple):
    """Where a run is in its task."""

    steps: jax.Array
    """Agent steps since the last learning."""
    state: State
    """The task's."""
    observation: jax.Array
    """What the agent sees of it."""
    episode_return: jax.Array
    """The rewards of the current episode so far."""
    episode_steps: jax.Array
    """Its agent steps so far."""
    episodes: jax.Array
    """The episodes that ended since the run began."""
    noise: NoiseState = None
    """The state of noise that is coherent in time."""


class EpisodeTable(NamedTuple):
    """The episodes that ended in a chunk of learning periods, a row for each."""

    episode_return: jax.Array
    env_steps: jax.Array
    agent_steps: jax.Array


class RolloutState(NamedTuple):
    """What a rollout changes."""

    walk: Walk
    buffer: Buffer
    episodes: EpisodeTable


class RolloutDraws(NamedTuple):
    """What was drawn beforehand."""

    normals: jax.Array
    """[steps, numbers], for the noise of the actions."""
    starts: State
    """States that episodes begin with."""
    first: jax.Array
    """The number of the episode after which the first of them begins, and whose row is the first of the table."""


@dataclass(frozen=True)
class Rollout:
    """One rollout: who acts, where, and with which random numbers."""

    timed_task: TimedTask
    agent: Agent
    psi: Psi
    agent_steps: jax.Array
    """The run's agent steps before it."""
    draws: RolloutDraws

    def alone(self, state: RolloutState) -> RolloutState:
        """Go on until it is time to learn; the form for one run."""

        def goes_on(carry: tuple[Walk, Buffer, jax.Array]) -> jax.Array:
            walk, _, ended = carry
            return ~ended if self.agent.learn_when == "episode_end" else ~ended & (walk.steps < self.agent.period)

        def episode(state: RolloutState) -> RolloutState:
            start = (state.walk, state.buffer, jnp.zeros((), jnp.bool))
            walk, buffer, ended = lax.while_loop(goes_on, lambda carry: self._cycle(*carry[:2]), start)
            return self._end_episode(walk, buffer, state.episodes, ended)

        return lax.while_loop(lambda state: state.walk.steps < self.agent.period, episode, state)

    def side_by_side(self, state: RolloutState) -> RolloutState:
        """Go on until it is time to learn; the form for `vmap`."""
        steps = self.timed_task.steps_until_learning(self.agent)
        may_wait = self.agent.learn_when == "episode_end" and self.timed_task.episodes_vary

        def cycle(state: RolloutState, _: None) -> tuple[RolloutState, None]:
            walk, buffer, ended = self._cycle(state.walk, state.buffer)
            after = self._end_episode(walk, buffer, state.episodes, ended)
            if not may_wait:
                return after, None
            # Others still roll out: this run learns at the end of the episode that filled its batch.
            waits = (state.walk.steps >= self.agent.period) & (state.walk.episode_steps == 0)
            return jax.tree.map(lambda old, new: jnp.where(waits, old, new), state, after), None

        return lax.scan(cycle, state, None, length=steps)[0]

    def _cycle(self, walk: Walk, buffer: Buffer) -> tuple[Walk, Buffer, jax.Array]:
        """Act, hold the action, store the transition."""
        normals, begins = self.draws.normals[walk.steps], walk.episode_steps == 0
        noise, noise_state = explore(self.agent.exploration, walk.noise, normals, begins)
        action = choose_action(self.agent, self.psi, walk.observation, noise, self.agent_steps + walk.steps)
        step = self.timed_task.task.cycle(walk.state, action, self.timed_task.cycle_steps)
        transition = Transition(
            walk.observation, action, step.reward, step.observation, step.terminated, step.truncated
        )
        first_only = self.agent.learn_when == "episode_end"
        buffer = buffer.store_first(transition) if first_only else buffer.store(transition)
        walk = Walk(
            steps=walk.steps + 1,
            state=step.state,
            observation=step.observation,
            episode_return=walk.episode_return + step.reward,
            episode_steps=walk.episode_steps + 1,
            episodes=walk.episodes,
            noise=noise_state,
        )
        return walk, buffer, step.terminated | step.truncated

    def _end_episode(self, walk: Walk, buffer: Buffer, episodes: EpisodeTable, ended: jax.Array) -> RolloutState:
        """Record the episode, and begin another if it ended; if not, what was recorded is written over later."""
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
