"""Running experiments: each study in a folder OUT/STUDY, then the winners'; and what that costs, as a list.

All is resumable as studies are: what is done is not run again, and whoever is killed loses nothing. Costs are estimated
without a trial: `cycletime study plan` measures those of a single study. On cores the time is

    PPO: agent steps x (a + b k) + gradient steps x c;  SAC: agent steps x d

of one core of an AMD EPYC (`results/training-cpu.txt`, which has b = 2000 and m = 50, and `results/update-cpu.txt`,
which has other m). Engines know their costs on an H200.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import Any

from cycletime.agents import PPOAgent
from cycletime.duration import cycle_steps
from cycletime.errors import InputError
from cycletime.experiments.investigation import Experiment, Investigation, Size
from cycletime.experiments.outcome import Outcome, Results
from cycletime.experiments.results import collect_study
from cycletime.studies.events import StudyObserver, WallTimeRecorder
from cycletime.studies.executors import Executor
from cycletime.studies.hardware_estimates import CORE_COUNTS, h200_plan, h200_wall_s, parallel_wall_s, serial_wall_s
from cycletime.studies.plan import Plan, agent_steps_per_run
from cycletime.studies.spec import StudySpec
from cycletime.studies.study_folder import RunState, StudyFolder
from cycletime.studies.worker_pool import run_study
from cycletime.training.engine import AUTO, Cost
from cycletime.training.machine import cores
from cycletime.training.spec import RunSpec
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
    change_engine: bool = False
    """Whether to go on though a study began on another."""

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
        return StudyFolder.create(path, study, change_engine=self.change_engine, keep=experiment.save_options)

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


PPO_STEP_S, PPO_INNER_S, PPO_GRADIENT_S = 10.5e-6, 0.17e-6, 18e-6
"""Of an agent step of PPO with the ten times that its sample is learned from, of each environment step in it, and of a
gradient step."""
SAC_STEP_S = 6.4e-3
"""Of an agent step of SAC, which is an update with 256 samples."""
COMPILE_S = 12.0
"""Of a program."""


@dataclass(frozen=True)
class ExperimentRow:
    """An experiment, what it costs, and the results at hand."""

    name: str
    about: str
    shown_in: str
    where: tuple[str, ...]
    """Where its results come from: closed form, or a simulated robot."""
    studies: tuple[str, ...]
    runs: int
    simulated_h: float
    here_s: float
    cores_s: Mapping[int, float]
    h200_s: float | None
    """About, on one H200; None where that is not known."""
    engines: tuple[str, ...]
    """What computes it on a GPU; on cores it is the engine compiled."""
    results: str
    """In words: so many seeds, scaled down or not; or 'none'."""
    n: tuple[int, ...]
    """The seeds of results at hand, each number once."""
    scale: float | None
    """The least share of the paper's environment steps among them."""


def experiment_row(experiment: Experiment, workspace: Workspace, data: Results) -> ExperimentRow:
    """An experiment in a workspace's size; the winners' runs are taken to cost as much as the sweep's."""
    plans: list[tuple[Plan, int]] = []
    for name in experiment.studies:
        study = workspace.study(name)
        fresh = len(study.dts) * (workspace.size.fresh_seeds or len(study.seeds))
        plan = Plan.of(replace(study, device="cpu", engine=AUTO))
        plans.append((plan, fresh if name == experiment.winners_of else 0))
    cores_s = {
        count: sum(_wall_s(plan, count) + _wall_s(plan, count, fresh) for plan, fresh in plans)
        for count in (*CORE_COUNTS, cores())
    }
    h200_s = [(h200_wall_s(plan, plan.runs), 1 + fresh / len(plan.runs)) for plan, fresh in plans]
    there = [data.outcomes[name] for name in experiment.parts if name in data.outcomes]
    return ExperimentRow(
        name=experiment.name,
        about=experiment.about,
        shown_in=experiment.shown_in,
        where=tuple(sorted({task_class(world.name).where for plan, _ in plans for world in plan.study.worlds})),
        studies=experiment.parts,
        runs=sum(len(plan.runs) + fresh for plan, fresh in plans),
        simulated_h=sum((plan.simulated_h or 0.0) * (1 + fresh / len(plan.runs)) for plan, fresh in plans),
        here_s=cores_s[cores()],
        cores_s={count: cores_s[count] for count in CORE_COUNTS},
        h200_s=sum(wall_s * more for wall_s, more in h200_s if wall_s) if all(each for each, _ in h200_s) else None,
        engines=tuple(sorted({engine for plan, _ in plans for engine in h200_plan(plan).engines()})),
        results=_results_text(experiment, there),
        n=tuple(sorted({n for outcome in there for n in outcome.n})),
        scale=min((outcome.scale for outcome in there), default=None),
    )


def _wall_s(plan: Plan, workers: int, runs: int | None = None) -> float:
    """The time that so many cores take for a plan, or for some runs that cost as much as its runs do on average."""
    parts = len(plan.runs) if runs is None else runs
    total_s = serial_wall_s(plan, plan.runs, core_cost) * parts / len(plan.runs)
    costs = ((cell, core_cost(cell.run(plan.study.seeds[0]))) for cell in plan.cells)
    longest_s = max(cost.program_s + agent_steps_per_run(cell) * cost.agent_step_s for cell, cost in costs)
    return parallel_wall_s(total_s, longest_s, parts, workers)


def core_cost(spec: RunSpec) -> Cost:
    """The cost of a run on one core."""
    if not isinstance(spec.agent, PPOAgent):
        return Cost(SAC_STEP_S, COMPILE_S)
    assert spec.world.env_dt is not None, "the paper's tasks have one"
    inner_s = PPO_INNER_S * cycle_steps(spec.dt, spec.world.env_dt)
    gradient_steps = spec.agent.epochs * ceil(spec.agent.batch / spec.agent.minibatch) / spec.agent.batch
    return Cost(PPO_STEP_S + inner_s + PPO_GRADIENT_S * gradient_steps, COMPILE_S)


def _results_text(experiment: Experiment, there: list[Outcome]) -> str:
    if not there:
        return "none"
    if len(there) < len(experiment.parts):
        return f"{len(there)} of {len(experiment.parts)} studies"
    n, scale = min(n for outcome in there for n in outcome.n), min(outcome.scale for outcome in there)
    seeds = f"{n} seed{'' if n == 1 else 's'}"
    return seeds if scale == 1 else f"{seeds}, {100 * scale:.3g} %"
