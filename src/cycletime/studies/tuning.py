"""Tuning as the paper does it: try values at one cycle time, take the best, and measure it with seeds it never saw.

Nothing but runs is kept of a search: Optuna's samplers are asked and told again in the same order, so that a search
that was killed goes on with the trials that it would have made.

FOLDER/trials/       all trials so far, a study like any other
FOLDER/fresh/        the winner with fresh seeds, a study
FOLDER/search.json   of a search, what its order of trials depends on
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from importlib.metadata import version
from math import comb
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cycletime.errors import InputError, RunError
from cycletime.extras import require_extras
from cycletime.libraries.synonyms import our_fields
from cycletime.statistics import Comparison, Estimate, compare, holm, mean_and_error
from cycletime.studies.events import StudyObserver
from cycletime.studies.scores import RunScore, read_cells
from cycletime.studies.spec import Point
from cycletime.studies.spec_file import study_table
from cycletime.studies.study_folder import StudyFolder, check_folder_free
from cycletime.studies.tuning_spec import Range, Tuning
from cycletime.studies.worker_pool import Executor, run_study
from cycletime.training.atomic_files import make_folder, write_first, write_whole
from cycletime.training.external import ExternalAgent
from cycletime.training.make_specs import agent_values, tunable_names
from cycletime.training.toml_files import TunedValues, read_json, write_tuned

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

_MACHINE_FIELDS = ("cycletime", "processor", "python")
_JAX_FIELDS = ("jax", "jaxlib", "device")
"""Of our own agents; of another trainer its script and its packages count."""


@dataclass(frozen=True)
class Trial:
    number: int
    point: Point
    scores: tuple[float | None, ...] = ()
    """The performance with each seed; None where a run diverged or failed."""
    trouble: str | None = None

    @classmethod
    def of(cls, number: int, point: Point, runs: Sequence[RunScore]) -> Trial:
        diverged = sum(run.outcome == "astray" for run in runs)
        failed = sum(run.outcome != "scored" for run in runs) - diverged
        words = [
            f"{count} of {len(runs)} runs {what}"
            for count, what in ((failed, "failed"), (diverged, "diverged or ended no episode"))
            if count
        ]
        return cls(number, point, tuple(run.score for run in runs), " and ".join(words) or None)

    @cached_property
    def mean(self) -> Estimate | None:
        return None if self.trouble else self.mean_of_finished

    @cached_property
    def mean_of_finished(self) -> Estimate | None:
        scored = any(score is not None for score in self.scores)
        return mean_and_error(self.scores, failed="exclude") if scored else None


@dataclass(frozen=True)
class TuningResult:
    tuning: Tuning
    ranking: tuple[Trial, ...]
    fresh: Trial
    machines: tuple[Mapping[str, str], ...]
    runs: int
    env_dt_s: float | None

    @property
    def winner(self) -> Trial:
        return self.ranking[0]

    @property
    def fall(self) -> Comparison | None:
        """The winner's scores with fresh seeds minus those in tuning: how much was luck."""
        if self.fresh.mean_of_finished is None:
            return None
        return compare(self.fresh.scores, self.winner.scores, failed="exclude")

    @cached_property
    def against_others(self) -> dict[int, Comparison]:
        """The winner against each other trial, seed by seed, by Holm's method for all pairs: the data chose it."""
        others = [trial for trial in self.ranking[1:] if trial.mean]
        table = {trial.number: compare(self.winner.scores, trial.scores, paired=True) for trial in others}
        return holm(table, comparisons=comb(len(others) + 1, 2))

    def tuned(self) -> TunedValues:
        tuning, algorithm = self.tuning, self.tuning.algorithm
        agent, trainer = tuning.cell(self.winner.point).agent, tuning.study.trainer
        others = [*tuning.of([self.winner.point]).others.get(algorithm, {}), *self.winner.point]
        values = agent_values(agent, tunable_names(algorithm, trainer))
        ours = our_fields(trainer.words, algorithm) if trainer and trainer.words else {}
        # What is said in a library's words and carried is among the values already.
        names = [name for name in dict.fromkeys(others) if ours.get(name, name) not in values]
        further = agent.settings if isinstance(agent, ExternalAgent) else agent_values(agent, names)
        searched = list(dict.fromkeys(ours.get(name, name) for name in tuning.names))
        about = {"searched": searched, **tuning.study.trained_by()}
        return TunedValues(tuning.dt, values, {name: further[name] for name in names}, about)

    def origin(self) -> dict[str, Any]:
        tuning, env_dt_s, trainer = self.tuning, self.env_dt_s, self.tuning.study.trainer
        hours = None if env_dt_s is None else _six_digits(self.runs * tuning.study.env_steps * env_dt_s / 3600)
        found = {
            "study": tuning.study.name,
            "world": tuning.study.worlds[0].name,
            "env_steps": tuning.study.env_steps,
            "objective": "mean over seeds of the mean over 100 bins of environment steps of the mean episodic return",
            "sampler": tuning.sampler,
            **({} if tuning.sampler == "grid" else {"sampler_seed": tuning.sampler_seed, "optuna": version("optuna")}),
            "trials": len(self.ranking),
            "runs": self.runs,
            "simulated_hours": hours,
            "trials_without_mean": sum(trial.mean is None for trial in self.ranking),
            "trials_not_decided_from_winner": sum(each.verdict != "better" for each in self.against_others.values()),
            "tuning": _mean_json(self.winner, tuning.study.seeds),
            "fresh": _mean_json(self.fresh, tuning.fresh_seed_range()),
            "computed_with": {
                name: ", ".join(sorted(versions))
                for name in (*_MACHINE_FIELDS, *(_JAX_FIELDS if trainer is None else ("script", *trainer.packages)))
                if (versions := {machine[name] for machine in self.machines if name in machine})
            },
        }
        return {name: each for name, each in found.items() if each is not None}

    def write(self, folder: Path, file: Path) -> None:
        table = [
            {
                "place": place,
                "trial": trial.number,
                "values": dict(trial.point),
                **_mean_json(trial, self.tuning.study.seeds),
                "scores": list(trial.scores),
                "trouble": trial.trouble,
            }
            for place, trial in enumerate(self.ranking, start=1)
        ]
        write_whole(folder / "ranking.json", lambda path: path.write_text(json.dumps(table, indent=1) + "\n"))
        origin = {**self.origin(), "ranking": relpath(folder / "ranking.json", file.parent)}
        write_tuned(file, self.tuning.algorithm, self.tuned(), origin)


