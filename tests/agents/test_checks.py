"""Refusals: one sentence with the value and what would be right."""

from types import SimpleNamespace

import pytest

from cycletime.agents.checks import check_choice, check_counts, check_fractions, check_hidden, check_positive
from cycletime.errors import InputError


@pytest.mark.parametrize("value", [0, -1, 1.0, "3", True, None])
def test_counts_are_whole_numbers(value: object) -> None:
    with pytest.raises(InputError) as refusal:
        check_counts(SimpleNamespace(fine=1, steps=value), "fine", "steps")
    assert str(refusal.value) == f"steps is {value!r}: it must be a whole number of at least 1."


def test_counts_may_begin_elsewhere() -> None:
    check_counts(SimpleNamespace(steps=0), "steps", least=0)
    with pytest.raises(InputError, match=r"^steps is 4: it must be a whole number of at least 5\.$"):
        check_counts(SimpleNamespace(steps=4), "steps", least=5)


@pytest.mark.parametrize("value", [-1e-9, 1.000001, float("nan"), float("inf")])
def test_fractions_lie_between_zero_and_one(value: float) -> None:
    with pytest.raises(InputError) as refusal:
        check_fractions(SimpleNamespace(fine=0.5, share=value), "fine", "share")
    assert str(refusal.value) == f"share is {value!r}: it must lie between 0 and 1."


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, 0.99])
def test_fractions_may_be_zero_or_one(value: float) -> None:
    check_fractions(SimpleNamespace(share=value), "share")


@pytest.mark.parametrize("value", [0, 0.0, -0.0, -2, float("nan"), float("-inf")])
def test_what_must_be_positive_is_above_zero(value: float) -> None:
    with pytest.raises(InputError) as refusal:
        check_positive(SimpleNamespace(fine=1e-300, rate=value), "fine", "rate")
    assert str(refusal.value) == f"rate is {value!r}: it must be above 0."


def test_choices_are_quoted() -> None:
    check_choice(SimpleNamespace(colour="red"), "colour", ("red", "blue"))
    with pytest.raises(InputError) as refusal:
        check_choice(SimpleNamespace(colour="Red"), "colour", ("red", "blue"))
    assert str(refusal.value) == "colour is 'Red': it must be 'red' or 'blue'."


@pytest.mark.parametrize("hidden", [(), (1,), (64, 64), (3, 2, 1)])
def test_layers_may_be_any_number_of_sizes(hidden: tuple[int, ...]) -> None:
    check_hidden(SimpleNamespace(hidden=hidden))


@pytest.mark.parametrize("hidden", [[64, 64], 64, (64, 0), (-1,), (64.0,), ("64",), None])
def test_layers_are_a_tuple_of_sizes(hidden: object) -> None:
    with pytest.raises(InputError) as refusal:
        check_hidden(SimpleNamespace(hidden=hidden))
    assert str(refusal.value) == f"hidden is {hidden!r}: it must be a tuple of layer sizes, such as (64, 64)."
