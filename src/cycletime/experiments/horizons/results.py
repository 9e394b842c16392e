"""The results of the search and the trial: the studies of each stage, what is kept of them, and the comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from cycletime.errors import InputError
from cycletime.experiments.collection import outcome_of
from cycletime.experiments.horizons.candidates import (
    ALGORITHM_SPECS,
    TASK_SETS,
    Algorithm,
    AlgorithmSpec,
    Rules,
    TaskSet,
    retuned_points,
    starting_points,
)
from cycletime.experiments.horizons.preregistration import preregistered_predictions, preregistered_rules
from cycletime.experiments.horizons.ranking import RuleComparison, ScoreScale
from cycletime.experiments.horizons.verdicts import JudgedTrial
from cycletime.experiments.outcome import Outcome, require_file
from cycletime.experiments.results import refuse_smaller_results
from cycletime.studies.spec import StudySpec
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.atomic_files import disk_errors
from cycletime.training.worlds import ClosedFormWorld

DO_NOTHING_EPISODES = 1000
_SEED = 0
_DIGITS = 6
"""Of the level that are kept: machines differ in the last ones."""


def do_nothing_return(world: ClosedFormWorld, episodes: int = DO_NOTHING_EPISODES) -> float:
    """The mean return of episodes in which the action is zero, weighted by their length as the paper's measure is.

    An action that is held does not depend on the cycle time, and nor does this.
    """
    task = world.task

    def held(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        whole = task.cycle(task.reset(key), jnp.zeros(task.action_size), task.limit_steps)
        return whole.reward, whole.state.env_steps

    returns, steps = jax.jit(jax.vmap(held))(jax.random.split(jax.random.key(_SEED), episodes))
    mean = float(np.average(np.asarray(returns, np.float64), weights=np.asarray(steps, np.float64)))
    return float(f"{mean:.{_DIGITS}g}")


BINS = 10
"""Of the curves that are kept."""
Stage: TypeAlias = Literal["tuning", "search", "trial-tuning", "trial"]
STAGES: Mapping[Stage, str] = {"tuning": "search", "search": "search", "trial-tuning": "trial", "trial": "trial"}
"""In their order, whether each belongs to the search or to the trial."""


@dataclass(frozen=True)
class _KnownStudy:
    """A study that can be asked for."""

    field: TaskSet
    stage: Stage
    task: str

    @property
    def command(self) -> str:
        """What makes the pack that runs it."""
        return f"cycletime experiment pack horizons {self.field.subject.prefix}{self.stage}"


def _stage_of(algorithm: str, stage: Stage) -> dict[str, _KnownStudy]:
    field = TASK_SETS[algorithm][STAGES[stage]]
    name_of = field.study_name if stage == field.name else field.tuning_name
    return {name_of(task): _KnownStudy(field, stage, task) for task in field.tasks}


_KNOWN_STUDIES = {
    name: each
    for algorithm in ALGORITHM_SPECS
    for stage in STAGES
    for name, each in _stage_of(algorithm, stage).items()
}
"""By name, all studies."""


def stage_studies(stage: Stage, results: Path, algorithm: Algorithm = "ppo") -> list[StudySpec]:
    """The studies of a stage, one for each task; those that compare rules follow from what tuning found."""
    field = TASK_SETS[algorithm][STAGES[stage]]
    rules = _compared_rules(field, results)
    if stage != field.name:
        return [field.tuning(task) for task in field.tasks]
    return [field.study(load_outcome(results, field.tuning_name(task)), rules) for task in field.tasks]


def collect_stages(out: Path, results: Path) -> list[Path]:
    """Keep what came of the studies in a folder, of which all runs must be done; the files."""
    there = [name for name in _KNOWN_STUDIES if (out / name / "study.json").exists()]
    if not there:
        raise InputError(
            f"{out} has no study of a search or a trial, such as {next(iter(_KNOWN_STUDIES))}: "
            "'cycletime experiment pack horizons' makes what runs them."
        )
    kept = {results / f"{name}.npz": _collect_study(StudyFolder.open(out / name)) for name in there}
    for path, outcome in kept.items():
        refuse_smaller_results(outcome, path)
    with disk_errors(results):
        results.mkdir(parents=True, exist_ok=True)
    for path, outcome in kept.items():
        outcome.save(path)
    return list(kept)


def _collect_study(folder: StudyFolder) -> Outcome:
    (world,) = folder.study.worlds
    assert isinstance(world, ClosedFormWorld), "packs have no others"
    known = _KNOWN_STUDIES[folder.study.name]
    about = {
        "scale": folder.study.env_steps / known.field.tuning(known.task).env_steps,
        "command": known.command,
        "nothing": do_nothing_return(world),
    }
    return outcome_of(folder, about, bins=BINS)


def load_comparison(field: TaskSet, results: Path) -> RuleComparison:
    """The rules of a search or of a trial, compared."""
    tunings = {task: load_outcome(results, field.tuning_name(task)) for task in field.tasks}
    outcomes = {task: load_outcome(results, field.study_name(task)) for task in field.tasks}
    scales = {
        task: ScoreScale(float(outcomes[task].about["nothing"]), retuned_points(tunings[task])) for task in field.tasks
    }
    begun = [start for task in field.tasks for start in starting_points(tunings[task])]
    return RuleComparison(_compared_rules(field, results), begun, outcomes, scales)


def _compared_rules(field: TaskSet, results: Path) -> Rules:
    """What is compared: all candidates, or for the trial those of the frozen list."""
    subject = field.subject
    return (
        subject.rules if field.name == "search" else subject.against_references(preregistered_rules(results, subject))
    )


def load_outcome(results: Path, study: str) -> Outcome:
    """What came of a study."""
    command = _KNOWN_STUDIES[study].command
    makes = f"'{command}' makes what runs it, and 'experiment collect horizons' keeps what comes of it."
    return Outcome.load(require_file(results / f"{study}.npz", makes))


@dataclass(frozen=True)
class Evidence:
    """What a folder with results says; a NoResultsError names what is missing in it."""

    results: Path
    algorithm: Algorithm = "ppo"

    @property
    def subject(self) -> AlgorithmSpec:
        return ALGORITHM_SPECS[self.algorithm]

    @property
    def fields(self) -> tuple[TaskSet, ...]:
        """Its search and its trial."""
        return tuple(TASK_SETS[self.algorithm].values())

    @cached_property
    def search(self) -> RuleComparison:
        return load_comparison(TASK_SETS[self.algorithm]["search"], self.results)

    @cached_property
    def trial(self) -> JudgedTrial:
        return JudgedTrial(load_comparison(TASK_SETS[self.algorithm]["trial"], self.results))

    @cached_property
    def tunings(self) -> dict[str, Outcome]:
        """By task of both, the grid of horizons."""
        return {
            task: load_outcome(self.results, field.tuning_name(task)) for field in self.fields for task in field.tasks
        }

    @cached_property
    def predictions(self) -> Mapping[str, Any]:
        """By candidate, what the frozen list predicts of it."""
        return preregistered_predictions(self.results, self.subject)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """All of them."""
        return (*self.tunings.values(), *self.search.outcomes.values(), *self.trial.comparison.outcomes.values())


def all_evidence(results: Path) -> tuple[Evidence, ...]:
    """Of each algorithm, what a folder with results says."""
    return tuple(Evidence(results, subject.algorithm) for subject in ALGORITHM_SPECS.values())
