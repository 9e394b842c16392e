"""Durations: exact parsing, exact printing, exact quotients."""

import copy
import pickle
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime.duration import Duration, DurationField, DurationLike, cycle_steps
from cycletime.errors import InputError

exact_seconds = st.fractions(min_value=Fraction(1, 10**9), max_value=10**6, max_denominator=10**12)


@pytest.mark.parametrize(
    "written", ["16ms", "0.016s", "0.016", "62.5Hz", " 16 MS ", "16e-3", "16000us", "16000µs", "2/125"]
)
def test_every_way_to_write_16_milliseconds_is_the_same_span(written: str) -> None:
    assert Duration(written) == Duration(0.016) == Duration(Fraction(2, 125)) == Duration(Decimal("0.016"))
    assert hash(Duration(written)) == hash(Duration("16ms"))


@pytest.mark.parametrize(
    ("given_as", "printed"),
    [
        ("62.5Hz", "16ms"),
        (0.0165, "16.5ms"),
        ("2.4s", "2.4s"),
        (0.25, "250ms"),
        ("100s", "100s"),
        ("60Hz", "60Hz"),
        (1 / 60, "60Hz"),
        ("7/30", "7/30s"),
        ("3h", "10800s"),
        ("1kHz", "1ms"),
        ("2min", "120s"),
        ("0.1s", "100ms"),
        ("0.9s", "900ms"),
        ("1s", "1s"),
        ("1001ms", "1.001s"),
        ("0.5ms", "500us"),
    ],
)
def test_prints_milliseconds_below_a_second_and_seconds_from_one_on(given_as: DurationLike, printed: str) -> None:
    assert str(Duration(given_as)) == printed
    assert repr(Duration(given_as)) == f"Duration({printed!r})"


@pytest.mark.parametrize(
    ("given_as", "shortest"),
    [("100ms", "0.1s"), ("250ms", "250ms"), ("10.005s", "10005ms"), ("60Hz", "60Hz"), ("7/30", "7/30s")],
)
def test_identities_have_the_shortest_exact_form(given_as: DurationLike, shortest: str) -> None:
    assert Duration(given_as).shortest == shortest


@given(exact_seconds)
def test_what_is_printed_is_read_back_exactly(seconds: Fraction) -> None:
    span = Duration(seconds)
    assert Duration(str(span)) == Duration(span.shortest) == span
    assert eval(repr(span)) == span


@given(st.integers(1, 10_000), st.integers(1, 200))
def test_a_float_product_is_the_decimal_it_was_meant_to_be(milliseconds: int, frame_skip: int) -> None:
    """Environments publish ``timestep * frame_skip``: 0.001 * 9 is 0.009000000000000001."""
    assert Duration.of_seconds(milliseconds / 1000 * frame_skip) == Duration(Fraction(milliseconds * frame_skip, 1000))


def test_a_float_that_is_near_no_simple_fraction_is_taken_as_printed() -> None:
    assert Duration(0.0123456789012345).exact_s == Fraction("0.0123456789012345")


@given(st.decimals(min_value=Decimal("0.000001"), max_value=100_000, places=6))
def test_a_float_is_what_it_prints_as(seconds: Decimal) -> None:
    assert Duration.of_seconds(float(seconds)) == Duration(f"{seconds}s") == Duration(Fraction(seconds))


