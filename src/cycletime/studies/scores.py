"""The scores of a study's runs: the one reader, for tables, sentences, figures, tuning and advice.

A run that has no score is kept with the reason, so that it is counted wherever its score is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cycletime.duration import Duration
from cycletime.studies.plan import Plan
from cycletime.studies.spec import Cell
from cycletime.studies.study_folder import RunState, StudyFolder
from cycletime.training.spec import RunSpec

RunOutcome: TypeAlias = Literal["scored", "astray", "failed", "unfinished"]
"""Astray: finished without a finite score, since learning diverged or no episode ended."""
MEASURES: Mapping[str, tuple[str, str]] = {
    "average": ("average_return", "mean return over learning"),
    "last-tenth": ("last_tenth_return", "mean return in the last tenth of learning"),
    "episodes": ("mean_over_episodes", "mean return over episodes"),
}
"""By name, a measure's key in result.json, and its label."""
AS_GIVEN = "as given"


@dataclass(frozen=True, eq=False)
class RunScore:
    name: str
    spec: RunSpec
    state: RunState
    score: float | None = None
    result: Mapping[str, Any] = field(default_factory=dict)
    means: NDArray[np.float64] | None = None

    @property
    def outcome(self) -> RunOutcome:
        if self.state == "done":
            return "astray" if self.score is None else "scored"
        return "failed" if self.state == "failed" else "unfinished"


def read_cells(folder: StudyFolder, measure: str = "average") -> Iterator[tuple[Cell, tuple[RunScore, ...]]]:
    plan, known = Plan.of(folder.study), dict[str, RunScore]()
    states = folder.states(planned.name for planned in plan.runs)
    for index, cell in enumerate(plan.cells):
        for seed, name in zip(folder.study.seeds, plan.names[index], strict=True):
            if name in known:  # cells may share runs
                continue
            known[name] = RunScore(name, cell.run(seed), states[name])
            if states[name] == "done":
                result, means = folder.store.result(name), folder.store.means(name)
                score = result[MEASURES[measure][0]]
                score = None if score is None else float(score)
                known[name] = replace(known[name], score=score, result=result, means=means)
        yield cell, tuple(known[name] for name in plan.names[index])


def score_array(runs: Sequence[RunScore], measure: str = "average") -> NDArray[np.float64]:
    """The scores of finished runs by any measure, NaN where there is none."""
    scores = [run.result.get(MEASURES[measure][0]) for run in runs]
    return np.array([nan if score is None else score for score in scores], np.float64)


@dataclass(frozen=True)
class Panel:
    """What belongs into one table: a task, an algorithm, and of hyper-parameters that the study varies one choice."""

    task: str
    algorithm: str
    hyperparameters: Mapping[str, Any]
    rules: tuple[str, ...]
    """In the study's order; others are compared with the first."""
    dts: tuple[Duration, ...]
    cells: Mapping[tuple[str, Duration], tuple[RunScore, ...]]

    @property
    def title(self) -> str:
        num_envs = next(iter(self.cells.values()))[0].spec.num_envs
        settings = {**self.hyperparameters, **({} if num_envs == 1 else {"num_envs": num_envs})}
        return ", ".join(filter(None, (self.task, self.algorithm, settings_text(settings))))

    @property
    def provenance(self) -> str:
        sources = {str(run.result["where"]) for run in self.runs() if "where" in run.result}
        return " and ".join(sorted(sources)) or "no data yet"

    def runs(self) -> Iterator[RunScore]:
        yield from {run.name: run for cell in self.cells.values() for run in cell}.values()

    def scores(self, rule: str, dt: Duration) -> list[float]:
        return list(self.seed_scores(rule, dt).values())

    def seed_scores(self, rule: str, dt: Duration) -> dict[int, float]:
        return {run.spec.seed: run.score for run in self.cells[rule, dt] if run.score is not None}

    def counts(self, place: tuple[str, Duration]) -> Counter[RunOutcome]:
        return Counter(run.outcome for run in self.cells[place])

    def shares_runs(self, rule: str, other: str, dt: Duration) -> bool:
        """Whether two rules agree at a cycle time, so that their cells are the same runs."""
        return {run.name for run in self.cells[rule, dt]} == {run.name for run in self.cells[other, dt]}


@dataclass(frozen=True)
class StudyScores:
    folder: StudyFolder
    measure: str
    panels: tuple[Panel, ...]

    def runs(self) -> list[RunScore]:
        return list({run.name: run for panel in self.panels for run in panel.runs()}.values())

    def counts(self) -> Counter[RunOutcome]:
        return Counter(run.outcome for run in self.runs())


def read_scores(folder: StudyFolder, measure: str = "average") -> StudyScores:
    """The scores of all runs that a study plans, in panels; what is damaged does not count as done."""
    folder = folder.checked()
    panels: dict[tuple[Any, ...], dict[tuple[str, Duration], tuple[RunScore, ...]]] = {}
    for cell, runs in read_cells(folder, measure):
        key = tuple((name, value) for name, value in cell.labels.items() if name not in ("rule", "dt"))
        panels.setdefault(key, {})[str(cell.labels["rule"] or AS_GIVEN), cell.dt] = runs
    found = []
    for ((_, task), (_, algorithm), *others), cells in panels.items():
        rules, dts = tuple(dict.fromkeys(rule for rule, _ in cells)), tuple(sorted({dt for _, dt in cells}))
        found.append(Panel(task, algorithm, dict(others), rules, dts, cells))
    return StudyScores(folder, measure, tuple(found))


def value_text(hyperparameter: object) -> str:
    return f"{hyperparameter:.6g}" if isinstance(hyperparameter, float) else str(hyperparameter)


def settings_text(point: Mapping[str, Any]) -> str:
    """Hyper-parameters with their names: 'batch 2000, discount 0.99'."""
    return ", ".join(f"{name} {value_text(each)}" for name, each in point.items())
