"""Tuning as the paper does it: try values at one cycle time, take the best, and measure it with seeds it never saw.

A trial is one choice of hyper-parameters, run with all tuning seeds; its score is the mean over them of the paper's
performance. The best of many noisy means looks better than it is, so the winner is run again with fresh seeds, and that
number counts. Nothing but runs is kept of a search: Optuna's samplers are asked and told again in the same order, so
that a search that was killed goes on with the trials that it would have made.

FOLDER/trials/       all trials so far, a study like any other
FOLDER/fresh/        the winner with fresh seeds, a study
FOLDER/search.json   of a search, what its order of trials depends on
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cycletime.errors import InputError, RunError
from cycletime.runs.files import disk_errors, write_first
from cycletime.runs.tables import read_json
from cycletime.studies.executors.executor import Executor
from cycletime.studies.running.running import Watcher, run_study
from cycletime.studies.spec.file import as_table
from cycletime.studies.spec.study import Point
from cycletime.studies.store.folder import StudyFolder, check_free
from cycletime.studies.tuning.file import Tuning
from cycletime.studies.tuning.outcome import Trial, TuningResult
from cycletime.studies.tuning.searching import Searcher

_SIGNS = ("trials", "search.json")
"""A folder that has one of these is a tuning's; whether trials are a study is asked of them in turn."""


def tune(
    tuning: Tuning,
    path: Path,
    executor: Executor,
    *,
    watcher: Watcher | None = None,
    stop: Callable[[], bool] = lambda: False,
    change_engine: bool = False,
) -> TuningResult | None:
    """Tune, or go on with it; None if asked to stop before the end.

    Raises:
        InputError: if nothing can be learnt of the task, or the folder has another tuning or other things.
        RunError: if no trial has a mean.
    """
    check_free(path, "tuning", _SIGNS)
    tuning.study.check_worlds()
    work = _Work(tuning, path, executor, watcher, stop, change_engine)
    trials = work.tried(tuning.grid()) if tuning.sampler == "grid" else work.searched()
    if trials is None:
        return None
    ranking = sorted(trials, key=lambda trial: trial.place)
    winner = ranking[0]
    if winner.trouble:
        raise RunError(f"No trial of {len(ranking)} has a mean over its seeds; the first: {winner.trouble}.")
    return work.measured(ranking)


@dataclass(frozen=True)
class _Work:
    """A tuning while it goes on."""

    tuning: Tuning
    path: Path
    executor: Executor
    watcher: Watcher | None
    stop: Callable[[], bool]
    change_engine: bool
    points: dict[tuple[Any, ...], Point] = field(default_factory=dict)
    """Those of trials that have runs, in turn; a sampler may ask for one twice."""

    def searched(self) -> list[Trial] | None:
        """As many trials as are wanted, in batches that a sampler asks for."""
        tuning = self.tuning
        searcher = Searcher(tuning.sampler, tuning.sampler_seed, {**tuning.choices, **tuning.search})
        at_once = self._at_once()
        trials: list[Trial] = []
        while len(trials) < tuning.trials:
            points = searcher.ask(min(at_once, tuning.trials - len(trials)))
            name = f"{tuning.study.name}, trials from {len(trials) + 1} of {tuning.trials}"
            batch = self.tried(points, len(trials), name)
            if batch is None:
                return None
            searcher.tell([None if trial.mean is None else trial.mean.value for trial in batch])
            trials += batch
        return trials

    def tried(self, points: Sequence[Point], first: int = 0, name: str | None = None) -> list[Trial] | None:
        """Trials, together; the first one's number, and what they are called while they run."""
        troubles: dict[int, str] = {}
        new: dict[tuple[Any, ...], Point] = {}
        for number, point in enumerate(points, start=first):
            try:
                self.tuning.cell(point)
                new[tuple(point.values())] = point
            except InputError as error:
                troubles[number] = str(error).rstrip(".")
        self.points.update(new)
        if new:
            folder = self._noted()
            study = replace(self.tuning.of(list(new.values()), name=name), width=folder.study.width)
            if not self._run(replace(folder, study=study)):
                return None
        return [
            Trial(number, point, trouble=troubles[number]) if number in troubles else self._trial(folder, number, point)
            for number, point in enumerate(points, start=first)
        ]

    def measured(self, ranking: Sequence[Trial]) -> TuningResult | None:
        """The outcome, after the winner's runs with fresh seeds."""
        winner = ranking[0]
        name = f"{self.tuning.study.name}, the winner with fresh seeds"
        study = self.tuning.of([winner.point], self.tuning.unseen_seeds(), name)
        folder = StudyFolder.create(self.path / "fresh", study, change_engine=self.change_engine)
        if not self._run(folder):
            return None
        results = [folder.store.result(name) for name in folder.store.refresh()]
        machines = [result["machine"] for result in results]
        once = {json.dumps(machine, sort_keys=True): machine for machine in machines}
        return TuningResult(
            self.tuning,
            tuple(ranking),
            self._trial(folder, winner.number, winner.point),
            machines=tuple(once[key] for key in sorted(once)),
            runs=len(self.points) * len(self.tuning.study.seeds),
            env_dt_s=next((float(result["env_dt_s"]) for result in results), None),
        )

    def _noted(self) -> StudyFolder:
        """The folder of all trials, whose study has those so far: what else there is, others may have noted."""
        path, study = self.path / "trials", self.tuning.of(list(self.points.values()))
        if (path / "study.json").exists():
            there = StudyFolder.open(path)
            before, ours = as_table(there.study), as_table(study.resolved(there.study))
            known, wanted = (table.pop("points", {}).get(self.tuning.algorithm, []) for table in (before, ours))
            if before == ours and known[: len(wanted)] == wanted:
                return there
        return StudyFolder.create(path, study, change_engine=self.change_engine)

    def _run(self, folder: StudyFolder) -> bool:
        """Run what is left; whether it came to its end."""
        counts = run_study(folder, self.executor, watcher=self.watcher, stop=self.stop)
        return set(counts) <= {"done", "failed"}

    def _trial(self, folder: StudyFolder, number: int, point: Point) -> Trial:
        (cell,) = replace(self.tuning.of([point]), width=folder.study.width).cells()
        scores: list[float | None] = []
        failed, astray = 0, 0
        for seed in folder.study.seeds:
            name = cell.run(seed).name
            done = name in folder.store
            scores.append(folder.store.result(name)["average_return"] if done else None)
            failed, astray = failed + (not done), astray + (done and scores[-1] is None)
        words = [
            f"{count} of {len(scores)} runs {what}"
            for count, what in ((failed, "failed"), (astray, "diverged or ended no episode"))
            if count
        ]
        return Trial(number, point, tuple(scores), " and ".join(words) or None)

    def _at_once(self) -> int:
        """How many trials are asked for at a time: the same whenever a search goes on, since its order hangs on it."""
        file, optuna = self.path / "search.json", version("optuna")
        if not file.exists():
            with disk_errors(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
            told = json.dumps({"optuna": optuna, "at_once": self.executor.workers})
            write_first(file, lambda path: path.write_text(told + "\n"))
        try:
            before = read_json(file)
            begun_with, at_once = str(before["optuna"]), int(before["at_once"])
            if at_once < 1:
                raise ValueError(at_once)
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise InputError(f"{file} cannot be read: put it back, or give another folder.") from error
        if begun_with != optuna:
            raise InputError(
                f"The search in {self.path} was begun with Optuna {begun_with}, and {optuna} may ask for other "
                f"trials: pip install optuna=={begun_with}, or give another folder."
            )
        return self.tuning.at_once or at_once
