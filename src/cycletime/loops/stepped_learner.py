"""The agent's side of a stepped run: act, remember, and learn at the right agent steps."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cycletime.agents import Agent, Buffer
from cycletime.agents.agent import Psi
from cycletime.loops.randomness import seed_key
from cycletime.loops.stepped_calls import Actor, Supply, Told, store, store_and_learn
from cycletime.loops.stepped_env import Copies, Outcome

MOST_ROWS = 256
"""Rows that are gathered before they are stored, at most."""


class Memory(Protocol):
    """Where learning goes on from."""

    @property
    def psi(self) -> Psi:
        """What was learned."""

    @property
    def buffer(self) -> Buffer:
        """What is remembered."""

    @property
    def period(self) -> int:
        """The learning periods done."""

    @property
    def rows(self) -> int:
        """The rows stored."""

    @property
    def period_rows(self) -> int:
        """Those since the last learning period ended."""

    @property
    def agent_steps(self) -> int:
        """The agent steps done: rows times copies, less the gaps."""


class Learner:
    """Psi, the buffer and when to learn."""

    def __init__(self, agent: Agent, seed: int, memory: Memory, copies: Copies) -> None:
        """Go on from a memory, whose buffer is written to in place."""
        self.agent, self.psi = agent, memory.psi
        self.period, self.rows, self.period_rows = int(memory.period), int(memory.rows), int(memory.period_rows)
        self._agent_steps = int(memory.agent_steps)
        self._buffer, self._copies = memory.buffer, copies.copies
        # Whether a copy's next step is its episode's first; going on from a memory begins new episodes.
        self._begins = np.ones(copies.copies, np.bool_)
        self._actor = Actor(agent, self.psi, copies.copies, copies.observation_size, copies.bounds.size)
        self._supply = Supply(agent, seed_key(seed), copies.bounds.size, copies.copies)
        # One row where the agent learns after each, so that its call carries no more than that.
        self._room = min(MOST_ROWS, max(1, agent.period // copies.copies))
        self._gathered: list[NDArray[np.float32]] = []
        self._told: list[Told] = []
        self._told_at: list[int] = []

    def act(self, observation: NDArray[np.float32]) -> NDArray[np.float32]:
        """The agent's own actions, [copies, |A|]."""
        normals = self._supply.noise(self.period, self.period_rows)
        return self._actor.act(self.psi, observation, normals, self.rows * self._copies, self._begins)

    def store(self, observation: NDArray[np.float32], actions: NDArray[np.float32], outcome: Outcome) -> None:
        """Remember a row, its parts in the order of `Transition`."""
        flags = [outcome.terminated, outcome.truncated, *([outcome.real] if self._buffer.has_gaps else [])]
        row = np.concatenate(
            [observation, actions, outcome.reward[:, None], outcome.successor, np.stack(flags, axis=1)],
            axis=1,
            dtype=np.float32,
        )
        self._gathered.append(row)
        self.rows += 1
        self.period_rows += 1
        self._agent_steps += int(np.count_nonzero(outcome.real))
        self._begins = outcome.terminated | outcome.truncated | ~outcome.real

    def learn_if_due(self, *, ended: bool) -> None:
        """Learn at a learning period's end, once there is enough to learn from."""
        steps = self.period_rows * self._copies
        if steps >= self.agent.period and (self.agent.learn_when == "batch" or ended):
            if self.rows * self._copies >= self.agent.learns_from:
                self._learn()
            self.period += self._supply.learnings
            self.period_rows = 0
        if len(self._gathered) == self._room:
            self.flushed()

    def flushed(self) -> Buffer:
        """The buffer with all rows."""
        if self._gathered:
            first_only = self.agent.learn_when == "episode_end"
            self._buffer = store(self._buffer, *self._block(), first_only=first_only)
        return self._buffer

    def taken_metrics(self) -> dict[str, NDArray[Any]]:
        """By name, one number for each learning since the last call, and the agent steps done at each."""
        told, at, self._told, self._told_at = self._told, self._told_at, [], []
        if not told:
            return {}
        numbers = np.concatenate([np.asarray(each.numbers) for each in told])
        metrics = {name: numbers[:, column] for column, name in enumerate(told[0].names)}
        return {**metrics, "agent_steps": np.repeat(np.array(at, np.int64), self._supply.learnings)}

    def _learn(self) -> None:
        draws, index = self._supply.draws(self.period)
        self.psi, self._buffer, told = store_and_learn(
            self.agent, self.psi, self._buffer, *self._block(), draws, index, learnings=self._supply.learnings
        )
        self._told.append(told)
        self._told_at.append(self._agent_steps)

    def _block(self) -> tuple[NDArray[np.float32], np.int32]:
        """What was gathered, in an array of always the same shape that nothing writes to afterwards."""
        width = self._buffer.rows.shape[2]
        block = np.zeros((self._room, self._copies, width), np.float32)
        count = len(self._gathered)
        if count:
            block[:count] = self._gathered
        self._gathered = []
        return block, np.int32(count)
