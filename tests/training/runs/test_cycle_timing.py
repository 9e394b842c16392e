"""The cadence of a run against plain NumPy over the same cycles."""

import json

import numpy as np
import pytest

from cycletime.training.journal import Cycle, Cycles, TimingSummary, summarize_timing


def a_cycle(wake_error_s: float = 0.0, age_s: float = 0.004, *, overrun: bool = False) -> Cycle:
    return Cycle(0.0, wake_error_s, age_s, 3e-4, 1e-5, 0.012, 1, 0, 5, 0, overrun)


def timing_of(*cycles: Cycle) -> TimingSummary:
    return summarize_timing([Cycles.of(cycles)])


def test_columns_are_the_cycles() -> None:
    cycles = [a_cycle(0.1 * number, overrun=number == 1) for number in range(3)]
    columns = Cycles.of(cycles)
    assert columns.dtype.names == Cycle._fields
    assert [columns[name].dtype.kind for name in Cycle._fields] == list("ffffffiiiib")
    assert [Cycle(*row) for row in columns.tolist()] == cycles
    assert Cycles.from_table(columns.table()).tolist() == columns.tolist()
    joined = Cycles.joined([columns, Cycles.of(()), columns])
    assert (len(joined), joined.overrun.sum()) == (6, 2)


def test_one_after_the_other_or_all_at_once_is_the_same() -> None:
    errors = np.random.default_rng(0).lognormal(-8, 1.5, 3000)
    cycles = [a_cycle(error, age) for error, age in zip(errors, np.roll(errors, 1), strict=True)]
    one = summarize_timing(Cycles.of([cycle]) for cycle in cycles)
    parts = summarize_timing([Cycles.of(cycles[:1000]), Cycles.of(()), Cycles.of(cycles[1000:])])
    wake, other = one.spreads["wake_error_s"], parts.spreads["wake_error_s"]
    assert (one.cycles, one.overruns) == (parts.cycles, parts.overruns) == (3000, 0)
    assert wake.mean_s == pytest.approx(other.mean_s)
    assert (wake.p99_s, wake.worst_s) == (other.p99_s, other.worst_s)
    assert wake.worst_s == errors.max()
    assert wake.mean_s == pytest.approx(errors.mean())
    exact = float(np.quantile(errors, 0.99, method="higher"))
    assert exact <= wake.p99_s * (1 + 1e-9)
    assert wake.p99_s <= 1.05 * exact
    assert one.spreads["observation_age_s"].worst_s == errors.max()


def test_the_worst_of_one_cycle_is_its_99th_percentile() -> None:
    wake = timing_of(a_cycle(0.0123)).spreads["wake_error_s"]
    assert (wake.mean_s, wake.p99_s, wake.worst_s) == (0.0123,) * 3


def test_what_no_cycle_tells_is_unknown() -> None:
    assert summarize_timing([]).share_of_overruns == 0
    timing = timing_of(*[a_cycle(age_s=float("nan"))] * 2)
    told = json.loads(json.dumps(timing.as_json(), allow_nan=False))
    assert told["observation_age_s"] is None
    assert told["act_s"] == {"mean": pytest.approx(3e-4), "p99": 3e-4, "worst": 3e-4}


@pytest.mark.parametrize(("overruns", "warns"), [(0, False), (10, False), (11, True)])
def test_more_than_one_in_a_hundred_is_said(overruns: int, warns: bool) -> None:
    timing = timing_of(*(a_cycle(overrun=number < overruns) for number in range(1000)))
    warning = timing.warning
    assert (warning is not None) == warns
    if warning:
        assert warning.startswith("11 of 1,000 cycles (1.1%) were not done in time, more than 1%")
        assert timing.as_json()["warning"] == warning


def test_times_beyond_all_bins_count() -> None:
    timing = timing_of(*(a_cycle(error) for error in (0.0, -1e-9, 1e9)))
    assert timing.spreads["wake_error_s"].worst_s == 1e9
