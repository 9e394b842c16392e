"""Tuning as the paper does it: try values at one cycle time, take the best, and measure it with seeds it never saw.

A trial is one choice of hyper-parameters, run with all tuning seeds; its score is the mean over them of the paper's
performance. The best of many noisy means looks better than it is, so the winner is run again with fresh seeds, and that
number counts. Nothing but runs is kept of a search: Optuna's samplers are asked and told again in the same order, so
that a search that was killed goes on with the trials that it would have made.

FOLDER/trials/       the runs; for a grid it is a study like any other
FOLDER/fresh/        the winner with fresh seeds, a study
FOLDER/search.json   of a search, what its order of trials depends on
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cycletime.errors import InputError, RunError
from cycletime.runs.carried import TUNABLE
from cycletime.runs.files import write_whole
from cycletime.runs.folder import RunFolder
from cycletime.runs.lock import locked
from cycletime.runs.tuned_file import TunedValues, write_tuned
from cycletime.studies.executors.executor import Executor
from cycletime.studies.folder import StudyFolder
from cycletime.studies.running import Watcher, run_study
from cycletime.studies.spec import Cell, Study, Tuned
from cycletime.studies.statistics import Comparison, Estimate, compare, holm, mean_and_error
from cycletime.studies.tuning_file import Choice, Point, Range, Tuning

_MACHINE = ("cycletime", "jax", "jaxlib", "device", "processor", "python")
"""Of where runs were computed, what goes into the file."""

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler


@dataclass(frozen=True)
class Trial:
    """A choice of values, and how its runs went."""

    number: int
    point: Point
    scores: tuple[float | None, ...] = ()
    """The performance with each seed; None where a run went astray or failed."""
    trouble: str | None = None
    """Why it has no mean, and so no place before those that have one."""

    @cached_property
    def mean(self) -> Estimate | None:
        """The mean over seeds, the objective; None if a seed has no score."""
        return None if self.trouble else self.mean_of_finished

    @cached_property
    def mean_of_finished(self) -> Estimate | None:
        """The mean over those seeds that have a score, if there are some."""
        scored = any(score is not None for score in self.scores)
        return mean_and_error(self.scores, failed="exclude") if scored else None

    @property
    def place(self) -> tuple[bool, float, int]:
        """What trials are sorted by, the best first."""
        return (self.mean is None, -self.mean.value if self.mean else 0.0, self.number)


@dataclass(frozen=True)
class Outcome:
    """What a tuning found."""

    tuning: Tuning
    ranking: tuple[Trial, ...]
    """The best first."""
    fresh: Trial
    """The winner with seeds that tuning never saw."""
    machines: tuple[Mapping[str, str], ...]
    """Where the winner's runs were computed, each once."""

    @property
    def winner(self) -> Trial:
        """The best in tuning."""
        return self.ranking[0]

    @property
    def fall(self) -> Comparison | None:
        """The winner's scores with fresh seeds against those that it won with: how much was luck."""
        if self.fresh.mean_of_finished is None:
            return None
        return compare(self.fresh.scores, self.winner.scores, failed="exclude")

    @cached_property
    def against_others(self) -> dict[int, Comparison]:
        """The winner against each other trial on the tuning seeds, corrected for their number (Holm's method)."""
        others = [trial for trial in self.ranking[1:] if trial.mean]
        return holm({trial.number: compare(self.winner.scores, trial.scores) for trial in others})

    def tuned(self) -> TunedValues:
        """The winner's values, those included that rules carry but were not tuned."""
        tuning, algorithm = self.tuning, self.tuning.algorithm
        agent = tuning.cell(self.winner.point).agent
        others = tuning.at(self.winner.point).others[algorithm]
        values = {name: getattr(agent, name) for name in TUNABLE[algorithm]}
        return TunedValues(tuning.dt, values, {name: values[0] for name, values in others.items()})

    def origin(self) -> dict[str, Any]:
        """Where the values come from, for the file."""
        tuning, fall = self.tuning, self.fall
        runner_up = next((trial for trial in self.ranking[1:] if trial.mean), None)
        against = self.against_others.values()
        return {
            "study": tuning.study.name,
            "world": tuning.study.worlds[0].name,
            "env_steps": tuning.study.env_steps,
            "objective": "mean over seeds of the mean over 100 bins of environment steps of the mean episodic return",
            "sampler": tuning.sampler,
            **({} if tuning.sampler == "grid" else {"sampler_seed": tuning.sampler_seed, "optuna": version("optuna")}),
            "trials": len(self.ranking),
            "trials_without_mean": sum(trial.mean is None for trial in self.ranking),
            "trials_not_decided_from_winner": sum(each.verdict != "better" for each in against),
            "tuning": _told(self.winner, tuning.study.seeds),
            "fresh": _told(self.fresh, tuning.unseen_seeds()),
            **({"fall": _told_comparison(fall, sign=-1)} if fall else {}),
            **(
                {"runner_up": {**_told(runner_up, tuning.study.seeds), "values": dict(runner_up.point)}}
                if runner_up
                else {}
            ),
            **({"lead_over_runner_up": _told_comparison(self.against_others[runner_up.number])} if runner_up else {}),
            "computed_with": {
                name: ", ".join(sorted({machine.get(name, "unknown") for machine in self.machines}))
                for name in _MACHINE
            },
        }

    def write(self, folder: Path, file: Path) -> None:
        """Write the ranking into the tuning's folder, and the tuned values to a file."""
        table = [
            {
                "place": place,
                "trial": trial.number,
                "values": dict(trial.point),
                **_told(trial, self.tuning.study.seeds),
                "scores": list(trial.scores),
                "trouble": trial.trouble,
            }
            for place, trial in enumerate(self.ranking, start=1)
        ]
        write_whole(folder / "ranking.json", lambda path: path.write_text(json.dumps(table, indent=1) + "\n"))
        origin = {**self.origin(), "ranking": relpath(folder / "ranking.json", file.parent)}
        write_tuned(file, self.tuning.algorithm, self.tuned(), origin)


