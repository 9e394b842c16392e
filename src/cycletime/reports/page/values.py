"""Which values were used, and what they mean in seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cycletime.duration import Duration
from cycletime.reports.page.html import table
from cycletime.reports.words import span, value
from cycletime.rules import ALGORITHMS
from cycletime.rules.quantities import in_seconds

_NO_BREAK = "\u00a0"
"""A space at which no line ends, so that a number keeps its unit."""


@dataclass(frozen=True)
class Used:
    """The values of a rule at a cycle time."""

    rule: str
    dt: Duration
    values: Mapping[str, Any]


def values_table(algorithm: str, used: Iterable[Used], caption: str) -> str:
    """A row for each rule and cycle time; in brackets what a value means in seconds."""
    told = [(each, _meanings(algorithm, each)) for each in used]
    fields = list(dict.fromkeys(field for _, meanings in told for field in meanings))
    rows = [
        (f"{each.rule}, {span(each.dt)}", *(_cell(each.values.get(field), meanings.get(field)) for field in fields))
        for each, meanings in told
    ]
    return table(("values", *map(_label(algorithm).__getitem__, fields)), rows, caption) if fields else ""


def settings_table(every: Iterable[Mapping[str, Any]], caption: str) -> str:
    """All settings: those that are the same everywhere with their value, the others with all that there are."""
    found: dict[str, dict[str, None]] = {}
    for values in every:
        for name, each in values.items():
            found.setdefault(name, {})[_plain(each)] = None
    rows = [(name, ", ".join(values)) for name, values in sorted(found.items())]
    return table(("setting", "value"), rows, caption)


def _meanings(algorithm: str, used: Used) -> dict[str, str]:
    """By hyper-parameter that a rule knows and the agent has, its meaning in seconds; empty where it has none."""
    kind = ALGORITHMS.get(algorithm)
    if kind is None:
        return {name: "" for name in ("discount",) if name in used.values}
    known = [quantity.field for quantity in kind.quantities]
    stated = {name: used.values[name] for name in known if used.values.get(name) is not None}
    seconds = kind(dt=used.dt, **stated).seconds()
    return {name: in_seconds(seconds[name]) if name in seconds else "" for name in stated}


def _label(algorithm: str) -> dict[str, str]:
    kind = ALGORITHMS.get(algorithm)
    if kind is None:
        return {"discount": "discount"}
    return {
        quantity.field: f"{quantity.field.replace('_', ' ')} ({quantity.span or quantity.symbol})"
        for quantity in kind.quantities
    }


def _cell(number: object, meaning: str | None) -> str:
    if number is None:
        return "-"
    return f"{value(number)} ({meaning.replace(' ', _NO_BREAK)})" if meaning else value(number)


def _plain(told: object) -> str:
    if told is None or isinstance(told, bool):
        return str(told).lower()  # as it is typed after --set
    return " x ".join(map(str, told)) if isinstance(told, list | tuple) else value(told)
