"""The results of the search and the trial: the studies of each stage, what is kept of them, and the comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cycletime.experiments.horizons import sac_arms
from cycletime.experiments.horizons.candidates import (
    ALGORITHM_SPECS,
    TASK_SETS,
    AlgorithmSpec,
    Rules,
    TaskSet,
    retuned_points,
    starting_points,
)
from cycletime.experiments.horizons.preregistration import preregistered_predictions, preregistered_rules
from cycletime.experiments.horizons.ranking import RuleComparison, ScoreScale
from cycletime.experiments.investigation import Experiment, scale_label
from cycletime.experiments.outcome import Outcome, Results
from cycletime.studies.spec import StudySpec
from cycletime.training.worlds import ClosedFormWorld

if TYPE_CHECKING:
    import jax

    from cycletime.experiments.running import Workspace

CURVE_BINS = 10
_SEED = 0
_DIGITS = 6
"""Of the level that are kept: machines differ in the last ones."""
_STAGES = (
    ("tuning", "search", "horizons tuned at each cycle time"),
    ("search", "search", "all candidates from tuned and untuned values"),
    ("trial-tuning", "trial", "horizons tuned on the trial's tasks"),
    ("trial", "trial", "the preregistered candidates on other tasks"),
)
"""The stages in their order, whose tasks each has, and what it is."""


STUDIES: dict[str, tuple[TaskSet, str, bool]] = {}
"""By name, its tasks, the one that it is on, and whether it tunes there."""
EXPERIMENTS: dict[str, Experiment] = {}
for _spec, (_stage, _of, _about) in product(ALGORITHM_SPECS.values(), _STAGES):
    _task_set, _name = TASK_SETS[_spec.algorithm][_of], f"{_spec.prefix}{_stage}"
    _name_of = _task_set.study_name if _stage == _of else _task_set.tuning_name
    _studies = {_name_of(task): (_task_set, task, _stage != _of) for task in _task_set.tasks}
    STUDIES |= _studies
    EXPERIMENTS[_name] = Experiment(_name, _about, tuple(_studies))
EXPERIMENTS[sac_arms.NAME] = sac_arms.EXPERIMENT


def stage_study(name: str, workspace: Workspace) -> StudySpec:
    """A study by name; one that compares rules follows from what tuning found, and the trial from the search."""
    if name == sac_arms.NAME:
        return sac_arms.preregistered_study(workspace.results)
    task_set, task, is_tuning = STUDIES[name]
    rules = _compared_rules(task_set, workspace.results)
    if is_tuning:
        return task_set.tuning(task)
    return task_set.study(workspace.outcome(task_set.tuning_name(task)), rules)


def needed_studies(name: str) -> tuple[str, ...]:
    task_set, task, is_tuning = STUDIES.get(name, (None, "", True))
    return () if task_set is None or is_tuning else (task_set.tuning_name(task),)


def env_steps(name: str) -> int:
    task_set, task, _ = STUDIES.get(name, (None, "", True))
    return sac_arms.ENV_STEPS if task_set is None else task_set.tuning(task).env_steps


def provenance(study: StudySpec) -> dict[str, Any]:
    (world,) = study.worlds
    assert isinstance(world, ClosedFormWorld), "there are no others"
    return {"nothing": do_nothing_return(world)}


def do_nothing_return(world: ClosedFormWorld, episodes: int = 1000) -> float:
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


def load_comparison(task_set: TaskSet, results: Results) -> RuleComparison:
    tunings = {task: results.outcome(task_set.tuning_name(task)) for task in task_set.tasks}
    outcomes = {task: results.outcome(task_set.study_name(task)) for task in task_set.tasks}
    scales = {
        task: ScoreScale(float(outcomes[task].about["nothing"]), retuned_points(tunings[task]))
        for task in task_set.tasks
    }
    begun = [start for task in task_set.tasks for start in starting_points(tunings[task])]
    return RuleComparison(_compared_rules(task_set, results.folder), begun, outcomes, scales)


def _compared_rules(task_set: TaskSet, folder: Path | None) -> Rules:
    spec = task_set.spec
    if task_set.name == "search":
        return spec.rules
    return spec.against_references(preregistered_rules(folder, spec))


@dataclass(frozen=True)
class Evidence:
    """Comparisons and verdicts of an algorithm; a NotRunError names what is missing."""

    results: Results
    spec: AlgorithmSpec = ALGORITHM_SPECS["ppo"]

    @cached_property
    def search(self) -> RuleComparison:
        return load_comparison(TASK_SETS[self.spec.algorithm]["search"], self.results)

    @cached_property
    def trial(self) -> RuleComparison:
        return load_comparison(TASK_SETS[self.spec.algorithm]["trial"], self.results)

    @cached_property
    def tunings(self) -> dict[str, Outcome]:
        """By task of both, the grid of horizons."""
        return {
            task: self.results.outcome(task_set.tuning_name(task))
            for task_set in TASK_SETS[self.spec.algorithm].values()
            for task in task_set.tasks
        }

    @cached_property
    def predictions(self) -> Mapping[str, Any]:
        return preregistered_predictions(self.results.folder, self.spec)

    @property
    def scale_label(self) -> str:
        """Label results of the algorithm where some of its runs are scaled down."""
        names = (name for name, (task_set, *_) in STUDIES.items() if task_set.spec == self.spec)
        ours = (self.results.outcomes[name] for name in names if name in self.results.outcomes)
        return scale_label(min((outcome.scale for outcome in ours), default=1.0))

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        return (*self.tunings.values(), *self.search.outcomes.values(), *self.trial.outcomes.values())


def all_evidence(results: Results) -> tuple[Evidence, ...]:
    return tuple(Evidence(results, spec) for spec in ALGORITHM_SPECS.values())