def _told(trial: Trial, seeds: Sequence[int]) -> dict[str, Any]:
    """The mean of a trial as files have it, to six digits."""
    mean = trial.mean_of_finished
    if mean is None:
        return {"n": 0, "n_failed": len(trial.scores), "seeds": list(seeds)}
    error = {} if mean.high is None else {"standard_error": _six(mean.high - mean.value)}
    return {"mean": _six(mean.value), **error, "n": mean.n, "n_failed": mean.n_failed, "seeds": list(seeds)}


def _told_comparison(comparison: Comparison, sign: int = 1) -> dict[str, Any]:
    difference = comparison.difference
    ends = [] if difference.low is None or difference.high is None else [difference.low, difference.high]
    interval = (
        {"from": _six(min(sign * end for end in ends)), "to": _six(max(sign * end for end in ends))} if ends else {}
    )
    return {
        "value": _six(sign * difference.value),
        **interval,
        "interval": difference.interval,
        "decided": comparison.verdict != "not decided by the data",
    }


def _six(number: float) -> float:
    return float(f"{number:.6g}")


def tune(
    tuning: Tuning,
    path: Path,
    executor: Executor,
    *,
    watcher: Watcher | None = None,
    stop: Callable[[], bool] = lambda: False,
    change_engine: bool = False,
) -> Outcome | None:
    """Tune, or go on with it; None if asked to stop before the end.

    Raises:
        RunError: if no trial has a mean.
    """
    work = _Work(tuning, path, executor, watcher, stop, change_engine)
    trials = work.tried(tuning.grid()) if tuning.sampler == "grid" else work.searched()
    if trials is None:
        return None
    ranking = sorted(trials, key=lambda trial: trial.place)
    winner = ranking[0]
    if winner.trouble:
        raise RunError(f"No trial of {len(ranking)} has a mean over its seeds; the first: {winner.trouble}.")
    return work.measured(ranking)


