import pytest

from cycletime.duration import Duration
from cycletime.reports.formatting import difference_text, dt_text, estimate_text, hours_text, join_words, rough_number
from cycletime.statistics import Estimate


def estimate(value: float, low: float | None, high: float | None, interval: str = "standard error") -> Estimate:
    return Estimate(value, low, high, interval, (3,))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (estimate(-16.5206, -16.83, -16.21), "-16.52 ± 0.31"),
        (estimate(-8.94, -20.44, 2.56), "-8.9 ± 11.5"),
        (estimate(1234.4, 1134.4, 1334.4), "1234 ± 100"),
        (estimate(0.0, 0.0, 0.0), "0 ± 0"),
        (estimate(-20.0, -20.0, -20.0), "-20 ± 0"),
        (estimate(3.14159, None, None, "no interval from 1 run"), "3.142"),
        (estimate(-11.2, -22.4, -0.04, "95 % t"), "-11 [-22, 0]"),
        (estimate(1.0, 1.0 - 1e-12, 1.0 + 1e-12), "1.0 ± 0.0"),
    ],
)
def test_numbers_have_the_digits_that_count(given: Estimate, said: str) -> None:
    assert estimate_text(given) == said


def test_differences_have_signs() -> None:
    assert difference_text(estimate(1.5, 0.5, 2.5, "95 % Welch t")) == "+1.5 (+0.5 to +2.5, 95 % Welch t, n = 3)"
    assert difference_text(estimate(-2.0, None, None, "no interval from 1 run")) == "-2 (no interval from 1 run, n = 3)"


def test_where_pairs_have_equal_noise_the_interval_has_no_digits_of_rounding() -> None:
    exact = estimate(4.75, 4.75 - 1e-15, 4.75 + 1e-15, "95 % paired t")
    assert difference_text(exact) == "+4.75 (+4.75 to +4.75, 95 % paired t, n = 3)"
    assert difference_text(estimate(1e-17, -3.0, 3.0, "t")) == "+0.0 (-3.0 to +3.0, t, n = 3)"


def test_an_end_near_zero_keeps_its_sign() -> None:
    assert difference_text(estimate(1.5, -0.02, 3.02, "t")) == "+1.50 (-0.02 to +3.02, t, n = 3)"
    assert difference_text(estimate(1.5, 0.0, 3.0, "t")) == "+1.5 (+0.0 to +3.0, t, n = 3)"


@pytest.mark.parametrize(("given", "said"), [("16ms", "16 ms"), ("2s", "2 s"), ("60Hz", "60 Hz"), ("125us", "125 us")])
def test_cycle_times_have_a_space_before_the_unit(given: str, said: str) -> None:
    assert dt_text(Duration(given)) == said


def test_lists_and_hours_read_as_people_say_them() -> None:
    assert [join_words(["a", "b", "c"][:count]) for count in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert [hours_text(each) for each in (None, 0.0123, 12.34, 20_000.0)] == [
        "an unknown time",
        "0.0123 h",
        "12.3 h",
        "20,000 h",
    ]


def test_a_return_is_told_in_three_digits_and_never_as_a_power_of_ten() -> None:
    amounts = (0.0, -0.662, 20.63, 99.94, 99.96, 341.7, 999.7, 9359.6, -12_345.6)
    told = ["0", "-0.662", "20.6", "99.9", "100", "342", "1,000", "9,360", "-12,346"]
    assert [rough_number(each) for each in amounts] == told
