"""The best cell of a sweep at each cycle time, and the study that runs it again with fresh seeds.

A winner's own scores are too good, since it was chosen by them (the paper's 'maximisation bias').
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.paper.experiments import FRESH_SEED, Size, study_of, winners_name
from cycletime.paper.outcome import Outcome, OutcomeCell
from cycletime.statistics import Contrast, Estimate, mean_and_error
from cycletime.studies.spec.study import Study, Tuned


@dataclass(frozen=True)
class Winner:
    """The best cell at a cycle time, and those that are as good for all one can tell."""

    dt: Duration
    cell: OutcomeCell
    mean: Estimate
    """Of the runs that it won with."""
    as_good: tuple[OutcomeCell, ...]
    """Cells behind it by less than the standard error of the difference, the nearest first."""


def winners(sweep: Outcome) -> dict[Duration, Winner]:
    """By cycle time, who won a sweep; runs that diverged count as the worst score that there is.

    Raises:
        InputError: if at a cycle time every run diverged.
    """
    every = np.concatenate([cell.scores for cell in sweep.cells])
    worst = float(np.min(every, where=np.isfinite(every), initial=inf))
    return {dt: _winner(sweep, dt, worst) for dt in sorted({cell.dt for cell in sweep.cells})}


def _winner(sweep: Outcome, dt: Duration, worst: float) -> Winner:
    scored = [cell for cell in sweep.where(dt=dt) if np.isfinite(cell.scores).any()]
    if not scored:
        raise InputError(f"At {dt} every run of {sweep.name} diverged: there is no winner.")
    counted = {cell: np.where(np.isfinite(cell.scores), cell.scores, worst) for cell in scored}
    best, *others = sorted(scored, key=lambda cell: -float(counted[cell].mean()))
    close = tuple(cell for cell in others if _is_as_good(counted[cell], counted[best]))
    return Winner(dt, best, mean_and_error(best.scores, failed="exclude"), close)


def _is_as_good(scores: NDArray[np.float64], best: NDArray[np.float64]) -> bool:
    """Whether runs are behind by less than the standard error of the difference, which a single run does not tell."""
    if min(len(scores), len(best)) < 2:
        return False
    behind = Contrast.of([(1.0, best), (-1.0, scores)])
    return behind.value < behind.error


def winners_study(sweep: Outcome, part: str, size: Size) -> Study:
    """The study that runs the winners of a sweep again."""
    full = study_of(part, size)
    (algorithm,) = full.algorithms
    tuned = full.tuned[algorithm]
    tried = [name for name, values in tuned.values.items() if len(values) > 1]
    points = tuple(
        {"dt": dt, **{name: winner.cell.labels[name] for name in tried}} for dt, winner in winners(sweep).items()
    )
    kept = {name: values for name, values in tuned.values.items() if name not in tried}
    return replace(
        full,
        name=winners_name(part),
        seeds=tuple(range(FRESH_SEED, FRESH_SEED + (size.fresh_seeds or len(full.seeds)))),
        tuned={algorithm: Tuned(tuned.dt, kept)},
        points={algorithm: points},
    )
