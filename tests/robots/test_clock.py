"""Beats at absolute deadlines, in virtual time, and the clocks that they can be of."""

import pytest

from cycletime.errors import InputError
from cycletime.robots.clock import RobotClock, Ticker, WallClock
from tests.robots.ur.virtual import VirtualClock


class OversleepingClock(VirtualClock):
    """Wakes sleepers too late, as systems do."""

    def sleep_until(self, time_s: float) -> None:
        super().sleep_until(time_s + 0.001)


def test_lateness_does_not_add_up() -> None:
    beats = Ticker("10ms", OversleepingClock(5.0))
    for number in range(1, 1001):
        beat = beats.wait()
        assert (beat.number, beat.missed) == (number, 0)
        assert beat.scheduled_s == pytest.approx(5.0 + 0.01 * number, abs=1e-9)
        assert beat.woke_s - beat.scheduled_s == pytest.approx(0.001)


def test_who_is_late_joins_the_grid_again_without_a_burst() -> None:
    clock = VirtualClock(0.0)
    beats = Ticker("10ms", clock)
    beats.wait()
    clock.time_s += 0.034  # to 44 ms: the beats at 20, 30 and 40 ms are over
    late = beats.wait()
    assert (late.number, late.missed) == (5, 3)
    assert (late.woke_s, late.late_s) == pytest.approx((0.05, 0.024))
    assert (beats.wait().number, clock.time_s) == pytest.approx((6, 0.06))


def test_who_asks_on_the_point_is_not_late() -> None:
    clock = VirtualClock(0.0)
    beats = Ticker("125ms", clock)
    clock.time_s = 0.125
    beat = beats.wait()
    assert (beat.number, beat.missed, beat.late_s, clock.time_s) == (1, 0, 0.0, 0.125)


def test_the_wall_clock_never_wakes_early() -> None:
    clock = WallClock()
    wanted = clock.now_s() + 0.002
    clock.sleep_until(wanted)
    assert clock.now_s() >= wanted


def test_at_a_pace_seconds_are_shorter() -> None:
    real, fast = WallClock(), WallClock(20)
    before_real, before_fast = real.now_s(), fast.now_s()
    fast.sleep_until(before_fast + 0.04)
    assert fast.now_s() - before_fast >= 0.04
    assert before_fast == pytest.approx(20 * before_real, abs=20)


@pytest.mark.parametrize("pace", [0, -1, float("nan"), float("inf")])
def test_a_pace_must_be_a_positive_number(pace: float) -> None:
    with pytest.raises(InputError, match=f"{pace!r} is no pace: give how many seconds pass in a real one"):
        WallClock(pace)


def test_the_robots_clock_is_that_of_its_packages_and_wakes_with_the_newest_that_is_not_too_late() -> None:
    times = [0.0]
    clock = RobotClock(lambda: times[-1], lambda: times.append(0.008 * len(times)), 0.008)
    beats, newest = Ticker("20ms", clock), []
    for number in range(1, 5):
        beat = beats.wait()
        assert beat.number == number
        assert beat.woke_s == pytest.approx(0.02 * number)
        newest.append(times[-1])
    assert newest == pytest.approx([0.016, 0.04, 0.056, 0.08])


def test_the_robots_clock_stands_still_while_nobody_waits() -> None:
    clock = RobotClock(lambda: 3.0, lambda: pytest.fail("nothing is received"), 0.008)
    assert clock.now_s() == clock.now_s() == 3.0
    clock.sleep_until(2.0)
    assert clock.now_s() == 3.0


def test_points_that_are_slept_through_are_left_out_at_once() -> None:
    class Sound(VirtualClock):
        def sleep_until(self, time_s: float) -> None:
            super().sleep_until(0.104)

    beat = Ticker("40ms", clock := Sound(0.0)).wait()
    assert (beat.number, beat.missed, beat.late_s) == (2, 1, 0.0)
    assert beat.woke_s - beat.scheduled_s == pytest.approx(0.024)
    assert clock.time_s == 0.104
