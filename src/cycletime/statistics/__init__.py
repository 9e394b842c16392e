"""Statistics over runs: what a study's numbers are worth, each with its interval and its number of runs.

A cell is the runs (seeds) of one task, algorithm, rule and cycle time, a plain sequence of scores; several are a
mapping from their names. Resampling is over runs, within each cell by itself. A higher score is better.
"""

from cycletime.extras import require_extras

with require_extras(__name__):
    from cycletime.statistics.comparisons import Comparison as Comparison
    from cycletime.statistics.comparisons import compare as compare
    from cycletime.statistics.comparisons import holm as holm
    from cycletime.statistics.comparisons import holm_corrected as holm_corrected
    from cycletime.statistics.curves import Curve as Curve
    from cycletime.statistics.curves import iqm_curve as iqm_curve
    from cycletime.statistics.curves import mean_curve as mean_curve
    from cycletime.statistics.means import Contrast as Contrast
    from cycletime.statistics.means import Estimate as Estimate
    from cycletime.statistics.means import mean_and_error as mean_and_error
    from cycletime.statistics.means import mean_and_interval as mean_and_interval
    from cycletime.statistics.resampling import Options as Options
    from cycletime.statistics.resampling import bootstrap as bootstrap
    from cycletime.statistics.resampling import frequency_averaged_score as frequency_averaged_score
    from cycletime.statistics.resampling import interquartile_mean as interquartile_mean
    from cycletime.statistics.resampling import iqm as iqm
    from cycletime.statistics.sequential import Judgement as Judgement
    from cycletime.statistics.sequential import SequentialDesign as SequentialDesign
