"""The rules as data: each formula, computed by itself, gives what its law computes."""

import json
import math
from fractions import Fraction

import pytest

from cycletime.libraries import LIBRARIES
from cycletime.libraries.calculator_data import SECONDS_FORMULAS, calculator_data
from cycletime.rules import ALGORITHMS, SAC, laws
from cycletime.rules.laws import nearest_whole

VALUES = (0.003, 0.5, 0.95, 0.99)
RATIOS = (Fraction(1, 4), Fraction(3, 5), Fraction(1), Fraction(7, 2))
LAWS = {
    law.formula: law
    for kind in ALGORITHMS.values()
    for law in (
        *(law for rule in kind.rules.values() for law in rule.laws.values()),
        *(law for part in kind.parts.values() for law in (part.law, *part.with_updates.values())),
    )
} | {law.formula: law for law in (laws.capped_power_with_floor(6), laws.rho_power(-0.25), laws.entropy_shift(3))}


def computed(formula: str, **variables: float) -> float:
    """A formula as people write it."""
    names = {"ln": math.log, "sqrt": math.sqrt, "min": min, "max": max, "e": math.e, "round": nearest_whole}
    if formula.startswith("kept"):
        return variables["x0"]
    return float(eval(formula.replace("^", "**"), {"__builtins__": {}}, {**names, **variables}))


@pytest.mark.parametrize("formula", list(LAWS))
@pytest.mark.parametrize("rho", RATIOS)
def test_a_law_computes_what_its_formula_says(formula: str, rho: Fraction) -> None:
    for value in VALUES:
        assert math.isclose(LAWS[formula](value, rho), computed(formula, x0=value, rho=float(rho)), rel_tol=1e-12)


@pytest.mark.parametrize(("meaning", "formula"), SECONDS_FORMULAS.items(), ids=list(SECONDS_FORMULAS.values()))
def test_a_meaning_in_seconds_is_what_its_formula_says(meaning: object, formula: str) -> None:
    for value in VALUES:
        assert callable(meaning)
        assert math.isclose(meaning(value, 0.016), computed(formula, x=value, dt=0.016), rel_tol=1e-12)


def test_all_algorithms_and_libraries_are_there_as_plain_json() -> None:
    told = json.loads(json.dumps(calculator_data(), allow_nan=False))
    assert list(told["algorithms"]) == list(ALGORITHMS)
    for name, library in LIBRARIES.items():
        assert set(told["libraries"][name]["algorithms"]) == {each for each in ALGORITHMS if each in library}
    assert told["algorithms"]["ppo"]["rules"]["dt-aware"]["discount"] == "min(x0, x0^rho)"
    assert told["algorithms"]["ppo"]["baseline"] == {
        "batch": 2000,
        "minibatch": 50,
        "discount": 0.99,
        "trace_decay": 0.95,
    }


def test_a_part_that_updates_change_says_so() -> None:
    part = calculator_data()["algorithms"]["sac"]["parts"]["target-smoothing"]
    assert part["formula"] == "1 - (1 - x0)^rho"
    grown = "max(1, round(rho))"
    assert part["with_updates"] == {"x0 * rho": "kept, per update", f"x0 * {grown}": f"1 - (1 - x0)^(rho / {grown})"}


def test_the_entropys_formula_has_the_action_size_in_it() -> None:
    formula = calculator_data()["algorithms"]["sac"]["parts"]["target-entropy"]["formula"]
    after = SAC(dt="16ms", target_entropy=-3.0, action_size=3).at("4ms", also="target-entropy").target_entropy
    assert after is not None
    assert math.isclose(after, computed(formula, x0=-3.0, rho=0.25, d=3))
