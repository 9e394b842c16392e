"""The runs of candidates in a study's folder: which are missing, and what the others scored.

While a look is run, the folder's study has the candidates that are left and the seeds so far, so that workers train
nothing else. Then it has all candidates again, also those that were dropped and so have fewer seeds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from cycletime.duration import Duration
from cycletime.studies.advising.question import Question
from cycletime.studies.advising.spending import Run
from cycletime.studies.plan.plan import Plan
from cycletime.studies.store.folder import StudyFolder


@dataclass(frozen=True)
class CandidateRuns:
    """Runs of candidates, kept in a folder."""

    path: Path
    question: Question

    @property
    def begun(self) -> bool:
        """Whether there are any."""
        return (self.path / "study.json").exists()

    def note(self, dts: Iterable[Duration], seeds: int) -> StudyFolder:
        """Let the folder's study have some candidates with so many seeds."""
        return StudyFolder.create(self.path, self.question.study(dts, seeds))

    def missing(self, dts: Iterable[Duration], seeds: int) -> set[Run]:
        """Those of a look that are neither done nor given up."""
        dts = tuple(dts)
        if not self.begun:
            return {(dt, seed) for dt in dts for seed in range(seeds)}
        names = {name: run for run, name in self._names(dts, seeds).items()}
        states = StudyFolder.open(self.path).states(names)
        return {names[name] for name, state in states.items() if state not in ("done", "failed")}

    def scores(self, dts: Iterable[Duration], seeds: int) -> dict[Duration, tuple[float | None, ...]]:
        """By candidate and in the order of seeds; None where a run has no score."""
        store = StudyFolder.open(self.path).checked().store
        found: dict[Duration, list[float | None]] = {}
        for (dt, _), name in self._names(tuple(dts), seeds).items():
            score = store.result(name)[self.question.measure] if name in store else None
            found.setdefault(dt, []).append(score)
        return {dt: tuple(scores) for dt, scores in found.items()}

    def done(self) -> int:
        """All runs that are finished."""
        return len(StudyFolder.open(self.path).store.refresh()) if self.begun else 0

    def _names(self, dts: tuple[Duration, ...], seeds: int) -> dict[Run, str]:
        begun = StudyFolder.open(self.path).study
        study = self.question.study(dts, seeds).resolved(begun)
        plan = Plan.of(replace(study, width=begun.width))
        return {
            (plan.cells[index].dt, seed): name
            for index, names in plan.names.items()
            for seed, name in zip(study.seeds, names, strict=True)
        }