def _mean_json(trial: Trial, seeds: Sequence[int]) -> dict[str, Any]:
    mean = trial.mean_of_finished
    if mean is None:
        return {"n": 0, "n_failed": len(trial.scores), "seeds": list(seeds)}
    error = {} if mean.high is None else {"standard_error": _six_digits(mean.high - mean.value)}
    return {"mean": _six_digits(mean.value), **error, "n": mean.n, "n_failed": mean.n_failed, "seeds": list(seeds)}


def _six_digits(number: float) -> float:
    return float(f"{number:.6g}")


class OptunaSearch:
    """One of Optuna's samplers, asked for points and told their scores; nothing of it is on disk."""

    def __init__(self, sampler: str, seed: int, space: Mapping[str, Range | tuple[Any, ...]]) -> None:
        with require_extras(f"The sampler {sampler}"):
            import optuna

            if sampler == "cmaes":
                import_module("cmaes")  # else missed in the middle of the search
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.space, self._asked = space, list[Any]()
        kinds = {"random": "RandomSampler", "tpe": "TPESampler", "cmaes": "CmaEsSampler"}
        chosen = getattr(optuna.samplers, kinds[sampler])(seed=seed)
        self._study = optuna.create_study(direction="maximize", sampler=chosen)

        def distribution(each: Range | tuple[Any, ...]) -> BaseDistribution:
            if not isinstance(each, Range):
                return optuna.distributions.CategoricalDistribution(range(len(each)))  # places: Optuna takes no tuples
            low, high = each.bounds
            if each.is_integer:
                return optuna.distributions.IntDistribution(int(low), int(high), log=each.log)
            return optuna.distributions.FloatDistribution(low, high, log=each.log or each.horizon)

        self._distributions = {name: distribution(each) for name, each in space.items()}

    def ask(self, count: int) -> list[Point]:
        self._asked = [self._study.ask(self._distributions) for _ in range(count)]
        return [
            {
                name: each.value(trial.params[name]) if isinstance(each, Range) else each[trial.params[name]]
                for name, each in self.space.items()
            }
            for trial in self._asked
        ]

    def tell(self, scores: Sequence[float | None]) -> None:
        """Scores of the points of the last `ask`; None where there is none."""
        from optuna.trial import TrialState

        for trial, score in zip(self._asked, scores, strict=True):
            self._study.tell(trial, score, state=TrialState.FAIL if score is None else TrialState.COMPLETE)


_MARKERS = ("trials", "search.json")


def tune(
    tuning: Tuning,
    path: Path,
    executor: Executor,
    *,
    observers: Sequence[StudyObserver] = (),
    stop: Callable[[], bool] = lambda: False,
) -> TuningResult | None:
    check_folder_free(path, "tuning", _MARKERS)
    tuning.study.check_worlds()
    run = _TuningRun(tuning, path, executor, observers, stop)
    trials = run.run_trials(tuning.grid()) if tuning.sampler == "grid" else run.search()
    if trials is None:
        return None
    ranking = sorted(trials, key=lambda each: (each.mean is None, -each.mean.value if each.mean else 0.0, each.number))
    winner = ranking[0]
    if winner.trouble:
        raise RunError(f"No trial of {len(ranking)} has a mean over its seeds; the first: {winner.trouble}.")
    return run.measure_winner(ranking)


