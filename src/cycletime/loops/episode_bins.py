"""A learning curve in equal bins of environment steps: as much of it as the paper's measure needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cycletime.errors import InputError

if TYPE_CHECKING:
    from cycletime.loops.episodes import Episodes

BINS = 100
"""Performance is the mean over so many bins, as in the paper."""


@dataclass(frozen=True, eq=False)
class EpisodeBins:
    """What is kept of the episodes that ended in each bin."""

    budget: int
    """The environment steps of the whole run, which the bins divide."""
    counts: NDArray[np.int64]
    """[bins] how many episodes ended."""
    sums: NDArray[np.float64]
    """[bins] the sum of their returns."""
    env_steps: NDArray[np.int64]
    """[bins] the run's environment steps at the end of the last of them; 0 where none ended."""
    agent_steps: NDArray[np.int64]
    """[bins] the run's agent steps there."""

    @classmethod
    def none(cls, budget: int, bins: int = BINS) -> EpisodeBins:
        """Bins in which nothing ended."""
        count = np.zeros(bins, np.int64)
        return cls(budget, count, np.zeros(bins), count, count)

    def __len__(self) -> int:
        """How many episodes there are."""
        return int(self.counts.sum())

    def plus(self, episodes: Episodes) -> EpisodeBins:
        """With the episodes that ended next; the sums are the same bits, however the episodes are cut into parts."""
        bins = len(self.counts)
        index = self.index_of(episodes.env_steps)
        before = np.concatenate([np.arange(bins), index])
        env_steps, agent_steps = self.env_steps.copy(), self.agent_steps.copy()
        env_steps[index], agent_steps[index] = episodes.env_steps, episodes.agent_steps  # the last of a bin stays
        counts = self.counts + np.bincount(index, minlength=bins)
        sums: NDArray[Any] = np.bincount(before, np.concatenate([self.sums, episodes.returns]), bins)
        return EpisodeBins(self.budget, counts, sums, env_steps, agent_steps)

    def index_of(self, env_steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """The bins of episodes that end at some environment steps."""
        bins = len(self.counts)
        # An episode that ends exactly at an edge is in the bin before it, so that the last step has a bin.
        return np.clip(np.ceil(env_steps * bins / self.budget).astype(np.int64) - 1, 0, bins - 1)

    def means(self) -> NDArray[np.float64]:
        """The mean return in each bin; an empty one repeats the last value, and takes the first there is before it."""
        bins = np.arange(len(self.counts))
        if not len(self):
            return np.full(len(bins), np.nan)
        filled = np.maximum.accumulate(np.where(self.counts > 0, bins, -1))
        filled = np.where(filled < 0, np.flatnonzero(self.counts)[0], filled)
        means: NDArray[np.float64] = self.sums[filled] / self.counts[filled]
        return means

    @property
    def mean_return(self) -> float:
        """The plain mean over episodes."""
        return float(self.sums.sum() / self.counts.sum())

    def binned(self, env_steps: int, bins: int = BINS) -> NDArray[np.float64]:
        """The mean return in as many bins, or in fewer that these can be put together to.

        Raises:
            InputError: if that is more than was kept.
        """
        kept = len(self.counts)
        if env_steps != self.budget or bins < 1 or kept % bins:
            raise InputError(
                f"The curve is kept in {kept} bins of {self.budget} environment steps, and cannot be told in {bins} of "
                f"{env_steps}: ask for {kept} bins, or a number that divides it."
            )
        counts, sums = (numbers.reshape(bins, -1).sum(axis=1) for numbers in (self.counts, self.sums))
        return replace(self, counts=counts, sums=sums).means()
