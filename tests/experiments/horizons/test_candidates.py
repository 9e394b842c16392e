import re
from math import exp

import pytest

from cycletime.experiments.horizons.candidates import (
    ALGORITHM_SPECS,
    PPO_CANDIDATES,
    SAC_CANDIDATES,
    SAC_SUGGESTED,
)
from cycletime.rules import PPO, SAC, Rule
from cycletime.rules.rule import own_rules_as_table, parse_own_rules
from tests.experiments.horizons.freezing import count_parameters

TUNED = PPO(dt="16ms", discount=0.92, trace_decay=0.95, learning_rate=3e-4)


def test_each_has_one_or_two_numbers_and_a_name_that_a_table_can_have() -> None:
    assert not set(PPO_CANDIDATES) & set(PPO.rules)
    assert set(ALGORITHM_SPECS["ppo"].references) <= set(PPO.rules)
    for name, rule in PPO_CANDIDATES.items():
        assert count_parameters(rule) in (1, 2)
        assert re.fullmatch(r"[a-z0-9-]+", name)
    assert count_parameters(PPO_CANDIDATES["floor-8-rate-half"]) == 2


def test_those_of_sac_are_a_handful_and_have_a_number_where_there_is_a_floor() -> None:
    numbers = {name: count_parameters(rule) for name, rule in SAC_CANDIDATES.items()}
    assert numbers == {
        "floor-6": 1,
        "scaled-smoothing": 0,
        "scaled-updates": 0,
        "floor-6-smoothing": 1,
        "floor-6-updates": 1,
        "floor-6-more-updates": 1,
    }


@pytest.mark.parametrize(("to", "like"), [("8ms", "floor-6"), ("64ms", "floor-6-updates")])
def test_what_the_search_suggested_needs_no_run_of_its_own(to: str, like: str) -> None:
    start = SAC(dt="16ms", discount=0.92, target_smoothing=0.005, updates_per_step=1)
    assert start.at(to, SAC_CANDIDATES[SAC_SUGGESTED]) == start.at(to, SAC_CANDIDATES[like])


@pytest.mark.parametrize("candidates", [PPO_CANDIDATES, SAC_CANDIDATES], ids=["ppo", "sac"])
def test_a_file_can_have_them(candidates: dict[str, Rule]) -> None:
    assert parse_own_rules(own_rules_as_table(candidates)) == candidates


@pytest.mark.parametrize(
    ("name", "discount", "trace_decay", "rate"),
    [
        ("floor-6", exp(-1 / 6), exp(-1 / 6), 3e-4),
        ("gamma-floor-6", exp(-1 / 6), 0.95**4, 3e-4),
        ("floor-4", exp(-1 / 4), 0.95**4, 3e-4),
        ("scaled-rate-half", 0.92**4, 0.95**4, 1.5e-4),
        ("floor-6-min-rate-quarter", exp(-1 / 6), exp(-1 / 6), 3e-4 / 2**0.5),
    ],
)
def test_they_do_what_they_are_called(name: str, discount: float, trace_decay: float, rate: float) -> None:
    long = TUNED.at("64ms", PPO_CANDIDATES[name])
    assert (long.batch, long.minibatch) == (500, 12)
    assert [long.discount, long.trace_decay, long.learning_rate] == pytest.approx([discount, trace_decay, rate])


def test_a_min_raises_no_learning_rate() -> None:
    rates = [TUNED.at("4ms", PPO_CANDIDATES[f"scaled-{word}rate-half"]).learning_rate for word in ("", "min-")]
    assert rates == pytest.approx([6e-4, 3e-4])
