"""Running experiments: each study in a folder OUT/STUDY, then the winners'; and what there is, as a list.

All is resumable as studies are: what is done is not run again, and whoever is killed loses nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cycletime.errors import InputError
from cycletime.experiments.investigation import Experiment, Investigation, Size
from cycletime.experiments.outcome import Outcome, Results
from cycletime.experiments.results import collect_study
from cycletime.studies.events import StudyObserver, WallTimeRecorder
from cycletime.studies.executors import Executor
from cycletime.studies.plan import Plan
from cycletime.studies.spec import StudySpec
from cycletime.studies.study_folder import RunState, StudyFolder
from cycletime.studies.worker_pool import run_study
from cycletime.training.worlds import task_class


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """Where experiments of an investigation are kept, in which size, and what computes them."""

    investigation: Investigation[Any]
    out: Path
    results: Path | None = None
    """Results that are at hand, for studies that follow from earlier ones."""
    size: Size = field(default_factory=Size)
    device: str | None = None
    """Where JAX computes: cpu or gpu; by default where the studies say."""
    engine: str | None = None
    """What computes; 'auto' is the fastest that takes a run on the device; by default what the studies say."""

    def study(self, name: str) -> StudySpec:
        """A study in this size; one that follows from others needs these to be done."""
        study = self.investigation.study(name, self)
        return replace(study, device=self.device or study.device, engine=self.engine or study.engine)

    def outcome(self, name: str) -> Outcome:
        """The outcome of an earlier study: from its folder, or else from the results at hand."""
        if (self.out / name / "study.json").exists() or self.results is None:
            folder = StudyFolder.open(self.out / name)
            return collect_study(folder, self.investigation.provenance(folder.study))
        outcome: Outcome = self.investigation.read(self.results).outcome(name)
        return outcome

    def folder(self, name: str, experiment: Experiment) -> StudyFolder:
        """The folder of a study, new or as it is; refused if it has another size, since runs would be mixed."""
        path, study = self.out / name, self.study(name)
        if (path / "study.json").exists():
            before = StudyFolder.open(path).study.env_steps
            if before != study.env_steps:
                raise InputError(
                    f"{path} has runs of {before:,} environment steps, and this size has {study.env_steps:,}: give "
                    "the same --scale, or another folder as --out."
                )
        return StudyFolder.create(path, study, keep=experiment.save_options)

    def is_done(self, name: str) -> bool:
        path = self.out / name
        if not (path / "study.json").exists():
            return False
        folder = StudyFolder.open(path)
        return all(planned.name in folder.store for planned in Plan.of(folder.study).runs)

    def is_known(self, name: str) -> bool:
        return self.is_done(name) or (self.results is not None and (self.results / f"{name}.npz").exists())


def pending_studies(
    experiments: Iterable[Experiment], workspace: Workspace
) -> tuple[dict[str, Experiment], dict[str, str]]:
    """The studies that are not done yet: those that can be run, and those that wait for the study named beside."""
    ready: dict[str, Experiment] = {}
    waiting: dict[str, str] = {}
    for experiment in experiments:
        for name in experiment.parts:
            lacking = [each for each in workspace.investigation.needs(name) if not workspace.is_known(each)]
            if lacking:
                waiting[name] = lacking[0]
            elif not workspace.is_done(name):
                ready[name] = experiment
    return ready, waiting


def run_experiment(
    experiment: Experiment,
    workspace: Workspace,
    executor: Callable[[], Executor],
    *,
    observer: Callable[[Executor], StudyObserver],
    tell: Callable[[str, Counter[RunState]], object],
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Run what is not done yet of an experiment; whether all is done then. `stop` is asked twice a second."""
    for part in experiment.parts:
        who = executor()  # first, since it may be refused
        folder = workspace.folder(part, experiment)
        counts = run_study(folder, who, observers=[WallTimeRecorder(folder.path), observer(who)], stop=stop)
        tell(part, counts)
        if set(counts) != {"done"}:  # stopped, or some failed; and winners are known when all is done
            return False
    return True


@dataclass(frozen=True)
class ExperimentRow:
    """An experiment, its size, and the results at hand."""

    name: str
    about: str
    shown_in: str
    where: tuple[str, ...]
    """Where its results come from: closed form, or a simulated robot."""
    studies: tuple[str, ...]
    runs: int
    simulated_h: float
    results: str
    """In words: so many seeds, scaled down or not; or 'none'."""
    n: tuple[int, ...]
    """The seeds of results at hand, each number once."""
    scale: float | None
    """The least share of the paper's environment steps among them."""


def experiment_row(experiment: Experiment, workspace: Workspace, data: Results) -> ExperimentRow:
    """An experiment in a workspace's size, with the winners' runs."""
    plans: list[tuple[Plan, int]] = []
    for name in experiment.studies:
        study = workspace.study(name)
        fresh = len(study.dts) * (workspace.size.fresh_seeds or len(study.seeds))
        plans.append((Plan.of(study), fresh if name == experiment.winners_of else 0))
    there = [data.outcomes[name] for name in experiment.parts if name in data.outcomes]
    return ExperimentRow(
        name=experiment.name,
        about=experiment.about,
        shown_in=experiment.shown_in,
        where=tuple(sorted({task_class(world.name).where for plan, _ in plans for world in plan.study.worlds})),
        studies=experiment.parts,
        runs=sum(len(plan.runs) + fresh for plan, fresh in plans),
        simulated_h=sum((plan.simulated_h or 0.0) * (1 + fresh / len(plan.runs)) for plan, fresh in plans),
        results=_results_text(experiment, there),
        n=tuple(sorted({n for outcome in there for n in outcome.n})),
        scale=min((outcome.scale for outcome in there), default=None),
    )


def _results_text(experiment: Experiment, there: list[Outcome]) -> str:
    if not there:
        return "none"
    if len(there) < len(experiment.parts):
        return f"{len(there)} of {len(experiment.parts)} studies"
    n, scale = min(n for outcome in there for n in outcome.n), min(outcome.scale for outcome in there)
    seeds = f"{n} seed{'' if n == 1 else 's'}"
    return seeds if scale == 1 else f"{seeds}, {100 * scale:.3g} %"
