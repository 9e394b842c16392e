"""Running experiments: each study in a folder OUT/STUDY, then the winners'; and what there is, as a list."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cycletime.errors import InputError
from cycletime.experiments.collecting import collect_study, run_counts, verified_folder
from cycletime.experiments.investigation import FRESH_SEED, Experiment, Investigation, Size, winners_name
from cycletime.experiments.outcome import Outcome, Results, winners
from cycletime.studies.events import StudyObserver, WallTimeRecorder
from cycletime.studies.plan import Plan
from cycletime.studies.spec import StudySpec, Tuned
from cycletime.studies.study_folder import RunState, StudyFolder
from cycletime.studies.worker_pool import Executor, run_study
from cycletime.training.worlds import task_class


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """Where experiments of an investigation are kept, in which size, and what computes them."""

    investigation: Investigation
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
        sweep = self.investigation.sweep_of(name)
        with _naming(name):
            study = replace(self.investigation.study(sweep or name, self), name=sweep or name)
        study = self.size.of(study)
        if sweep is not None:
            study = _winners_study(study, self.outcome(sweep), self.size.fresh_seeds or len(study.seeds))
        return replace(study, device=self.device or study.device, engine=self.engine or study.engine)

    def outcome(self, name: str) -> Outcome:
        """The outcome of an earlier study: from its folder, or else from the results at hand."""
        if (self.out / name / "study.json").exists() or self.results is None:
            folder = verified_folder(StudyFolder.open(self.out / name))
            return collect_study(folder, self.investigation.origin(folder.study))
        outcome: Outcome = self.investigation.read(self.results).outcome(name)
        return outcome

    def folder(self, name: str, experiment: Experiment, *, write: bool = True) -> StudyFolder:
        """The folder of a study, new or as it is; refused if it has another size, since runs would be mixed."""
        path, study = self.out / name, self.study(name)
        if (path / "study.json").exists():
            before = StudyFolder.open(path).study.env_steps
            if before != study.env_steps:
                sizes = f"runs of {before:,} environment steps, and this size has {study.env_steps:,}"
                scale = before / self.investigation.full_env_steps(name)
                raise InputError(f"{path} has {sizes}: give --scale {scale:g} again, or another folder as --out.")
        with _naming(name):
            try:
                return StudyFolder.create(path, study, keep=experiment.save_options, write=write)
            except InputError as error:
                if (least := _least_scale(study, self.investigation.full_env_steps(name))) is None:
                    raise
                why = f"too small ({str(error).rstrip('.')})"
                raise InputError(f"--scale {self.size.scale:g} is {why}: give at least {least:g}.") from error

    def is_done(self, name: str) -> bool:
        path = self.out / name
        if not (path / "study.json").exists():
            return False
        done, runs = run_counts(StudyFolder.open(path))
        return done == runs

    def lacking(self, name: str) -> str | None:
        """A study that another follows from, and whose outcome is not known yet."""
        sweep = self.investigation.sweep_of(name)
        needed: tuple[str, ...] = self.investigation.needs(name) if sweep is None else (sweep,)
        for each in needed:
            if not self.is_done(each) and (self.results is None or not (self.results / f"{each}.npz").exists()):
                return each
        return None


@contextmanager
def _naming(study: str) -> Iterator[None]:
    """Say which study is refused, or could not be made: an investigation may have a hundred."""
    try:
        yield
    except InputError as error:
        if type(error) is not InputError:  # what it is beside, such as not run, must be kept
            raise
        raise InputError(f"The study {study!r}: {error}") from error
    except Exception as error:
        error.add_note(f"This is of the investigation's study {study!r}.")
        raise


def _least_scale(study: StudySpec, full: int) -> float | None:
    """The least share of its environment steps with which a study can be run that cannot with those it has."""

    def can_be_run(env_steps: int) -> bool:
        try:
            replace(study, env_steps=env_steps, seeds=study.seeds[:1]).check_runs()
        except InputError:
            return False
        return True

    least = bisect_left(range(full + 1), True, lo=study.env_steps, key=can_be_run)
    return -(-(least * 10**6) // full) / 1e6 if study.env_steps < least <= full else None  # rounded up


def _winners_study(study: StudySpec, sweep: Outcome, seeds: int) -> StudySpec:
    """The values that won a sweep at each cycle time, with fresh seeds."""
    (algorithm,) = study.algorithms
    tuned = study.tuned[algorithm]
    tried = [name for name, values in tuned.values.items() if len(values) > 1]
    points = tuple(
        {"dt": dt, **{name: winner.cell.labels[name] for name in tried}} for dt, winner in winners(sweep).items()
    )
    kept = {name: values for name, values in tuned.values.items() if name not in tried}
    return replace(
        study,
        name=winners_name(study.name),
        seeds=tuple(range(FRESH_SEED, FRESH_SEED + seeds)),
        tuned={algorithm: Tuned(tuned.dt, kept)},
        points={algorithm: points},
    )


def pending_studies(
    experiments: Iterable[Experiment], workspace: Workspace
) -> tuple[dict[str, Experiment], dict[str, str]]:
    """The studies that are not done yet: those that can be run, and those that wait for the study named beside."""
    ready: dict[str, Experiment] = {}
    waiting: dict[str, str] = {}
    for experiment in experiments:
        for name in experiment.parts:
            if (lacking := workspace.lacking(name)) is not None:
                waiting[name] = lacking
            elif not workspace.is_done(name):
                ready[name] = experiment
    return ready, waiting


def check_experiments(experiments: Iterable[Experiment], workspace: Workspace) -> None:
    """Refuse all studies that could not begin, before the first one does; one that follows from a run here waits."""
    earlier: set[str | None] = set()
    for experiment in experiments:
        for name in experiment.parts:
            if workspace.lacking(name) not in earlier:
                workspace.folder(name, experiment, write=False)
            earlier.add(name)


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


def experiment_row(experiment: Experiment, workspace: Workspace, data: Results) -> dict[str, Any]:
    plans: list[tuple[Plan, int]] = []
    for name in experiment.studies:
        study = workspace.study(name)
        fresh = len(study.dts) * (workspace.size.fresh_seeds or len(study.seeds))
        plans.append((Plan.of(study), fresh if name == experiment.winners_of else 0))
    there = [data.outcomes[name] for name in experiment.parts if name in data.outcomes]
    n, scale = sorted({n for outcome in there for n in outcome.n}), min((each.scale for each in there), default=None)
    results = f"{len(there)} of {len(experiment.parts)} studies" if there else "none"
    if len(there) == len(experiment.parts):
        results = f"{n[0]} seed{'' if n[0] == 1 else 's'}" + ("" if scale in (1, None) else f", {100 * scale:.3g} %")
    return {
        "name": experiment.name,
        "about": experiment.about,
        "where": sorted({task_class(world.name).where for plan, _ in plans for world in plan.study.worlds}),
        "studies": experiment.parts,
        "runs": sum(len(plan.runs) + fresh for plan, fresh in plans),
        "simulated_h": round(sum((plan.simulated_h or 0.0) * (1 + fresh / len(plan.runs)) for plan, fresh in plans), 3),
        "results": results,
        "n": n,
        "scale": scale,
    }
