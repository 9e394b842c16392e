"""The learning curves of a panel's runs, in equal bins of environment steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cycletime.duration import Duration
from cycletime.errors import RunError
from cycletime.reports.scores import Panel, RunScore
from cycletime.reports.summary import Place
from cycletime.runs.curve import env_dt_s_of, read_any_curve
from cycletime.runs.result import BINS
from cycletime.statistics import Curve, mean_curve


def panel_curves(panel: Panel) -> dict[Place, Curve | None]:
    """By rule and cycle time, the mean curve of the runs that are scored; None where none can be read.

    Its n says how many could.
    """
    known = {run.name: _binned(run) for run in panel.runs() if run.outcome == "scored"}
    found: dict[Place, Curve | None] = {}
    for place, runs in panel.cells.items():
        curves = [curve for run in runs if (curve := known.get(run.name)) is not None]
        found[place] = mean_curve(curves, runs[0].folder.spec.env_steps) if curves else None
    return found


def _binned(run: RunScore) -> NDArray[np.float64] | None:
    spec = run.folder.spec
    try:
        # The time step is for the episodes' lengths only, which bins do not need.
        curve = read_any_curve(run.folder.curve_file, spec.world.env_dt or Duration("1s"))
    except RunError:
        return None
    bins = curve.binned(spec.env_steps, BINS)
    return bins if np.isfinite(bins).all() else None


def env_dt_of(panel: Panel) -> float | None:
    """The environment's time step in seconds, as the world knows it, or else as a finished run tells it."""
    for run in panel.runs():
        if (env_dt := run.folder.spec.world.env_dt) is not None:
            return float(env_dt)
        if run.outcome == "scored" and (told := env_dt_s_of(run.folder.curve_file)) is not None:
            return told
    return None
