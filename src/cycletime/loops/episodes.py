"""The learning curve of a run, by episode or in equal bins of environment steps, and the paper's measure of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.errors import InputError

BINS = 100
"""Performance is the mean over so many bins, as in the paper."""


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

    def ended_by(self, env_steps: int) -> Episodes:
        """All of them, with their returns; one that ended later counts as if it had ended there."""
        beyond = np.maximum(0, self.env_steps - env_steps)
        return replace(self, env_steps=self.env_steps - beyond, length_steps=self.length_steps - beyond)

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


@dataclass(frozen=True, eq=False)
class EpisodeBins:
    """What is kept of the episodes that ended in each bin: as much as the paper's measure needs."""

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
                f"The curve is kept in {kept} bins of {self.budget} environment steps, not in {bins} of "
                f"{env_steps}: ask for {kept} bins, or a number that divides it."
            )
        if kept == bins:
            return self.means()
        counts, sums = (numbers.reshape(bins, -1).sum(axis=1) for numbers in (self.counts, self.sums))
        return replace(self, counts=counts, sums=sums).means()
