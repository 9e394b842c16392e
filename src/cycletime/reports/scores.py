"""The scores of a study's runs, read once: what every table, sentence and figure begins with.

A run that has no score is kept with the reason, so that it is counted wherever its score is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal, TypeAlias

from cycletime.duration import Duration
from cycletime.errors import RunError
from cycletime.reports.words import hyperparameters
from cycletime.runs.folder import RunFolder
from cycletime.studies.folder import StudyFolder
from cycletime.studies.plan import Plan
from cycletime.studies.spec import Cell

Outcome: TypeAlias = Literal["scored", "astray", "damaged", "failed", "unfinished"]
"""Astray: finished without a finite score. Damaged: its result cannot be read. Failed: given up. Else not done yet."""
MEASURES: Mapping[str, tuple[str, str]] = {
    "average": ("average_return", "mean return over learning"),
    "last-tenth": ("last_tenth_return", "mean return in the last tenth of learning"),
    "episodes": ("mean_over_episodes", "mean return over episodes"),
}
"""By name, a measure's key in result.json, and what it is called."""
AS_GIVEN = "as given"
"""What stands for a rule where values are not carried."""
_FIXED = ("task", "algorithm", "rule", "dt")


@dataclass(frozen=True)
class RunScore:
    """A run and what came of it."""

    folder: RunFolder
    outcome: Outcome
    score: float | None = None
    """Of a run that is scored."""
    result: Mapping[str, Any] = field(default_factory=dict)
    """What its result says, empty without one."""

    @property
    def name(self) -> str:
        """The run's."""
        return self.folder.path.name


@dataclass(frozen=True)
class Panel:
    """What belongs into one table: a task, an algorithm, and of hyper-parameters that the study varies one choice."""

    task: str
    algorithm: str
    hyperparameters: Mapping[str, Any]
    rules: tuple[str, ...]
    """In the study's order; the first is what others are compared with."""
    dts: tuple[Duration, ...]
    """The shortest first."""
    cells: Mapping[tuple[str, Duration], tuple[RunScore, ...]]
    """By rule and cycle time, a run for each seed."""

    @property
    def title(self) -> str:
        """What it is about."""
        return ", ".join(filter(None, (self.task, self.algorithm, hyperparameters(self.hyperparameters))))

    @property
    def where(self) -> str:
        """Where its data come from, such as 'closed form'."""
        told = {str(run.result["where"]) for run in self.runs() if "where" in run.result}
        return " and ".join(sorted(told)) or "no data yet"

    def runs(self) -> Iterator[RunScore]:
        """Its runs, each once though several cells may share it."""
        yield from {run.name: run for cell in self.cells.values() for run in cell}.values()

    def scores(self, rule: str, dt: Duration) -> list[float]:
        """The finite scores of a cell."""
        return [run.score for run in self.cells[rule, dt] if run.score is not None]

    def counts(self, place: tuple[str, Duration]) -> Counter[Outcome]:
        """How many runs of a cell came to what."""
        return Counter(run.outcome for run in self.cells[place])

    def shares_runs(self, rule: str, other: str, dt: Duration) -> bool:
        """Whether two rules agree at a cycle time, so that their cells are the same runs."""
        return {run.name for run in self.cells[rule, dt]} == {run.name for run in self.cells[other, dt]}


@dataclass(frozen=True)
class StudyScores:
    """All runs of a study with their scores."""

    folder: StudyFolder
    measure: str
    """A name of `MEASURES`."""
    panels: tuple[Panel, ...]

    def runs(self) -> list[RunScore]:
        """All runs, each once."""
        return list({run.name: run for panel in self.panels for run in panel.runs()}.values())

    def counts(self) -> Counter[Outcome]:
        """How many runs came to what."""
        return Counter(run.outcome for run in self.runs())


def load_scores(folder: StudyFolder, measure: str = "average") -> StudyScores:
    """Read the results of all runs that a study plans."""
    plan, known = Plan.of(folder.study), dict[str, RunScore]()
    cells: dict[tuple[Any, ...], dict[tuple[str, Duration], tuple[RunScore, ...]]] = {}
    labels: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for index, cell in enumerate(plan.cells):
        key = tuple(value for name, value in cell.labels.items() if name not in ("rule", "dt"))
        labels[key] = cell.labels
        place = (str(cell.labels["rule"] or AS_GIVEN), cell.dt)
        cells.setdefault(key, {})[place] = _runs(folder, cell, plan.names[index], measure, known)
    return StudyScores(folder, measure, tuple(_panel(labels[key], cells[key]) for key in cells))


def _panel(labels: Mapping[str, Any], cells: Mapping[tuple[str, Duration], tuple[RunScore, ...]]) -> Panel:
    return Panel(
        task=labels["task"],
        algorithm=labels["algorithm"],
        hyperparameters={name: value for name, value in labels.items() if name not in _FIXED},
        rules=tuple(dict.fromkeys(rule for rule, _ in cells)),
        dts=tuple(sorted({dt for _, dt in cells})),
        cells=cells,
    )


def _runs(
    folder: StudyFolder, cell: Cell, names: Sequence[str], measure: str, known: dict[str, RunScore]
) -> tuple[RunScore, ...]:
    for seed, name in zip(folder.study.seeds, names, strict=True):
        if name not in known:
            known[name] = _score(folder, RunFolder(folder.runs / name, cell.run(seed)), measure)
    return tuple(known[name] for name in names)


def _score(folder: StudyFolder, run: RunFolder, measure: str) -> RunScore:
    if not run.is_finished:
        return RunScore(run, "failed" if folder.state_of(run.path.name) == "failed" else "unfinished")
    try:
        result = run.result()
        score = result[MEASURES[measure][0]]
        finite = score is not None and isfinite(score)
    except (RunError, KeyError, TypeError):
        return RunScore(run, "damaged")
    return RunScore(run, "scored" if finite else "astray", float(score) if finite else None, result)
