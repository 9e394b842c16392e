"""The results of the search and the trial: the studies of each stage, what is kept of them, and the comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from cycletime.experiments.horizons import sac_arms
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
from cycletime.experiments.investigation import Experiment, StudyInputs
from cycletime.experiments.outcome import NotRunError, Outcome, Results, read_outcomes
from cycletime.studies.spec import StudySpec
from cycletime.training.worlds import ClosedFormWorld

if TYPE_CHECKING:
    import jax

CURVE_BINS = 10
Stage: TypeAlias = Literal["tuning", "search", "trial-tuning", "trial"]
STAGES: Mapping[Stage, str] = {"tuning": "search", "search": "search", "trial-tuning": "trial", "trial": "trial"}
"""In their order, whether each belongs to the search or to the trial."""
_ABOUT: Mapping[Stage, str] = {
    "tuning": "horizons tuned at each cycle time",
    "search": "all candidates from tuned and untuned values",
    "trial-tuning": "horizons tuned on the trial's tasks",
    "trial": "the preregistered candidates on other tasks",
}
DO_NOTHING_EPISODES = 1000
_SEED = 0
_DIGITS = 6
"""Of the level that are kept: machines differ in the last ones."""


@dataclass(frozen=True)
class StageStudy:
    """A study of a stage, on one task."""

    task_set: TaskSet
    stage: Stage
    task: str

    @property
    def name(self) -> str:
        return (self.task_set.tuning_name if self.is_tuning else self.task_set.study_name)(self.task)

    @property
    def is_tuning(self) -> bool:
        return self.stage != self.task_set.name

    @property
    def experiment(self) -> str:
        return f"{self.task_set.spec.prefix}{self.stage}"

    @property
    def command(self) -> str:
        return f"cycletime experiment pack horizons {self.experiment}"


STUDIES = {
    study.name: study
    for algorithm in ALGORITHM_SPECS
    for stage, of in STAGES.items()
    for task in TASK_SETS[algorithm][of].tasks
    for study in [StageStudy(TASK_SETS[algorithm][of], stage, task)]
}
EXPERIMENTS = {
    name: Experiment(name, _ABOUT[studies[0].stage], "docs/horizons.md", tuple(each.name for each in studies))
    for name in dict.fromkeys(each.experiment for each in STUDIES.values())
    for studies in [[each for each in STUDIES.values() if each.experiment == name]]
} | {sac_arms.NAME: sac_arms.EXPERIMENT}


def stage_study(name: str, given: StudyInputs) -> StudySpec:
    """A study by name; one that compares rules follows from what tuning found, and the trial from the search."""
    if name == sac_arms.NAME:
        return given.size.of(sac_arms.preregistered_study(given.results))
    known = STUDIES[name]
    rules = _compared_rules(known.task_set, given.results)
    if known.is_tuning:
        return given.size.of(known.task_set.tuning(known.task))
    tuning = given.outcome(known.task_set.tuning_name(known.task))
    return given.size.of(known.task_set.study(tuning, rules))


def needed_studies(name: str) -> tuple[str, ...]:
    """The tuning that a study of rules follows from."""
    known = STUDIES.get(name)
    return () if known is None or known.is_tuning else (known.task_set.tuning_name(known.task),)


def provenance(study: StudySpec) -> dict[str, Any]:
    """The scale of a study, the command that packs it, and the score of doing nothing on its task."""
    (world,) = study.worlds
    assert isinstance(world, ClosedFormWorld), "packs have no others"
    if study.name == sac_arms.NAME:
        command = f"cycletime experiment run horizons {sac_arms.NAME}"
        return {"scale": 1.0, "command": command, "nothing": do_nothing_return(world)}
    known = STUDIES[study.name]
    return {
        "scale": study.env_steps / known.task_set.tuning(known.task).env_steps,
        "command": known.command,
        "nothing": do_nothing_return(world),
    }


def do_nothing_return(world: ClosedFormWorld, episodes: int = DO_NOTHING_EPISODES) -> float:
    """The mean return of episodes in which the action is zero, weighted by their length as the paper's measure is.

    An action that is held does not depend on the cycle time, and nor does this.
    """
    import jax
    import jax.numpy as jnp

    task = world.task

    def held(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        whole = task.cycle(task.reset(key), jnp.zeros(task.action_size), task.limit_steps)
        return whole.reward, whole.state.env_steps

    returns, steps = jax.jit(jax.vmap(held))(jax.random.split(jax.random.key(_SEED), episodes))
    mean = float(np.average(np.asarray(returns, np.float64), weights=np.asarray(steps, np.float64)))
    return float(f"{mean:.{_DIGITS}g}")


@dataclass(frozen=True)
class HorizonsResults(Results):
    """The results of all stages."""

    def need(self, *names: str) -> None:
        for name in names:
            if name not in self.outcomes:
                makes = (
                    f"'{STUDIES[name].command}' makes what runs it"
                    if name in STUDIES
                    else f"'cycletime experiment run horizons {name}' runs it"
                )
                raise NotRunError(
                    name,
                    remedy=f"{self.folder}/{name}.npz is not there: {makes}, and 'experiment collect horizons' keeps "
                    "what comes of it.",
                )


def read_horizons_results(folder: Path) -> HorizonsResults:
    """All results in a folder."""
    return HorizonsResults(read_outcomes(folder), folder=folder)


def load_comparison(task_set: TaskSet, results: HorizonsResults) -> RuleComparison:
    """The rules of a search or of a trial, compared."""
    tunings = {task: results.outcome(task_set.tuning_name(task)) for task in task_set.tasks}
    outcomes = {task: results.outcome(task_set.study_name(task)) for task in task_set.tasks}
    scales = {
        task: ScoreScale(float(outcomes[task].about["nothing"]), retuned_points(tunings[task]))
        for task in task_set.tasks
    }
    begun = [start for task in task_set.tasks for start in starting_points(tunings[task])]
    return RuleComparison(_compared_rules(task_set, results.folder), begun, outcomes, scales)


def _compared_rules(task_set: TaskSet, folder: Path | None) -> Rules:
    """What is compared: all candidates, or for the trial those of the preregistration."""
    spec = task_set.spec
    if task_set.name == "search":
        return spec.rules
    return spec.against_references(preregistered_rules(folder, spec))


@dataclass(frozen=True)
class Evidence:
    """Comparisons and verdicts of an algorithm; a NotRunError names what is missing."""

    results: HorizonsResults
    algorithm: Algorithm = "ppo"

    @property
    def spec(self) -> AlgorithmSpec:
        return ALGORITHM_SPECS[self.algorithm]

    @property
    def task_sets(self) -> tuple[TaskSet, ...]:
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
            task: self.results.outcome(task_set.tuning_name(task))
            for task_set in self.task_sets
            for task in task_set.tasks
        }

    @cached_property
    def predictions(self) -> Mapping[str, Any]:
        return preregistered_predictions(self.results.folder, self.spec)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        return (*self.tunings.values(), *self.search.outcomes.values(), *self.trial.comparison.outcomes.values())


def all_evidence(results: HorizonsResults) -> tuple[Evidence, ...]:
    """The evidence of each algorithm."""
    return tuple(Evidence(results, spec.algorithm) for spec in ALGORITHM_SPECS.values())
