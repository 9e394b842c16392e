"""All results of the search and of the trial, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cycletime.horizons.fields import SEARCH, TRIAL
from cycletime.horizons.freezing import frozen_predictions
from cycletime.horizons.judging import JudgedTrial
from cycletime.horizons.ranking import RuleComparison
from cycletime.horizons.results import comparison_of, outcome_in
from cycletime.paper.outcome import Outcome


@dataclass(frozen=True)
class Evidence:
    """What a folder with results says; an InputError names what is missing in it."""

    results: Path

    @cached_property
    def search(self) -> RuleComparison:
        """The search."""
        return comparison_of(SEARCH, self.results)

    @cached_property
    def trial(self) -> JudgedTrial:
        """The trial."""
        return JudgedTrial(comparison_of(TRIAL, self.results))

    @cached_property
    def tunings(self) -> dict[str, Outcome]:
        """By task of both, the grid of horizons."""
        return {task: outcome_in(self.results, f"tuning-{task}") for task in (*SEARCH.tasks, *TRIAL.tasks)}

    @cached_property
    def predictions(self) -> Mapping[str, Any]:
        """By candidate, what the frozen list predicts of it."""
        return frozen_predictions(self.results)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """All of them."""
        return (*self.tunings.values(), *self.search.outcomes.values(), *self.trial.comparison.outcomes.values())
