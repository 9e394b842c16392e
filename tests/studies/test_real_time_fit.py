"""Which candidates are in time, by times that are given."""

import pytest

from cycletime.studies.cycle_time_checks import RealTimeFit, WorldFacts, describe_machine, measure_real_time_fit
from cycletime.training import latency
from cycletime.training.latency import CallTimes
from tests.studies.virtual import asked, ms


def times(seconds: float) -> CallTimes:
    return CallTimes(first_s=1.0, median_s=seconds, mean_s=seconds, p99_s=seconds, worst_s=seconds, count=9)


@pytest.mark.parametrize(
    ("act_s", "learn_s", "ways"),
    [
        (1e-3, 1e-3, {8: "inline", 32: "inline"}),
        (1e-3, 0.5, {8: "background", 32: "background"}),
        (5e-3, 1e-3, {8: "inline", 32: "inline"}),
        (7e-3, 1e-3, {8: None, 32: "inline"}),
        (1e-3, 2.0, {8: None, 32: None}),
    ],
)
def test_a_fifth_of_a_cycle_stays_free_and_learning_ends_before_the_next(
    monkeypatch: pytest.MonkeyPatch, act_s: float, learn_s: float, ways: dict[int, str | None]
) -> None:
    monkeypatch.setattr(latency, "act_call", lambda *_: act_s)
    monkeypatch.setattr(latency, "learn_call", lambda *_, **__: learn_s)
    monkeypatch.setattr(latency, "measure", lambda call_s, budget_s: times(call_s))
    told: list[str] = []
    found = measure_real_time_fit(asked().own_agents([ms(8), ms(32)]), WorldFacts(ms(2), 9, 2), told.append, 1)
    assert {dt: each.way for dt, each in found.items()} == {ms(dt): way for dt, way in ways.items()}
    # A batch of 100 at 16 ms is 1.6 s at every cycle time.
    assert found[ms(8)] == RealTimeFit(act_s, learn_s, act_s / 8e-3, pytest.approx(learn_s / 1.6), ways[8])  # type: ignore[arg-type]
    assert told == ["Timing act ...", "Timing learn at 8ms ...", "Timing learn at 32ms ..."]


def test_the_machine_is_named() -> None:
    assert set(describe_machine()) == {"processor", "cores", "load"}
