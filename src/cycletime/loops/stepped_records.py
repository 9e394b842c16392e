"""What a stepped run counts: steps, episodes, and whether its numbers are still numbers."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cycletime.errors import InputError
from cycletime.loops.episodes import Episodes
from cycletime.loops.stepped_env import Outcome

_GREATEST = float(np.finfo(np.float32).max)


class Counts(Protocol):
    """Where counting goes on from."""

    @property
    def env_steps(self) -> int:
        """Environment steps done."""

    @property
    def agent_steps(self) -> int:
        """Agent steps done."""

    @property
    def episodes(self) -> int:
        """The episodes that ended."""


class Records:
    """The counters of Algorithm 1 and the learning curve."""

    def __init__(self, copies: int, counts: Counts) -> None:
        """Go on from counts, with new episodes in all copies."""
        self.env_steps, self.agent_steps, self.episodes = (
            int(counts.env_steps),
            int(counts.agent_steps),
            int(counts.episodes),
        )
        self._returns = np.zeros(copies)
        self._lengths = np.zeros(copies, np.int64)
        self._steps = np.zeros(copies, np.int64)
        self._ended: list[tuple[int, int, float, int]] = []

    def count(self, outcome: Outcome) -> None:
        """Count a row; a copy that only began anew adds nothing."""
        self.env_steps += int(outcome.env_steps.sum())
        self.agent_steps += int(outcome.real.sum())
        self._returns += outcome.reward * outcome.real
        self._lengths += outcome.env_steps
        self._steps += outcome.real
        for copy in np.flatnonzero(outcome.terminated | outcome.truncated):
            self._ended.append((self.env_steps, self.agent_steps, float(self._returns[copy]), int(self._lengths[copy])))
            self._returns[copy] = self._lengths[copy] = self._steps[copy] = 0
            self.episodes += 1

    @property
    def current_steps(self) -> int:
        """The environment steps of the current episode, of the longest among the copies."""
        return int(self._lengths.max())

    def taken(self) -> Episodes:
        """The episodes that ended since the last call."""
        ended, self._ended = self._ended, []
        if not ended:
            return Episodes.none()
        env_steps, agent_steps, returns, lengths = zip(*ended, strict=True)
        return Episodes(
            np.array(env_steps, np.int64),
            np.array(agent_steps, np.int64),
            np.array(returns, np.float64),
            np.array(lengths, np.int64),
        )

    def check(self, **rows: NDArray[Any]) -> None:
        """Refuse what is not finite in float32, before it becomes part of the weights."""
        for name, row in rows.items():
            if not (np.abs(row) <= _GREATEST).all():
                self._refuse(name, row)

    def _refuse(self, name: str, row: NDArray[Any]) -> None:
        copy = int(np.flatnonzero(~(np.abs(row.reshape(len(row), -1)) <= _GREATEST).all(axis=1))[0])
        where = f"at agent step {self._steps[copy] + 1} of its episode"
        if len(row) == 1:
            where = f"at agent step {self._steps[0] + 1} of episode {self.episodes + 1}"
        who = f" of copy {copy}" if len(row) > 1 else ""
        remedy = (
            "learning went astray, so try a smaller learning rate"
            if name == "action"
            else "the environment must give finite numbers that fit float32"
        )
        raise InputError(f"The {name}{who} is {row[copy].tolist()} {where}: {remedy}.")
