"""Explanations: the table that people read and the JSON that programs read."""

import json
from math import isclose, log

import pytest

from cycletime.rules import PPO, SAC
from cycletime.rules.hyperparameters import explain_values, transfer_as_json


def row(text: str, name: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith(name)]
    return line


def test_the_table_has_before_after_formula_and_seconds() -> None:
    text = PPO(dt="16ms").at("64ms").explain()
    assert text.startswith("PPO from 16ms to 64ms, rule 'dt-aware', rho = dt/dt0 = 4")
    assert row(text, "batch").split("  ")[0] == "batch (b)"
    assert "2000" in row(text, "batch")
    assert row(text, "batch").endswith("  32 s")
    assert "min(x0, x0^rho)" in row(text, "discount")
    assert "0.960596" in row(text, "discount")
    assert row(text, "discount").endswith("  1.59 s")
    assert text.count("note: ") == 2
    assert text.splitlines()[-1].startswith("Use these values: from gamma .99")
    assert "min(x0, x0^rho), the paper's dt-aware gamma and lambda" in explain_values(
        PPO(dt="16ms").at("64ms"), details=True
    )


def test_values_that_were_not_carried_have_a_table_too() -> None:
    assert row(explain_values(PPO(dt="16ms")), "discount").endswith("1.59 s")


def test_a_discount_of_one_is_unlimited_in_text_and_null_in_json() -> None:
    carried = PPO(dt="16ms", discount=1).at("4ms")
    assert row(carried.explain(), "discount").endswith("  unlimited")
    assert transfer_as_json(carried)["seconds"]["to"]["discount_horizon"] is None
    assert "Infinity" not in json.dumps(transfer_as_json(carried))


def test_the_json_of_ppo() -> None:
    data = transfer_as_json(PPO(dt="16ms").at("4ms"))
    assert list(data) == ["algorithm", "rule", "from", "to", "seconds", "notes", "not_carried", "recommended"]
    assert data["to"] == {"dt_s": 0.004, "batch": 8000, "minibatch": 200, "discount": 0.99, "trace_decay": 0.95}
    assert data["from"]["dt_s"] == 0.016
    assert set(data["seconds"]["to"]) == {"batch_time", "minibatch_time", "discount_horizon", "trace_horizon"}
    assert isclose(data["seconds"]["to"]["discount_horizon"], -0.004 / log(0.99))


def test_the_json_of_sac_has_the_discount_and_what_was_switched_on() -> None:
    assert list(transfer_as_json(SAC(dt="16ms", discount=0.851).at("4ms"))["to"]) == ["dt_s", "discount"]
    data = transfer_as_json(SAC(dt="16ms", discount=0.851).at("4ms", also=["warm-up"]))
    assert list(data["to"]) == ["dt_s", "discount", "warmup_steps"]
    assert data["seconds"]["to"]["warmup_time"] == 160


def test_only_carried_values_have_a_transfer() -> None:
    with pytest.raises(ValueError, match="carried"):
        transfer_as_json(PPO(dt="16ms"))
