"""Statistics over runs: what a study's numbers are worth, each with its interval and its number of runs.

A cell is the runs (seeds) of one task, algorithm, rule and cycle time, a plain sequence of scores; several are a
mapping from their names. Resampling is over runs, within each cell by itself. A higher score is better.
"""

from cycletime.extras import require_extras

with require_extras(__name__):
    from cycletime.statistics.comparisons import Comparison, compare, holm, holm_corrected
    from cycletime.statistics.curves import Curve, iqm_curve, mean_curve
    from cycletime.statistics.means import Contrast, Estimate, mean_and_error, mean_and_interval
    from cycletime.statistics.resampling import Options, bootstrap, frequency_averaged_score, interquartile_mean, iqm
    from cycletime.statistics.sequential import Judgement, SequentialDesign

__all__ = [
    "Comparison",
    "Contrast",
    "Curve",
    "Estimate",
    "Judgement",
    "Options",
    "SequentialDesign",
    "bootstrap",
    "compare",
    "frequency_averaged_score",
    "holm",
    "holm_corrected",
    "interquartile_mean",
    "iqm",
    "iqm_curve",
    "mean_and_error",
    "mean_and_interval",
    "mean_curve",
]