@dataclass(frozen=True, kw_only=True)
class _Batch(Study):
    """Trials that are run together though they are no grid."""

    parts: tuple[Study, ...] = ()

    def cells(self) -> Iterator[Cell]:
        """The cells of all."""
        for part in self.parts:
            yield from part.cells()


@dataclass(frozen=True)
class _Work:
    """A tuning while it goes on."""

    tuning: Tuning
    path: Path
    executor: Executor
    watcher: Watcher | None
    stop: Callable[[], bool]
    change_engine: bool

    def tried(self, points: Sequence[Point]) -> list[Trial] | None:
        """The whole grid, as one study."""
        study = replace(self.tuning.study, rules={}, tuned=self._uncarried())
        folder = StudyFolder.create(self.path / "trials", study, change_engine=self.change_engine)
        if not self._run(folder):
            return None
        return [self._trial(folder, number, point) for number, point in enumerate(points)]

    def searched(self) -> list[Trial] | None:
        """As many trials as are wanted, in batches that a sampler asks for."""
        tuning = self.tuning
        searcher = Searcher(tuning.sampler, tuning.sampler_seed, {**tuning.choices, **tuning.search})
        # What workers open; its runs are those of the trials.
        start = tuning.at({name: choice.values[0] for name, choice in tuning.choices.items()})
        folder = StudyFolder.create(self.path / "trials", start, change_engine=self.change_engine)
        at_once = self._at_once()
        trials: list[Trial] = []
        while len(trials) < tuning.trials:
            points = searcher.ask(min(at_once, tuning.trials - len(trials)))
            batch = self._batch(folder, points, first=len(trials))
            if batch is None:
                return None
            searcher.tell([None if trial.mean is None else trial.mean.value for trial in batch])
            trials += batch
        return trials

    def measured(self, ranking: Sequence[Trial]) -> Outcome | None:
        """The outcome, after the winner's runs with fresh seeds."""
        winner = ranking[0]
        name = f"{self.tuning.study.name}, the winner with fresh seeds"
        study = self.tuning.at(winner.point, self.tuning.unseen_seeds(), name)
        folder = StudyFolder.create(self.path / "fresh", study, change_engine=self.change_engine)
        if not self._run(folder):
            return None
        runs = [folder.runs / spec.name for _, spec in study.runs()]
        machines = [_result(run).get("machine", {}) for run in runs if (run / "result.json").exists()]
        once = {json.dumps(machine, sort_keys=True): machine for machine in machines}
        fresh = self._trial(folder, winner.number, winner.point)
        return Outcome(self.tuning, tuple(ranking), fresh, tuple(once[key] for key in sorted(once)))

    def _batch(self, folder: StudyFolder, points: Sequence[Point], first: int) -> list[Trial] | None:
        parts: dict[int, Study] = {}
        troubles: dict[int, str] = {}
        for number, point in enumerate(points, start=first):
            try:
                self.tuning.cell(point)
                parts[number] = self.tuning.at(point)
            except InputError as error:
                troubles[number] = str(error).rstrip(".")
        if parts:
            name = f"{self.tuning.study.name}, trials from {first + 1} of {self.tuning.trials}"
            study = _Batch(**{**vars(folder.study), "name": name, "parts": tuple(parts.values())})
            if not self._run(replace(folder, study=study)):
                return None
        return [
            self._trial(folder, number, point) if number in parts else Trial(number, point, trouble=troubles[number])
            for number, point in enumerate(points, start=first)
        ]

    def _run(self, folder: StudyFolder) -> bool:
        """Run what is left; whether it came to its end."""
        counts = run_study(folder, self.executor, watcher=self.watcher, stop=self.stop)
        return set(counts) <= {"done", "failed"}

    def _trial(self, folder: StudyFolder, number: int, point: Point) -> Trial:
        cell = self.tuning.cell(point)
        scores: list[float | None] = []
        failed, astray = 0, 0
        for seed in folder.study.seeds:
            run = folder.runs / cell.run(seed).name
            done = (run / "result.json").exists()
            scores.append(_result(run)["average_return"] if done else None)
            failed, astray = failed + (not done), astray + (done and scores[-1] is None)
        words = [
            f"{count} of {len(scores)} runs {what}"
            for count, what in ((failed, "failed"), (astray, "went astray or ended no episode"))
            if count
        ]
        return Trial(number, point, tuple(scores), " and ".join(words) or None)

    def _at_once(self) -> int:
        """How many trials are asked for at a time: the same whenever a search goes on, since its order hangs on it."""
        file, optuna = self.path / "search.json", version("optuna")
        with locked(self.path / ".lock", wait=True):
            if not file.exists():
                told = json.dumps({"optuna": optuna, "at_once": self.executor.workers})
                write_whole(file, lambda path: path.write_text(told + "\n"))
        before = json.loads(file.read_text())
        if before["optuna"] != optuna:
            raise InputError(
                f"The search in {self.path} was begun with Optuna {before['optuna']}, and {optuna} may ask for other "
                f"trials: pip install optuna=={before['optuna']}, or give another folder."
            )
        return self.tuning.at_once or int(before["at_once"])

    def _uncarried(self) -> dict[str, Tuned]:
        return {name: replace(tuned, dt=None) for name, tuned in self.tuning.study.tuned.items()}


