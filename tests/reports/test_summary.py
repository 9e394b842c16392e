from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.reports.summary import Statistics, Summary
from cycletime.studies.scores import read_scores
from cycletime.studies.study_folder import StudyFolder

MakeStudy = Callable[..., StudyFolder]
AT_16, AT_32, AT_64 = Duration("16ms"), Duration("32ms"), Duration("64ms")


def summary_of(folder: StudyFolder, statistics: Statistics | None = None) -> Summary:
    (panel,) = read_scores(folder).panels
    return Summary.of(panel, statistics or Statistics())


def test_means_and_standard_errors_are_those_computed_by_hand(decided: StudyFolder) -> None:
    found = summary_of(decided).estimates["baseline", AT_16]
    assert found is not None
    assert (found.value, found.n) == (-22.0, 3)
    assert found.high == pytest.approx(-22 + 2 / 3**0.5)
    assert found.low == pytest.approx(-22 - 2 / 3**0.5)


def test_intervals_are_those_asked_for(decided: StudyFolder) -> None:
    by_t = summary_of(decided, Statistics("t")).estimates["baseline", AT_16]
    wanted = stats.t.interval(0.95, 2, loc=-22, scale=2 / 3**0.5)
    assert by_t is not None
    assert (by_t.low, by_t.high) == pytest.approx(wanted)
    drawn = summary_of(decided, Statistics("bootstrap")).estimates["baseline", AT_16]
    assert drawn is not None
    # One resample in 27 is all of the lowest, 3.7 %, so that the interval is as wide as the scores.
    assert (drawn.low, drawn.high) == (-24.0, -20.0)


def test_interquartile_means_leave_out_the_extremes(make_study: MakeStudy) -> None:
    folder = make_study(lambda labels, seed: [-1000.0, -3.0, -1.0, 500.0][seed], seeds=4, dts=["16ms"])
    found = summary_of(folder, Statistics("bootstrap", iqm=True)).estimates["baseline", AT_16]
    assert found is not None
    assert found.value == -2.0


@pytest.mark.parametrize(
    ("interval", "iqm", "says"),
    [
        ("sd", False, "'sd' is not an interval: give one of se, t, bootstrap."),
        ("se", True, "The interval is 'se': an interquartile mean has only 'bootstrap'."),
    ],
)
def test_statistics_that_there_are_not_are_refused(interval: str, iqm: bool, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Statistics(interval, iqm)


def test_verdicts_are_against_the_first_rule(decided: StudyFolder) -> None:
    found = summary_of(decided)
    assert found.verdict(("baseline", AT_32)) == ""
    assert found.verdict(("dt-aware", AT_32)) == "better"
    assert found.verdict(("dt-aware", AT_16)) == "same runs"
    assert list(found.comparisons) == [("dt-aware", AT_32)]


def test_verdicts_are_corrected_for_their_number(make_study: MakeStudy) -> None:
    # At 32 ms p = 0.04 alone, and 0.08 as the smaller of two.
    noise = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    gains = {"16ms": 0 * noise, "32ms": noise[::-1] + 1.05, "64ms": noise[::-1] + 0.1}

    def score(labels: dict[str, object], seed: int) -> float:
        return float(10 * seed + (gains[str(labels["dt"])][seed] if labels["rule"] == "dt-aware" else 0.0))

    found = summary_of(make_study(score, dts=["16ms", "32ms", "64ms"], seeds=5))
    alone = stats.ttest_1samp(gains["32ms"], 0.0).pvalue
    assert 0.025 < alone < 0.05
    assert found.comparisons["dt-aware", AT_32].p_value == pytest.approx(2 * alone)
    assert found.verdict(("dt-aware", AT_32)) == "undecided"


def test_the_frequency_averaged_score_is_the_mean_over_cycle_times(decided: StudyFolder) -> None:
    averages = summary_of(decided).averages
    assert averages["baseline"] is not None
    assert averages["dt-aware"] is not None
    assert averages["baseline"].value == pytest.approx((-22 - 41) / 2)
    assert averages["dt-aware"].value == pytest.approx((-22 - 26) / 2)


def test_an_average_without_one_of_the_cycle_times_is_none(make_study: MakeStudy) -> None:
    found = summary_of(make_study(lambda labels, seed: None if str(labels["dt"]) == "32ms" else 1.0))
    assert found.averages == {"baseline": None, "dt-aware": None}
    assert found.advantages == {"dt-aware": None}


def test_an_advantage_at_one_of_two_cycle_times_is_half_of_the_pairs_difference(decided: StudyFolder) -> None:
    gain = summary_of(decided).advantages["dt-aware"]
    wanted = stats.ttest_rel([-27, -26, -25], [-40, -41, -42]).confidence_interval()
    assert gain is not None
    assert gain.value == pytest.approx(7.5)
    assert (gain.low, gain.high) == pytest.approx((wanted.low / 2, wanted.high / 2))


def test_an_advantage_over_cycle_times_is_that_of_the_seeds_means(make_study: MakeStudy) -> None:
    gains = {"32ms": [2.0, 3.0, 4.0], "64ms": [2.0, 4.0, 9.0]}

    def score(labels: dict[str, object], seed: int) -> float:
        return 100.0 * seed + (gains[str(labels["dt"])][seed] if labels["rule"] == "dt-aware" else 0.0)

    gain = summary_of(make_study(score, dts=["32ms", "64ms"])).advantages["dt-aware"]
    wanted = stats.ttest_1samp(np.mean(list(gains.values()), axis=0), 0.0).confidence_interval()
    assert gain is not None
    assert (gain.value, gain.low, gain.high) == pytest.approx((4.0, wanted.low, wanted.high))


def test_the_best_cycle_time_is_compared_with_all_others(make_study: MakeStudy) -> None:
    means = {"16ms": [-1.0, 0.5, -2.5], "32ms": [0.0, 1.0, -1.0], "64ms": [-100.0, -101.0, -102.0]}
    found = summary_of(make_study(lambda labels, seed: means[str(labels["dt"])][seed], dts=list(means)))
    best = found.best["baseline"]
    assert best is not None
    assert (best.dt, best.runner_up, best.undecided) == (AT_32, AT_16, (AT_16,))
    alone = stats.ttest_rel(means["32ms"], means["16ms"]).pvalue
    # The best is chosen by the data, so that it is three pairs, of which this has the second smallest p at most.
    assert best.against[AT_16].p_value == pytest.approx(2 * alone)
    assert best.against[AT_64].verdict == "better"


def test_a_study_without_scores_has_no_numbers(make_study: MakeStudy) -> None:
    found = summary_of(make_study(lambda labels, seed: None))
    assert set(found.estimates.values()) == {None}
    assert found.best == {"baseline": None, "dt-aware": None}
    assert found.comparisons == {}
    assert found.verdict(("dt-aware", AT_32)) == ""