@dataclass(frozen=True)
class _TuningRun:
    tuning: Tuning
    path: Path
    executor: Executor
    observers: Sequence[StudyObserver]
    stop: Callable[[], bool]
    points: dict[tuple[Any, ...], Point] = field(default_factory=dict)
    """Points with runs, in order; a sampler may ask for one twice."""

    def search(self) -> list[Trial] | None:
        tuning = self.tuning
        searcher = OptunaSearch(tuning.sampler, tuning.sampler_seed, {**tuning.choices, **tuning.search})
        at_once = self._at_once()
        trials: list[Trial] = []
        while len(trials) < tuning.trials:
            points = searcher.ask(min(at_once, tuning.trials - len(trials)))
            name = f"{tuning.study.name}, trials from {len(trials) + 1} of {tuning.trials}"
            batch = self.run_trials(points, len(trials), name)
            if batch is None:
                return None
            searcher.tell([None if trial.mean is None else trial.mean.value for trial in batch])
            trials += batch
        return trials

    def run_trials(self, points: Sequence[Point], first: int = 0, name: str | None = None) -> list[Trial] | None:
        troubles: dict[int, str] = {}
        new: dict[tuple[Any, ...], Point] = {}
        for number, point in enumerate(points, start=first):
            try:
                self.tuning.cell(point)
                new[tuple(point.values())] = point
            except InputError as error:
                troubles[number] = str(error).rstrip(".")
        self.points.update(new)
        found: dict[tuple[Any, ...], Sequence[RunScore]] = {}
        if new:
            folder = self._trials_folder()
            study = replace(self.tuning.of(list(new.values()), name=name), width=folder.study.width)
            cells = self._run(replace(folder, study=study))
            if cells is None:
                return None
            found = dict(zip(new, cells, strict=True))
        return [
            Trial.of(number, point, found[tuple(point.values())])
            if number not in troubles
            else Trial(number, point, trouble=troubles[number])
            for number, point in enumerate(points, start=first)
        ]

    def measure_winner(self, ranking: Sequence[Trial]) -> TuningResult | None:
        winner = ranking[0]
        name = f"{self.tuning.study.name}, the winner with fresh seeds"
        study = self.tuning.of([winner.point], self.tuning.fresh_seed_range(), name)
        folder = StudyFolder.create(self.path / "fresh", study)
        cells = self._run(folder)
        if cells is None:
            return None
        results = [folder.store.result(name) for name in folder.store.refresh()]
        machines = [result["machine"] for result in results]
        once = {json.dumps(machine, sort_keys=True): machine for machine in machines}
        return TuningResult(
            self.tuning,
            tuple(ranking),
            Trial.of(winner.number, winner.point, cells[0]),
            machines=tuple(once[key] for key in sorted(once)),
            runs=len(self.points) * len(self.tuning.study.seeds),
            env_dt_s=next((float(result["env_dt_s"]) for result in results), None),
        )

    def _trials_folder(self) -> StudyFolder:
        """The folder of all trials so far; it may have more, of a command that got further."""
        path, study = self.path / "trials", self.tuning.of(list(self.points.values()))
        if (path / "study.json").exists():
            there = StudyFolder.open(path)
            before, ours = study_table(there.study), study_table(study.resolved(there.study))
            known, wanted = (table.pop("points", {}).get(self.tuning.algorithm, []) for table in (before, ours))
            if before == ours and known[: len(wanted)] == wanted:
                return there
        return StudyFolder.create(path, study)

    def _run(self, folder: StudyFolder) -> list[Sequence[RunScore]] | None:
        """Run a study of points; the runs of each point, None if stopped before the end."""
        counts = run_study(folder, self.executor, observers=self.observers, stop=self.stop)
        return [runs for _, runs in read_cells(folder)] if set(counts) <= {"done", "failed"} else None

    def _at_once(self) -> int:
        """How many trials to ask for at a time: kept with the search, since its order depends on it."""
        file, optuna = self.path / "search.json", version("optuna")
        if not file.exists():
            make_folder(self.path)
            text = json.dumps({"optuna": optuna, "at_once": self.executor.workers})
            write_first(file, lambda path: path.write_text(text + "\n"))
        try:
            before = read_json(file)
            begun_with, at_once = str(before["optuna"]), int(before["at_once"])
            if at_once < 1:
                raise ValueError(at_once)
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise InputError(f"{file} cannot be read: put it back, or give another folder.") from error
        if begun_with != optuna:
            remedy = f"pip install optuna=={begun_with}, or give another folder"
            begun = f"The search in {self.path} was begun with Optuna {begun_with}"
            raise InputError(f"{begun}, and {optuna} may ask for other trials: {remedy}.")
        return self.tuning.at_once or at_once
