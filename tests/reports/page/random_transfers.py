"""Random transfers, and what Python makes of each: what the page's calculator is compared with."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from math import isclose
from typing import Any

from cycletime.errors import InputError
from cycletime.libraries import LIBRARIES
from cycletime.rules import ALGORITHMS
from cycletime.rules.hyperparameters import closing_line, transfer_as_json
from cycletime.rules.quantities import Quantity

IN_JAVASCRIPT = """asked => asked.map((each) => {
  const {carry, exportTo, numbers, tables} = cycletime;
  const mapped = (values, act) => Object.fromEntries(Object.entries(values).map(([name, value]) => [name, act(value)]));
  try {
    const carried = carry(tables, each), settings = exportTo(tables, carried, each.library, each.nEnvs);
    return {
      after: mapped(carried.after, numbers.number),
      seconds: mapped(carried.seconds.after, String),
      notes: carried.notes,
      closing: carried.closing,
      settings: Object.fromEntries(settings.lines.map((line) => line.split(' = '))),
      library_notes: settings.notes,
    };
  } catch (error) { return {error: error.message}; }
})"""
"""What `by_python` does, of many transfers, by the page's scripts; its tables are in `cycletime.tables`."""
_TIMES: tuple[Callable[[random.Random], str], ...] = (
    lambda rng: f"{rng.randint(1, 200)}ms",
    lambda rng: f"{rng.randint(1, 2000) / 10}ms",
    lambda rng: f"{rng.randint(1, 1000)}Hz",
    lambda rng: f"{rng.randint(1, 900) / 1000}",
    lambda rng: f"{rng.randint(1, 5)}s",
)


def draw_transfer(rng: random.Random) -> dict[str, Any]:
    """A transfer as the calculator is asked for it: texts as they are typed."""
    algorithm = rng.choice(list(ALGORITHMS))
    kind = ALGORITHMS[algorithm]
    usual = kind(dt="1ms").stated()
    values = {
        quantity.field: _value(quantity, rng)
        for quantity in kind.quantities
        if rng.random() < (0.9 if quantity.field in usual else 0.5)
    }
    if {"batch", "minibatch"} <= values.keys() and rng.random() < 0.95:
        values["minibatch"], values["batch"] = sorted((values["minibatch"], values["batch"]))
    return {
        "algorithm": algorithm,
        "from": rng.choice(_TIMES)(rng),
        "to": rng.choice(_TIMES)(rng),
        "rule": rng.choice(list(kind.rules)),
        "also": [part for part in kind.parts if rng.random() < 0.3],
        "actionSize": rng.choice(["", "1", "2", "3", "7"]) if "target-entropy" in kind.parts else "",
        "values": {field: repr(value) for field, value in values.items()},
        "library": rng.choice([name for name in LIBRARIES if algorithm in LIBRARIES[name]]),
        "nEnvs": rng.choice([1, 1, 2, 3, 4, 8, 16, 64, 1000]),
    }


def by_python(asked: dict[str, Any]) -> dict[str, Any]:
    """The values, the notes and the library's settings; or the sentence that says what is wrong."""
    kind = ALGORITHMS[asked["algorithm"]]
    values: dict[str, Any] = {field: _number(text) for field, text in asked["values"].items()}
    if asked["actionSize"]:
        values["action_size"] = int(asked["actionSize"])
    try:
        carried = kind(dt=asked["from"], **values).at(asked["to"], asked["rule"], asked["also"])
        exported = carried.to(asked["library"], asked["nEnvs"])
    except InputError as error:
        return {"error": str(error)}
    return {
        "after": carried.stated(),
        "seconds": carried.seconds(),
        "notes": transfer_as_json(carried)["notes"],
        "closing": closing_line(carried),
        "settings": {name: str(value) for name, value in exported.items()},
        "library_notes": list(exported.notes),
    }


def _value(quantity: Quantity, rng: random.Random) -> int | float:
    if quantity.whole:
        return rng.choice([rng.randint(1, 50), rng.randint(1, 500), rng.randint(1, 50_000)])
    if quantity.high == 1:
        return max(0.001, round(rng.choice([rng.uniform(0.5, 1), rng.uniform(1e-3, 1)]), rng.randint(2, 6)))
    if quantity.field == "target_entropy":
        return round(rng.uniform(-9, -0.1), 2)
    if quantity.field == "updates_per_step":
        return rng.choice([1, 2, 0.5, 0.25, rng.randint(1, 20), round(rng.uniform(0.01, 4), 3)])
    return float(f"{10 ** rng.uniform(-6, 1):.3g}")


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdigit() else float(text)


def assert_same(asked: Sequence[dict[str, Any]], by_javascript: Sequence[dict[str, Any]]) -> None:
    pairs = zip(asked, by_javascript, strict=True)
    wrong = [(each, ours, theirs) for each, theirs in pairs if not _same(ours := by_python(each), theirs)]
    assert not wrong, wrong[0]


def _same(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    if "error" in ours or "error" in theirs:
        return ours == theirs
    told = ("notes", "closing", "library_notes")
    if any(ours[name] != theirs[name] for name in told) or list(ours["settings"]) != list(theirs["settings"]):
        return False
    spans = {field: float(text.replace("Infinity", "inf")) for field, text in theirs["seconds"].items()}
    return (
        _close(ours["after"], theirs["after"])
        and _close(ours["seconds"], spans)
        and all(_same_setting(ours["settings"][name], theirs["settings"][name]) for name in ours["settings"])
    )


def _close(ours: dict[str, float], theirs: dict[str, float]) -> bool:
    return ours.keys() == theirs.keys() and all(isclose(ours[name], theirs[name], rel_tol=1e-9) for name in ours)


def _same_setting(ours: str, theirs: str) -> bool:
    """Text for text; numbers may differ in their last bits."""
    numbers = [re.findall(r"-?[\d.]+(?:e[+-]\d+)?", text) for text in (ours, theirs)]
    shapes = [re.sub(r"-?[\d.]+(?:e[+-]\d+)?", "#", text) for text in (ours, theirs)]
    pairs = zip(*numbers, strict=True)
    return shapes[0] == shapes[1] and all(isclose(float(a), float(b), rel_tol=1e-9, abs_tol=1e-15) for a, b in pairs)
