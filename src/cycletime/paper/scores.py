"""The score of a cell, as figures and tables show it."""

from __future__ import annotations

import numpy as np

from cycletime.paper.outcome import OutcomeCell
from cycletime.statistics import Estimate, mean_and_error


def score(cell: OutcomeCell) -> Estimate | None:
    """The mean score and its standard error; None if every run diverged."""
    return mean_and_error(cell.scores, failed="exclude") if np.isfinite(cell.scores).any() else None
