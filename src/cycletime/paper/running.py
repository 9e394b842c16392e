"""Running the paper's experiments: each of their studies in a folder OUT/STUDY, then the winners' where there are some.

All is resumable as studies are: what is done is not run again, and whoever is killed loses nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from cycletime.engines.registry import AUTO
from cycletime.errors import InputError
from cycletime.paper.collecting import collect
from cycletime.paper.experiments import Experiment, Size, study_of, sweep_of
from cycletime.paper.winners import winners_study
from cycletime.studies.executors.executor import Executor
from cycletime.studies.plan.plan import Plan
from cycletime.studies.running.running import Watcher, run_study
from cycletime.studies.running.sessions import Timed
from cycletime.studies.spec.study import Study
from cycletime.studies.store.folder import State, StudyFolder


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """Where experiments are kept, in which size, and what computes them."""

    out: Path
    """The folder of all studies."""
    size: Size = field(default_factory=Size)
    device: str = "cpu"
    """Where JAX computes: cpu or gpu."""
    engine: str = AUTO
    """What computes; 'auto' is the fastest that takes a run on the device."""
    change_engine: bool = False
    """Whether to go on though a study began on another."""

    def study(self, part: str) -> Study:
        """A study in this size; that of winners needs its sweep to be done.

        Raises:
            InputError: if it is not.
        """
        sweep = sweep_of(part)
        if sweep is None:
            study = study_of(part, self.size)
        else:
            study = winners_study(collect(StudyFolder.open(self.out / sweep)), sweep, self.size)
        return replace(study, device=self.device, engine=self.engine)

    def folder(self, part: str, experiment: Experiment) -> StudyFolder:
        """The folder of a study, new or as it is.

        Raises:
            InputError: if it has the study in another size, whose runs would be mixed up with these.
        """
        path, study = self.out / part, self.study(part)
        if (path / "study.json").exists():
            before = StudyFolder.open(path).study.env_steps
            if before != study.env_steps:
                raise InputError(
                    f"{path} has runs of {before:,} environment steps, and this size has {study.env_steps:,}: give "
                    "the same --scale, or another folder as --out."
                )
        return StudyFolder.create(path, study, change_engine=self.change_engine, keep=experiment.keep)

    def is_done(self, part: str) -> bool:
        """Whether all runs of a study are finished."""
        path = self.out / part
        if not (path / "study.json").exists():
            return False
        folder = StudyFolder.open(path)
        return all(planned.name in folder.store for planned in Plan.of(folder.study).runs)


def parts_left(experiments: Iterable[Experiment], workspace: Workspace) -> tuple[dict[str, Experiment], dict[str, str]]:
    """The studies that are not done yet: those that can be run, and winners' that wait for the sweep named beside."""
    ready: dict[str, Experiment] = {}
    waiting: dict[str, str] = {}
    for experiment in experiments:
        for part in experiment.parts:
            sweep = sweep_of(part)
            if sweep is not None and not workspace.is_done(sweep):
                waiting[part] = sweep
            elif not workspace.is_done(part):
                ready[part] = experiment
    return ready, waiting


def run_experiment(
    experiment: Experiment,
    workspace: Workspace,
    executor: Callable[[], Executor],
    *,
    watcher: Callable[[Executor], Watcher],
    tell: Callable[[str, Counter[State]], object],
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Run what is not done yet of an experiment; whether all of it is done then.

    Args:
        experiment: It.
        workspace: Where, and how large.
        executor: Makes who computes a study.
        watcher: Makes who is told how a study goes.
        tell: Called with the name of each study and the states of its runs when it is over.
        stop: Asked about twice a second; where it says yes, workers save and leave.
    """
    for part in experiment.parts:
        who = executor()  # first, since it may be refused
        folder = workspace.folder(part, experiment)
        counts = run_study(folder, who, watcher=Timed(folder.path, watcher(who)), stop=stop)
        tell(part, counts)
        if set(counts) != {"done"}:  # stopped, or some failed; and winners are known when all is done
            return False
    return True
