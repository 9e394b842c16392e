"""Horizons in seconds are lists of rates, and are refused where they make no sense."""

from math import log
from typing import Any

import pytest

from cycletime.errors import InputError
from cycletime.studies.tuning_spec import Tuning, tuning_from_table

PPO: dict[str, Any] = {
    "name": "toy",
    "task": "reacher",
    "algorithm": "ppo",
    "dt": "8ms",
    "env_steps": 100_000,
    "tuned": {"batch": 4000, "minibatch": 100},
}


def horizons_s(tuning: Tuning, name: str) -> list[float]:
    return [-float(tuning.dt) / log(rate) for rate in tuning.choices[name]]


def test_a_table_says_which_horizons_are_tried_in_seconds() -> None:
    tuning = tuning_from_table(
        {**PPO, "horizons": {"discount": [0.2, "1.5s", "0.25Hz"], "trace_decay": ["0.1s", "0.4s"]}}
    )
    assert horizons_s(tuning, "discount") == pytest.approx([0.2, 1.5, 4.0])
    assert horizons_s(tuning, "trace_decay") == pytest.approx([0.1, 0.4])
    assert len(tuning.grid()) == 6
    with pytest.raises(InputError, match="'4' has no unit: write '4ms'"):
        tuning_from_table({**PPO, "horizons": {"discount": [4]}})
    cell = tuning.cell(tuning.grid()[0])
    assert (cell.labels["discount"], cell.agent.period) == (tuning.choices["discount"][0], 4000)


@pytest.mark.parametrize(("algorithm", "trials"), [("ppo", 28), ("sac", 7), ("actor-critic", 7)])
def test_the_usual_ones_follow_the_cycle_time(algorithm: str, trials: int) -> None:
    tuning = tuning_from_table({**PPO, "algorithm": algorithm, "tuned": {}, "horizons": True})
    assert horizons_s(tuning, "discount") == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2])
    assert len(tuning.grid()) == trials


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"horizons": False}, "horizons is False: it must be true, or a table such as"),
        ({"horizons": {}}, "horizons is {}: it must be true, or a table such as"),
        ({"horizons": {"discount": "1s"}}, r"horizons has discount = '1s': give a list of times"),
        ({"horizons": {"discount": []}}, r"horizons has discount = \[\]: give a list of times"),
        ({"horizons": {"discount": ["0s", "1s"]}}, "'0s' is not a time span: give a positive time"),
        ({"horizons": {"batch": ["1s"]}}, "horizons has 'batch': ppo has discount, trace_decay."),
        (
            {"horizons": {"trace_decay": ["1s"]}, "algorithm": "sac", "tuned": {}},
            "horizons has 'trace_decay': sac has discount.",
        ),
        (
            {"horizons": True, "tuned": {"discount": 0.99}},
            "discount has a value in 'tuned', and horizons are to be tried: leave one of them out.",
        ),
        (
            {"horizons": True, "search": {"discount": {"low": 0.5, "high": 0.9}}},
            "discount has a range in 'search' and a value elsewhere: give one of them.",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        tuning_from_table({**PPO, **changed})


def test_usual_horizons_need_a_command_that_takes_them_all() -> None:
    command = {"command": ["x", "{discount}", "{seed}"]}
    table = {**PPO, "tuned": {}, "trainer": command, "horizons": True}
    with pytest.raises(InputError, match=r"horizons tries trace_decay, .*: add {trace_decay}, or give a table"):
        tuning_from_table(table)
    assert len(tuning_from_table({**table, "horizons": {"discount": ["1s", "2s"]}}).grid()) == 2
