"""The learning curve of a run: one entry for each episode, and the paper's measure of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.loops.episode_bins import BINS, EpisodeBins


@dataclass(frozen=True, eq=False)
class Episodes:
    """Episodes in the order in which they ended."""

    env_steps: NDArray[np.int64]
    """The run's environment steps at the end of each."""
    agent_steps: NDArray[np.int64]
    """The run's agent steps at the end of each."""
    returns: NDArray[np.float64]
    """The undiscounted sum of its rewards."""
    length_steps: NDArray[np.int64]
    """Its environment steps."""

    @classmethod
    def none(cls) -> Episodes:
        """An empty curve."""
        count = np.zeros(0, np.int64)
        return cls(count, count, np.zeros(0), count)

    @classmethod
    def joined(cls, parts: Iterable[Episodes]) -> Episodes:
        """One curve of several that follow each other."""
        parts = [cls.none(), *parts]
        return cls(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)))

    def __len__(self) -> int:
        """How many episodes there are."""
        return len(self.returns)

    def up_to(self, env_steps: int) -> Episodes:
        """Those that ended within so many environment steps."""
        return self.where(self.env_steps <= env_steps)

    def where(self, chosen: NDArray[Any]) -> Episodes:
        """Those chosen by a mask or a slice."""
        return Episodes(*(getattr(self, each.name)[chosen] for each in fields(self)))

    def binned(self, env_steps: int, bins: int = BINS) -> NDArray[np.float64]:
        """The mean return in equal bins of environment steps; an empty bin repeats the last value.

        The mean over the bins is the paper's measure of performance (a plain mean over episodes would give more weight
        to times in which episodes are short). Bins before the first episode's end take the first value there is.
        """
        return EpisodeBins.none(env_steps, bins).plus(self).means()

    @property
    def mean_return(self) -> float:
        """The plain mean over episodes."""
        return float(self.returns.mean())
