"""The learning curves of a panel's runs, in equal bins of environment steps."""

from __future__ import annotations

import numpy as np

from cycletime.reports.scores import Panel
from cycletime.reports.summary import Place
from cycletime.statistics import Curve, mean_curve


def panel_curves(panel: Panel) -> dict[Place, Curve | None]:
    """By rule and cycle time, the mean curve of the runs that are scored; None where there are none.

    Its n says how many.
    """
    found: dict[Place, Curve | None] = {}
    for place, runs in panel.cells.items():
        curves = [run.means for run in runs if run.means is not None and np.isfinite(run.means).all()]
        found[place] = mean_curve(curves, runs[0].spec.env_steps) if curves else None
    return found


def env_dt_of(panel: Panel) -> float | None:
    """The environment's time step in seconds, as the world knows it, or else as a finished run tells it."""
    for run in panel.runs():
        if (env_dt := run.spec.world.env_dt) is not None:
            return float(env_dt)
        if run.result:
            return float(run.result["env_dt_s"])
    return None
