"""All results of an algorithm's search and trial, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cycletime.horizons.fields import FIELDS, Field
from cycletime.horizons.freezing import frozen_predictions
from cycletime.horizons.judging import JudgedTrial
from cycletime.horizons.ranking import RuleComparison
from cycletime.horizons.results import comparison_of, outcome_in
from cycletime.horizons.subjects import SUBJECTS, Algorithm, Subject
from cycletime.paper.outcome import Outcome


@dataclass(frozen=True)
class Evidence:
    """What a folder with results says; a NoResultsError names what is missing in it."""

    results: Path
    algorithm: Algorithm = "ppo"

    @property
    def subject(self) -> Subject:
        """The algorithm."""
        return SUBJECTS[self.algorithm]

    @property
    def fields(self) -> tuple[Field, ...]:
        """Its search and its trial."""
        return tuple(FIELDS[self.algorithm].values())

    @cached_property
    def search(self) -> RuleComparison:
        """The search."""
        return comparison_of(FIELDS[self.algorithm]["search"], self.results)

    @cached_property
    def trial(self) -> JudgedTrial:
        """The trial."""
        return JudgedTrial(comparison_of(FIELDS[self.algorithm]["trial"], self.results))

    @cached_property
    def tunings(self) -> dict[str, Outcome]:
        """By task of both, the grid of horizons."""
        return {
            task: outcome_in(self.results, field.tuning_name(task)) for field in self.fields for task in field.tasks
        }

    @cached_property
    def predictions(self) -> Mapping[str, Any]:
        """By candidate, what the frozen list predicts of it."""
        return frozen_predictions(self.results, self.subject)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """All of them."""
        return (*self.tunings.values(), *self.search.outcomes.values(), *self.trial.comparison.outcomes.values())


def every_evidence(results: Path) -> tuple[Evidence, ...]:
    """Of each algorithm, what a folder with results says."""
    return tuple(Evidence(results, subject.algorithm) for subject in SUBJECTS.values())
