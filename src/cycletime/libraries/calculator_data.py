"""The rules as plain data, for programs that are not Python: the calculator of the page evaluates these formulas.

A law is a formula of ``x0``, ``rho`` and, for the target entropy, ``d``, the action's size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from math import isfinite
from typing import Any

from cycletime.libraries.names import DISPLAY_NAMES, LIBRARIES
from cycletime.libraries.synonyms import our_fields
from cycletime.rules import ALGORITHMS, quantities
from cycletime.rules.hyperparameters import Hyperparameters
from cycletime.rules.laws import ENTROPY_FORMULA
from cycletime.rules.quantities import Quantity, SecondsFormula
from cycletime.rules.rule import HORIZON_FIELDS

SECONDS_FORMULAS: Mapping[SecondsFormula, str] = {
    quantities.steps_in_seconds: "x * dt",
    quantities.decay_in_seconds: "-dt / ln(x)",
    quantities.smoothing_in_seconds: "-dt / ln(1 - x)",
    quantities.updates_in_seconds: "dt / x",
}
"""Formulas of ``x`` and ``dt``; an infinite one is 'unlimited'."""


def calculator_data() -> dict[str, Any]:
    return {
        "algorithms": {name: _algorithm(kind) for name, kind in ALGORITHMS.items()},
        "libraries": {
            library: {
                "spoken": DISPLAY_NAMES.get(library, library),
                "algorithms": {algorithm: _tagged(words) for algorithm, words in tables.items()},
                "fields": {algorithm: our_fields(library, algorithm) for algorithm in tables},
            }
            for library, tables in LIBRARIES.items()
        },
    }


def _algorithm(kind: type[Hyperparameters]) -> dict[str, Any]:
    baseline = kind(dt="16ms")
    return {
        "quantities": [_quantity(quantity) for quantity in kind.quantities],
        "baseline": baseline.stated(),
        "whose_baseline": kind.whose_baseline,
        "has_action_size": any(each.name == "action_size" for each in fields(kind)),
        "rules": {name: {field: law.formula for field, law in rule.laws.items()} for name, rule in kind.rules.items()},
        "recommended": {
            "untuned": kind.recommended.untuned._asdict(),
            "tuned": kind.recommended.tuned._asdict(),
            "many": {"environments": kind.recommended.many_envs, "why": kind.recommended.many},
            "defaults": {field: value for field, value in baseline.stated().items() if field in HORIZON_FIELDS},
        },
        "rules_of": kind.rules_of,
        "parts": {name: _part(kind, name) for name in kind.parts},
    }


def _quantity(quantity: Quantity) -> dict[str, Any]:
    return {
        **vars(quantity),
        "low": quantity.low if isfinite(quantity.low) else None,
        "high": quantity.high if isfinite(quantity.high) else None,
        "seconds": SECONDS_FORMULAS[quantity.seconds] if quantity.span else None,
        "is_horizon": quantity.is_horizon,
    }


def _part(kind: type[Hyperparameters], name: str) -> dict[str, Any]:
    """A part, with the formulas that it has beside those of the updates where they are others."""
    if name == "target-entropy":  # the one law with a number of the task in it
        return {"field": "target_entropy", "formula": ENTROPY_FORMULA, "baseline": "-d", "whose": "the paper's"}
    values = kind(dt="16ms")
    own = values.part(name)
    return {
        "field": own.field,
        "formula": own.law.formula,
        "baseline": own.baseline,
        "whose": own.whose_baseline,
        "with_updates": {updates.formula: law.formula for updates, law in own.with_updates.items()},
    }


def _tagged(words: Any) -> Any:  # noqa: ANN401 - any of the libraries' dataclasses
    """A dataclass as its fields, with the name of its class; what it holds in the same way."""
    if hasattr(words, "__dataclass_fields__"):
        held = {each.name: _tagged(getattr(words, each.name)) for each in fields(words)}
        return {"kind": type(words).__name__, **held}
    if isinstance(words, Mapping):
        return {name: _tagged(each) for name, each in words.items()}
    if isinstance(words, tuple | frozenset):
        return [_tagged(each) for each in (sorted(words) if isinstance(words, frozenset) else words)]
    return words
