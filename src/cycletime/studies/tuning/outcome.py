"""What a tuning found: its trials, the winner with fresh seeds, and the file that other commands read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from math import comb
from os.path import relpath
from pathlib import Path
from typing import Any

from cycletime.runs.carried import TUNABLE
from cycletime.runs.files import write_last
from cycletime.runs.tuned_file import TunedValues, write_tuned
from cycletime.statistics import Comparison, Estimate, compare, holm, mean_and_error
from cycletime.studies.spec.study import Point
from cycletime.studies.tuning.file import Tuning

_MACHINE = ("cycletime", "jax", "jaxlib", "device", "processor", "python")
"""Of where runs were computed, what goes into the file."""


@dataclass(frozen=True)
class Trial:
    """A choice of values, and how its runs went."""

    number: int
    point: Point
    scores: tuple[float | None, ...] = ()
    """The performance with each seed; None where a run diverged or failed."""
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
class TuningResult:
    """What a tuning found."""

    tuning: Tuning
    ranking: tuple[Trial, ...]
    """The best first."""
    fresh: Trial
    """The winner with seeds that tuning never saw."""
    machines: tuple[Mapping[str, str], ...]
    """Where the winner's runs were computed, each once."""
    runs: int
    """Of all trials together, without those with fresh seeds."""
    env_dt_s: float | None
    """The environment's time step in seconds; None where it is not known."""

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
        """The winner against each other trial on the tuning seeds, corrected by Holm's method.

        The data chose the winner, so that all pairs of trials count as compared.
        """
        others = [trial for trial in self.ranking[1:] if trial.mean]
        table = {trial.number: compare(self.winner.scores, trial.scores) for trial in others}
        return holm(table, comparisons=comb(len(others) + 1, 2))

    def tuned(self) -> TunedValues:
        """The winner's values, those included that rules carry but were not tuned."""
        tuning, algorithm = self.tuning, self.tuning.algorithm
        agent = tuning.cell(self.winner.point).agent
        others = [*tuning.of([self.winner.point]).others.get(algorithm, {}), *self.winner.point]
        names = dict.fromkeys(name for name in others if name not in TUNABLE[algorithm])
        values = {name: getattr(agent, name) for name in TUNABLE[algorithm]}
        return TunedValues(tuning.dt, values, {name: getattr(agent, name) for name in names})

    def origin(self) -> dict[str, Any]:
        """Where the values come from, for the file."""
        tuning, fall = self.tuning, self.fall
        runner_up = next((trial for trial in self.ranking[1:] if trial.mean), None)
        against, env_dt_s = self.against_others.values(), self.env_dt_s
        hours = None if env_dt_s is None else _six(self.runs * tuning.study.env_steps * env_dt_s / 3600)
        return {
            "study": tuning.study.name,
            "world": tuning.study.worlds[0].name,
            "env_steps": tuning.study.env_steps,
            "objective": "mean over seeds of the mean over 100 bins of environment steps of the mean episodic return",
            "sampler": tuning.sampler,
            **({} if tuning.sampler == "grid" else {"sampler_seed": tuning.sampler_seed, "optuna": version("optuna")}),
            "trials": len(self.ranking),
            "runs": self.runs,
            **({} if hours is None else {"simulated_hours": hours}),
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
        write_last(folder / "ranking.json", lambda path: path.write_text(json.dumps(table, indent=1) + "\n"))
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
