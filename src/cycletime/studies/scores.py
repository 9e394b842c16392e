"""The scores of a study's runs, read once: what every table, sentence, figure, tuning and advice begins with.

A run that has no score is kept with the reason, so that it is counted wherever its score is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cycletime.duration import Duration
from cycletime.reports.formatting import settings_text
from cycletime.studies.plan import Plan
from cycletime.studies.spec import Cell
from cycletime.studies.study_folder import RunState, StudyFolder
from cycletime.training.run_store import Store
from cycletime.training.spec import RunSpec

RunOutcome: TypeAlias = Literal["scored", "astray", "failed", "unfinished"]
"""Astray: finished without a finite score. Failed: given up. Else not done yet."""
MEASURES: Mapping[str, tuple[str, str]] = {
    "average": ("average_return", "mean return over learning"),
    "last-tenth": ("last_tenth_return", "mean return in the last tenth of learning"),
    "episodes": ("mean_over_episodes", "mean return over episodes"),
}
"""By name, a measure's key in result.json, and what it is called."""
AS_GIVEN = "as given"
"""What stands for a rule where values are not carried."""
_FIXED = ("task", "algorithm", "rule", "dt")


@dataclass(frozen=True, eq=False)
class RunScore:
    """A run and what came of it."""

    name: str
    spec: RunSpec
    outcome: RunOutcome
    score: float | None = None
    """Of a run that is scored."""
    result: Mapping[str, Any] = field(default_factory=dict)
    """What its result says, empty without one."""

    means: NDArray[np.float64] | None = None
    """Its mean returns in bins, where it is scored."""


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
        return ", ".join(filter(None, (self.task, self.algorithm, settings_text(self.hyperparameters))))

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

    def counts(self, place: tuple[str, Duration]) -> Counter[RunOutcome]:
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

    def counts(self) -> Counter[RunOutcome]:
        """How many runs came to what."""
        return Counter(run.outcome for run in self.runs())


def read_scores(folder: StudyFolder, measure: str = "average") -> StudyScores:
    """Read the results of all runs that a study plans."""
    plan, known, folder = Plan.of(folder.study), dict[str, RunScore](), folder.checked()
    states = folder.states(planned.name for planned in plan.runs)
    cells: dict[tuple[Any, ...], dict[tuple[str, Duration], tuple[RunScore, ...]]] = {}
    labels: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for index, cell in enumerate(plan.cells):
        key = tuple(value for name, value in cell.labels.items() if name not in ("rule", "dt"))
        labels[key] = cell.labels
        place = (str(cell.labels["rule"] or AS_GIVEN), cell.dt)
        cells.setdefault(key, {})[place] = _runs(folder, cell, plan.names[index], measure, states, known)
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
    folder: StudyFolder,
    cell: Cell,
    names: Sequence[str],
    measure: str,
    states: Mapping[str, RunState],
    known: dict[str, RunScore],
) -> tuple[RunScore, ...]:
    for seed, name in zip(folder.study.seeds, names, strict=True):
        if name not in known:
            known[name] = _run_score(folder.store, cell.run(seed), name, measure, states[name])
    return tuple(known[name] for name in names)


def _run_score(store: Store, spec: RunSpec, name: str, measure: str, state: RunState) -> RunScore:
    if state != "done":
        return RunScore(name, spec, "failed" if state == "failed" else "unfinished")
    result = store.result(name)
    score = result[MEASURES[measure][0]]
    if score is None:
        return RunScore(name, spec, "astray", None, result)
    return RunScore(name, spec, "scored", float(score), result, store.means(name))
