"""An agent step of a robot: one cycle when it is over, and the same from what was kept of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cycletime.loops.real_time.episode import EpisodeRecord
from cycletime.loops.stepped_env import StepResult


@dataclass(frozen=True)
class AgentStep:
    """One cycle, when it is over: what the agent saw and did, and what came of it."""

    observation: NDArray[np.float32]
    """[1, |S|]."""
    actions: NDArray[np.float32]
    """[1, |A|], the agent's own."""
    result: StepResult

    @classmethod
    def nothing(cls, observation_size: int, action_size: int) -> AgentStep:
        """One in which nothing happens."""
        none, still = np.zeros((1, observation_size), np.float32), np.zeros(1, np.bool_)
        result = StepResult(none, np.zeros(1), still, still, np.ones(1, np.int64), ~still, none)
        return cls(none, np.zeros((1, action_size), np.float32), result)

    @property
    def ended(self) -> bool:
        """Whether the episode did."""
        return bool(self.result.terminated[0] or self.result.truncated[0])

    def row(self) -> NDArray[np.float32]:
        """Its numbers in the order of `agents.buffer.Transition`."""
        result = self.result
        flags = [*result.reward, *result.successor[0], *result.terminated, *result.truncated]
        return np.array([*self.observation[0], *self.actions[0], *flags], np.float32)


def steps_of(episode: EpisodeRecord, observation_size: int, action_size: int) -> list[AgentStep]:
    """The cycles of an episode that was kept, the same to the bit."""
    s, a = observation_size, action_size

    def step(index: int) -> AgentStep:
        row = episode.rows[index][None]
        successor = row[:, s + a + 1 : 2 * s + a + 1]
        ends = row[:, 2 * s + a + 1 :] != 0
        result = StepResult(
            successor,
            episode.rewards[index : index + 1],
            ends[:, 0],
            ends[:, 1],
            episode.length_steps[index : index + 1],
            np.ones(1, np.bool_),
            successor,
        )
        return AgentStep(row[:, :s], row[:, s : s + a], result)

    return [step(index) for index in range(episode.agent_steps)]
