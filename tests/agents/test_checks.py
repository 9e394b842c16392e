"""Refusals of wrong fields: the value, and what would be right."""

from types import SimpleNamespace

import pytest

from cycletime.agents import PPOAgent, SACAgent
from cycletime.agents.checks import check_choice, check_counts, check_fractions, check_hidden, check_positive
from cycletime.errors import InputError

NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize("value", [0, -1, 1.0, "3", True, None])
def test_counts_are_whole_numbers(value: object) -> None:
    with pytest.raises(InputError, match=f"steps is {value!r}: .* whole number of at least 1"):
        check_counts(SimpleNamespace(fine=1, steps=value), "fine", "steps")


def test_counts_may_begin_elsewhere() -> None:
    check_counts(SimpleNamespace(steps=0), "steps", least=0)
    with pytest.raises(InputError, match=r"steps is 4: .* at least 5"):
        check_counts(SimpleNamespace(steps=4), "steps", least=5)


@pytest.mark.parametrize("value", [-1e-9, 1.000001, NAN, INFINITY])
def test_fractions_lie_between_zero_and_one(value: float) -> None:
    check_fractions(SimpleNamespace(least=0, most=1.0), "least", "most")
    with pytest.raises(InputError, match=f"share is {value!r}: .* between 0 and 1"):
        check_fractions(SimpleNamespace(fine=0.5, share=value), "fine", "share")


@pytest.mark.parametrize("value", [0, 0.0, -0.0, -2, NAN, -INFINITY, INFINITY, True, "1"])
def test_what_must_be_positive_is_above_zero(value: object) -> None:
    with pytest.raises(InputError, match=f"rate is {value!r}: .* above 0"):
        check_positive(SimpleNamespace(fine=1e-300, rate=value), "fine", "rate")


def test_choices_are_quoted() -> None:
    check_choice(SimpleNamespace(colour="red"), "colour", ("red", "blue"))
    with pytest.raises(InputError, match=r"colour is 'Red': .* 'red' or 'blue'"):
        check_choice(SimpleNamespace(colour="Red"), "colour", ("red", "blue"))


@pytest.mark.parametrize("hidden", [(), (1,), (64, 64), (3, 2, 1)])
def test_layers_may_be_any_number_of_sizes(hidden: tuple[int, ...]) -> None:
    check_hidden(SimpleNamespace(hidden=hidden))


@pytest.mark.parametrize("hidden", [[64, 64], 64, (64, 0), (-1,), (64.0,), ("64",), None])
def test_layers_are_a_tuple_of_sizes(hidden: object) -> None:
    with pytest.raises(InputError, match=rf"hidden is .*{str(hidden)[1:-1]}.*: .* layer sizes"):
        check_hidden(SimpleNamespace(hidden=hidden))


def test_sizes_that_no_memory_has_room_for_are_refused() -> None:
    with pytest.raises(InputError, match=r"hidden is \(1000000000,\): it must be .* of at most 8192"):
        PPOAgent(hidden=(10**9,))
    with pytest.raises(InputError, match="epochs is 1000000000: a learning would draw 2,000,000,000,000 numbers"):
        PPOAgent(epochs=10**9)
    with pytest.raises(InputError, match="gradient_steps is 1000000000: a learning would draw"):
        SACAgent(gradient_steps=10**9)
