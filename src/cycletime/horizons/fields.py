"""The studies of the search and of the trial: a grid of horizons, and rules from tuned and untuned values.

Many rules give the same values at many cycle times, and studies that follow one another leave a GPU idle at their ends.
So there is one study for each task, whose points are the values that some rule gives, each once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from statistics import median_low
from typing import Any, Literal

from cycletime.duration import Duration
from cycletime.horizons.subjects import SUBJECTS, Algorithm, Rules, Subject
from cycletime.paper.experiments import FRESH_SEED
from cycletime.paper.outcome import Outcome
from cycletime.paper.winners import winners
from cycletime.rules import PPO, SAC, Rule
from cycletime.studies.spec.study import Study


@dataclass(frozen=True)
class Field:
    """Tasks on which an algorithm's rules are compared."""

    algorithm: Algorithm
    name: Literal["search", "trial"]
    tasks: tuple[str, ...]
    seeds: int
    """Of every point, none of which tuning has seen."""

    @property
    def subject(self) -> Subject:
        """The algorithm."""
        return SUBJECTS[self.algorithm]

    def tuning(self, task: str) -> Study:
        """The grid of horizons on a task, at every cycle time."""
        with as_file(files(__package__) / "studies" / f"{self.tuning_name(task)}.toml") as file:
            return Study.read(file)

    def tuning_name(self, task: str) -> str:
        """What that study is called."""
        return f"{self.subject.prefix}tuning-{task}"

    def study(self, tuning: Outcome, rules: Rules) -> Study:
        """All that rules make of the values that tuning found on a task, and those values themselves."""
        (task,) = {cell.labels["task"] for cell in tuning.cells}
        study, subject = self.tuning(task), self.subject
        points = [start.point(dt, rule) for start in starts(tuning) for rule in rules.values() for dt in study.dts]
        points += retuned(tuning).values()
        once = {subject.place(point): point for point in points}
        return replace(
            study,
            name=self.study_name(task),
            rules={self.algorithm: ()},
            seeds=tuple(range(FRESH_SEED, FRESH_SEED + self.seeds)),
            tuned={},
            points={self.algorithm: tuple(once.values())},
        )

    def study_name(self, task: str) -> str:
        """What that study is called."""
        return f"{self.subject.prefix}{self.name}-{task}"


_CHOSEN_ON = ("reacher", "double-pendulum")
_JUDGED_ON = ("pendulum", "cart-pole", "mountain-car", "acrobot")
SEARCH = Field("ppo", "search", _CHOSEN_ON, seeds=14)
"""What candidates are chosen on, and nothing else is."""
TRIAL = Field("ppo", "trial", _JUDGED_ON, seeds=30)
"""What those that were chosen are judged on, and nothing else is."""
SAC_SEARCH = Field("sac", "search", _CHOSEN_ON, seeds=10)
"""The same of SAC."""
SAC_TRIAL = Field("sac", "trial", _JUDGED_ON, seeds=30)
"""The same of SAC."""
FIELDS: Mapping[str, Mapping[str, Field]] = {
    algorithm: {field.name: field for field in (SEARCH, TRIAL, SAC_SEARCH, SAC_TRIAL) if field.algorithm == algorithm}
    for algorithm in SUBJECTS
}
"""By algorithm, its search and its trial."""


@dataclass(frozen=True)
class Start:
    """Values at a cycle time that rules carry to others."""

    task: str
    tuned: bool
    """Whether horizons were tuned there; else they are those that everybody uses."""
    values: PPO | SAC

    @property
    def subject(self) -> Subject:
        """The algorithm."""
        return SUBJECTS[self.values.algorithm]

    @property
    def kind(self) -> str:
        """In a word."""
        return "tuned" if self.tuned else "untuned"

    def point(self, dt: Duration, rule: str | Rule) -> dict[str, Any]:
        """What a rule makes of the values at a cycle time."""
        return self.subject.point(self.values.at(dt, rule))


def starts(tuning: Outcome) -> tuple[Start, ...]:
    """The starting points on a task, at the shortest, the middle (of four the second) and the longest cycle time.

    They are what tuning found there, and the horizons in steps that everybody uses.
    """
    return tuple(_starts(tuning))


def _starts(tuning: Outcome) -> Iterator[Start]:
    subject, best = _subject_of(tuning), winners(tuning)
    dts = sorted(best)
    for dt in (dts[0], median_low(dts), dts[-1]):
        cell = best[dt].cell
        tuned = subject.tuned(dt, cell.values)
        yield Start(cell.labels["task"], tuned=True, values=tuned)
        yield Start(cell.labels["task"], tuned=False, values=subject.untuned(tuned))


def retuned(tuning: Outcome) -> dict[Duration, dict[str, Any]]:
    """By cycle time, the point that tuning there found best."""
    subject = _subject_of(tuning)
    return {dt: subject.point(subject.tuned(dt, best.cell.values)) for dt, best in winners(tuning).items()}


def _subject_of(tuning: Outcome) -> Subject:
    (algorithm,) = {cell.labels["algorithm"] for cell in tuning.cells}
    return SUBJECTS[algorithm]