def test_numpy_s_numbers_are_read_as_they_print() -> None:
    assert Duration(np.float32(0.016)) == Duration(np.float64(0.016)) == Duration("16ms")  # type: ignore[arg-type]
    assert Duration.of_seconds(np.int64(2)) == Duration("2s")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        *("", "ms", "16mm", "-16ms", "0", "0Hz", "nan", "inf", "1/0", "1.2.3", "1e999999999", "1e-300", "9" * 100),
        *(0, -1, 0.0, float("nan"), float("inf"), 1e300, True, None, [16], Decimal("NaN"), Fraction(0)),
    ],
)
def test_what_is_no_time_span_is_refused_with_its_value(wrong: object) -> None:
    with pytest.raises(InputError) as refusal:
        Duration(wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        Duration.of_seconds(wrong)  # type: ignore[arg-type]
    assert repr(wrong) in str(refusal.value)
    assert "'16ms'" in str(refusal.value)


@pytest.mark.parametrize(
    ("typed", "asks"),
    [
        ("16", "'16' has no unit: write '16ms' for milliseconds, '16s' for seconds or '16Hz'."),
        (" 1.0 ", "' 1.0 ' has no unit: write '1.0ms' for milliseconds, '1.0s' for seconds or '1.0Hz'."),
        ("3/2", "'3/2' has no unit: write '3/2ms' for milliseconds, '3/2s' for seconds or '3/2Hz'."),
        ("1e3", "'1e3' has no unit: write '1e3ms' for milliseconds, '1e3s' for seconds or '1e3Hz'."),
    ],
)
def test_text_of_a_second_or_more_is_asked_for_its_unit(typed: str, asks: str) -> None:
    with pytest.raises(InputError) as question:
        Duration(typed)
    assert str(question.value) == asks
    assert Duration(f"{typed.strip()}s") == Duration(f"{typed.strip()}ms") * 1000


def test_less_than_a_second_needs_no_unit() -> None:
    assert Duration("0.999") == Duration(0.999) == Duration("999ms")


@pytest.mark.parametrize("number", [16, 16.0, 1, Decimal(16), np.float32(16), np.int64(2)])
def test_a_number_of_a_second_or_more_is_asked_for_its_unit_or_said_to_be_seconds(number: DurationLike) -> None:
    with pytest.raises(InputError, match=f"'{number}' has no unit: write '{number}ms' for milliseconds"):
        Duration(number)
    assert Duration.of_seconds(number) == Duration(f"{number}s") == Duration(Fraction(str(number)))  # type: ignore[arg-type]


def test_spans_are_ordered_multiplied_and_divided_exactly() -> None:
    assert Duration("8ms") < Duration("125.5ms") < Duration("1s")
    assert 3 * Duration("0.04") == Duration("0.12") == Duration("0.04") * 3
    assert Duration("0.12") / Duration("0.04") == 3
    assert float(Duration("16ms")) == 0.016


def test_floor_division_does_not_exist() -> None:
    with pytest.raises(TypeError):
        Duration("0.12") // Duration("0.04")  # type: ignore[operator]


def test_spans_survive_copying_and_pickling() -> None:
    span = Duration("16.5ms")
    assert copy.deepcopy(span) == pickle.loads(pickle.dumps(span)) == span


def test_a_span_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Duration("16ms").exact_s = Fraction(1)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("dt", "env_dt", "steps"),
    [
        (0.12, 0.04, 3),
        ("64ms", "2ms", 32),
        ("16ms", "16ms", 1),
        (0.3, 0.1, 3),
        ("50Hz", "1kHz", 20),
        (1 / 30, 1 / 60, 2),
    ],
)
def test_cycle_steps_are_exact(dt: DurationLike, env_dt: DurationLike, steps: int) -> None:
    assert cycle_steps(dt, env_dt) == steps


@given(exact_seconds, st.integers(1, 10_000))
def test_every_multiple_is_accepted(env_dt: Fraction, steps: int) -> None:
    assert cycle_steps(env_dt * steps, env_dt) == steps


@pytest.mark.parametrize(
    ("dt", "env_dt", "below", "above"),
    [("15ms", "2ms", "14ms", "16ms"), ("1ms", "2ms", "2ms", "4ms"), (0.1, 0.04, "80ms", "120ms")],
)
def test_no_multiple_is_refused_naming_both_and_the_neighbours(
    dt: DurationLike, env_dt: DurationLike, below: str, above: str
) -> None:
    with pytest.raises(InputError) as refusal:
        cycle_steps(dt, env_dt)
    message = str(refusal.value)
    assert f"cycle time {Duration(dt)} is not a whole multiple" in message
    assert f"time step {Duration(env_dt)}:" in message
    assert f"{below} and {above}" in message
    assert cycle_steps(below, env_dt) + 1 == cycle_steps(above, env_dt)


def test_a_duration_field_reads_what_it_is_given() -> None:
    @dataclass(frozen=True)
    class Beat:
        dt: DurationField = DurationField()

    assert Beat("16ms") == Beat(0.016)
    assert Beat(dt="62.5Hz").dt == Duration("16ms")
    with pytest.raises(InputError, match="'x' is not a time span"):
        Beat("x")
    with pytest.raises(TypeError, match="dt"):
        Beat()