def _result(run: Path) -> dict[str, Any]:
    return RunFolder.open(run).result()


class Searcher:
    """One of Optuna's samplers, asked for points and told their scores; nothing of it is on disk."""

    def __init__(self, sampler: str, seed: int, space: Mapping[str, Range | Choice]) -> None:
        """Begin anew; the same seed and scores give the same points."""
        try:
            import optuna
        except ImportError:
            raise InputError(f"The sampler {sampler} needs Optuna: pip install 'cycletime[optuna]'.") from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.space, self._asked = space, list[Any]()
        self._study = optuna.create_study(direction="maximize", sampler=_sampler(sampler, seed))
        self._distributions = {name: _distribution(each) for name, each in space.items()}

    def ask(self, count: int) -> list[Point]:
        """So many points."""
        self._asked = [self._study.ask(self._distributions) for _ in range(count)]
        return [{name: self._value(name, trial.params[name]) for name in self.space} for trial in self._asked]

    def tell(self, scores: Sequence[float | None]) -> None:
        """The scores of the points that were asked for last; None where there is none."""
        from optuna.trial import TrialState

        for trial, score in zip(self._asked, scores, strict=True):
            self._study.tell(trial, score, state=TrialState.FAIL if score is None else TrialState.COMPLETE)

    def _value(self, name: str, drawn: Any) -> Any:  # noqa: ANN401 - any hyper-parameter
        each = self.space[name]
        return each.values[drawn] if isinstance(each, Choice) else each.value(drawn)


def _sampler(name: str, seed: int) -> BaseSampler:
    from optuna import samplers

    if name == "random":
        return samplers.RandomSampler(seed=seed)
    if name == "tpe":
        return samplers.TPESampler(seed=seed)
    if find_spec("cmaes") is None:
        raise InputError("The sampler cmaes needs a package of that name: pip install 'cycletime[optuna]'.")
    return samplers.CmaEsSampler(seed=seed)


def _distribution(each: Range | Choice) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(each, Choice):
        return CategoricalDistribution(range(len(each.values)))  # places, since Optuna takes no tuples
    low, high = each.ends
    if each.whole:
        return IntDistribution(int(low), int(high), log=each.log)
    return FloatDistribution(low, high, log=each.log or each.horizon)
