"""The calculator's scripts in a small JavaScript engine: what they compute and say is what Python does."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import quickjs

import cycletime
from cycletime.libraries import LIBRARIES
from cycletime.libraries.calculator_data import calculator_data
from tests.reports.page.random_transfers import IN_JAVASCRIPT, assert_same, by_python, draw_transfer

ASSETS = Path(cycletime.__file__).parent / "reports" / "page" / "assets"
SCRIPTS = ("numbers.js", "rules.js", "libraries.js")


@pytest.fixture(scope="module")
def engine() -> quickjs.Context:
    context = quickjs.Context()
    for name in SCRIPTS:
        context.eval((ASSETS / name).read_text(encoding="utf-8"))
    context.eval(f"cycletime.tables = {json.dumps(calculator_data())}; var carryAll = {IN_JAVASCRIPT};")
    return context


def by_javascript(engine: quickjs.Context, asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(engine.eval(f"JSON.stringify(carryAll({json.dumps(asked)}))"))
    return found


def test_the_calculator_agrees_with_python_on_random_transfers(engine: quickjs.Context) -> None:
    rng = random.Random(21)
    asked = [draw_transfer(rng) for _ in range(800)]
    found = by_javascript(engine, asked)
    assert_same(asked, found)
    assert sum("error" in each for each in found) < len(found) / 3
    assert {(each["library"], each["algorithm"]) for each in asked} == {
        (name, algorithm) for name, tables in LIBRARIES.items() for algorithm in tables
    }


SAC = {"algorithm": "sac", "from": "20ms", "to": "10ms", "rule": "tuned", "also": [], "actionSize": "", "values": {}}


@pytest.mark.parametrize(
    ("batch", "minibatch", "to", "count"),
    [(380, 19, "40ms", "19"), (736, 23, "160ms", "32")],  # 190 is 5.3 % from 200, and 92 is 4.3 % from 96
)
def test_a_count_stays_where_the_batch_changes_by_five_percent_at_most(
    batch: int, minibatch: int, to: str, count: str, engine: quickjs.Context
) -> None:
    ppo = {**SAC, "algorithm": "ppo", "rule": "constant", "library": "purejaxrl", "nEnvs": 1, "to": to}
    asked = [{**ppo, "values": {"batch": str(batch), "minibatch": str(minibatch)}}]
    found = by_javascript(engine, asked)
    assert_same(asked, found)
    assert found[0]["settings"]["NUM_MINIBATCHES"] == count


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (
            {"library": "skrl", "nEnvs": 1000, "values": {"replay_capacity": "400"}},
            "skrl's memory_size is 0: it must be a whole number of at least 1.",
        ),
        (
            {"library": "rejax", "nEnvs": 1, "values": {"target_smoothing": "1e-17"}},
            "target_smoothing is 0.0: it must be a number in (0, 1].",
        ),
        (
            {"library": "stoix", "nEnvs": 1, "values": {"target_entropy": "-3"}},
            "system.target_entropy_scale is a multiple of the action's size: give action_size.",
        ),
    ],
)
def test_what_a_library_cannot_say_is_refused_in_the_same_words(
    asked: dict[str, Any], says: str, engine: quickjs.Context
) -> None:
    whole = {**SAC, **asked}
    assert by_python(whole) == {"error": says}
    assert by_javascript(engine, [whole]) == [{"error": says}]
