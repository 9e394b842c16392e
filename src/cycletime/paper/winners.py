"""The best cell of a sweep at each cycle time, and the study that runs it again with fresh seeds.

A winner's own scores are too good, since it was chosen by them (the paper's 'maximisation bias').
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cycletime.duration import Duration
from cycletime.paper.experiments import FRESH_SEED, Size, study_of, winners_name
from cycletime.paper.outcome import Cell, Outcome
from cycletime.statistics import Estimate, compare, mean_and_error
from cycletime.studies.spec.study import Study, Tuned


@dataclass(frozen=True)
class Winner:
    """The best cell at a cycle time, and those that are as good for all one can tell."""

    dt: Duration
    cell: Cell
    mean: Estimate
    """Of the runs that it won with."""
    as_good: tuple[Cell, ...]
    """Cells behind it by less than the standard error of the difference, the nearest first."""


def winners(sweep: Outcome) -> dict[Duration, Winner]:
    """By cycle time, who won a sweep; runs that went astray count as the worst score that there is."""
    worst = min(float(np.nanmin(cell.scores)) for cell in sweep.cells)
    found: dict[Duration, Winner] = {}
    for dt in sorted({cell.dt for cell in sweep.cells}):
        ranking = sorted(sweep.where(dt=dt), key=lambda cell: -float(np.nan_to_num(cell.scores, nan=worst).mean()))
        best = ranking[0]
        close = tuple(cell for cell in ranking[1:] if _is_as_good(cell, best))
        found[dt] = Winner(dt, best, mean_and_error(best.scores, failed="exclude"), close)
    return found


def _is_as_good(cell: Cell, best: Cell) -> bool:
    """Whether a cell is behind by less than the standard error of the difference."""
    difference = compare(best.scores, cell.scores, confidence=0.6827, failed="exclude").difference
    return difference.low is not None and difference.low < 0


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
        seeds=tuple(seed + FRESH_SEED for seed in full.seeds),
        tuned={algorithm: Tuned(tuned.dt, kept)},
        points={algorithm: points},
    )
