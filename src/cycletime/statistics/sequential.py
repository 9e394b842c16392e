"""Which of several candidates is the best, by looks at more and more runs: the others are dropped as soon as they can.

At look l = 1, 2, ... every candidate that is left has n_l = ceil(n_1 g^(l-1)) runs with the same seeds, and all pairs
of candidates are compared by the t of their differences, seed by seed. Of the error rate alpha = 1 - confidence, look l
may spend the share 1 / (l (l + 1)), and each of the K (K - 1) / 2 pairs of the K candidates at the start the same part
of that:

    alpha_l = alpha / (l (l + 1)) / (K (K - 1) / 2),    and the sum over all pairs and looks is alpha.

By the union bound all intervals of all looks, however many, cover their true differences together with the confidence
that was asked for. So whoever looks may stop at any look, for whatever reason, and go on later: the probability that
any candidate is ever dropped for one that is not truly better is at most alpha. How far that holds for scores that are
not normal is measured, and stands in docs/advise.md.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from math import ceil, comb
from typing import Generic, TypeVar

from cycletime.errors import InputError
from cycletime.statistics.comparisons import Comparison, compare
from cycletime.statistics.means import percent

Label = TypeVar("Label", bound=Hashable)

FIRST_RUNS = 5
"""Of each candidate at the first look."""
GROWTH = 1.5
"""From one look to the next: so many more runs in all are at most half more than would have been enough."""


@dataclass(frozen=True)
class SequentialDesign:
    candidates: int
    confidence: float = 0.95
    """Of all comparisons at all looks together."""
    first_runs: int = FIRST_RUNS

    def __post_init__(self) -> None:
        percent(self.confidence)
        if self.candidates < 2:
            raise InputError(f"There is {self.candidates} candidate: there must be two at least to compare.")
        if self.first_runs < 2:
            raise InputError(f"A first look at {self.first_runs} run of each shows no spread: give at least 2.")

    def runs(self, look: int) -> int:
        """Of each candidate that is left, at a look from 1 on."""
        return ceil(round(self.first_runs * GROWTH ** (look - 1), 9))

    def comparisons(self, look: int) -> int:
        """As how many comparisons each of this look's counts."""
        return look * (look + 1) * comb(self.candidates, 2)

    def confidence_of_one(self, look: int) -> float:
        return 1 - (1 - self.confidence) / self.comparisons(look)

    def compare(self, look: int, x: Sequence[float], y: Sequence[float]) -> Comparison:
        """Two candidates at a look, by their scores in the order of the seeds, which are the same for all."""
        return compare(dict(enumerate(x)), dict(enumerate(y)), confidence=self.confidence_of_one(look))


@dataclass(frozen=True)
class Judgement(Generic[Label]):
    look: int
    scores: Mapping[Label, Sequence[float]]
    """Of the candidates that were left before it, in the order of seeds."""
    pairs: Mapping[tuple[Label, Label], Comparison]
    """The first of a pair against the second, in both orders."""

    @classmethod
    def of(cls, looks: SequentialDesign, look: int, scores: Mapping[Label, Sequence[float]]) -> Judgement[Label]:
        pairs = {(x, y): looks.compare(look, scores[x], scores[y]) for x, y in permutations(scores, 2)}
        return cls(look, scores, pairs)

    @cached_property
    def dropped(self) -> dict[Label, Label]:
        """Candidates that are worse than another, by the one that is better than they are by the most."""
        found: dict[Label, tuple[float, Label]] = {}
        for (x, y), each in self.pairs.items():
            if each.verdict == "worse" and (x not in found or -each.difference.value > found[x][0]):
                found[x] = -each.difference.value, y
        return {label: found[label][1] for label in self.scores if label in found}

    @property
    def left(self) -> tuple[Label, ...]:
        return tuple(label for label in self.scores if label not in self.dropped)

    @property
    def leader(self) -> Label:
        return max(self.left, key=lambda label: sum(self.scores[label]) / len(self.scores[label]))

    def lead(self, other: Label) -> Comparison:
        return self.pairs[self.leader, other]

    def is_decided(self, enough: float = 0.0) -> bool:
        """Whether no other can be better than the leader by more than a difference that does not matter."""
        leads = [self.lead(label).difference for label in self.left if label != self.leader]
        return all(enough > 0 and lead.low is not None and -lead.low <= enough for lead in leads)
