import re
from math import exp

import pytest

from cycletime.horizons.candidates import PPO_CANDIDATES, numbers_of
from cycletime.horizons.subjects import SUBJECTS
from cycletime.rules import PPO
from cycletime.rules.own import own_rules_in, own_rules_table

TUNED = PPO(dt="16ms", discount=0.92, trace_decay=0.95, learning_rate=3e-4)


def test_each_has_one_or_two_numbers_and_a_name_that_a_table_can_have() -> None:
    assert not set(PPO_CANDIDATES) & set(PPO.rules)
    assert set(SUBJECTS["ppo"].references) <= set(PPO.rules)
    for name, rule in PPO_CANDIDATES.items():
        assert numbers_of(rule) in (1, 2)
        assert re.fullmatch(r"[a-z0-9-]+", name)
    assert numbers_of(PPO_CANDIDATES["floor-8-rate-half"]) == 2


def test_a_file_can_have_them() -> None:
    assert own_rules_in(own_rules_table(PPO_CANDIDATES)) == PPO_CANDIDATES


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
