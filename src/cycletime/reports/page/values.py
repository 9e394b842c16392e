"""Which values were used and what they mean in seconds, and reference scores without learning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cycletime.duration import Duration
from cycletime.reports.figures import references_by_name
from cycletime.reports.formatting import TextTable, dt_text
from cycletime.reports.page.html import html_table
from cycletime.rules import ALGORITHMS
from cycletime.rules.quantities import format_seconds
from cycletime.studies.scores import value_text
from cycletime.tasks.references import Reference

_NO_BREAK = "\u00a0"
"""A space at which no line ends, so that a number keeps its unit."""


@dataclass(frozen=True)
class UsedValues:
    rule: str
    dt: Duration
    values: Mapping[str, Any]


def values_table(algorithm: str, used: Iterable[UsedValues], caption: str) -> str:
    """A row for each rule and cycle time; in brackets what a value means in seconds."""
    with_meanings = [(each, _meanings(algorithm, each)) for each in used]
    fields = list(dict.fromkeys(field for _, meanings in with_meanings for field in meanings))
    rows = [
        (
            f"{each.rule}, {dt_text(each.dt)}",
            *(_value_cell(each.values.get(field), meanings.get(field)) for field in fields),
        )
        for each, meanings in with_meanings
    ]
    return (
        html_table(TextTable(("values", *map(_column_labels(algorithm).__getitem__, fields)), rows, caption))
        if fields
        else ""
    )


def settings_table(every: Iterable[Mapping[str, Any]], caption: str) -> str:
    """All settings: those that are the same everywhere with their value, the others with all that there are."""
    found: dict[str, dict[str, None]] = {}
    for values in every:
        for name, each in values.items():
            found.setdefault(name, {})[_setting_text(each)] = None
    rows = [(name, ", ".join(values)) for name, values in sorted(found.items())]
    return html_table(TextTable(("setting", "value"), rows, caption))


def _meanings(algorithm: str, used: UsedValues) -> dict[str, str]:
    """By hyper-parameter that a rule knows and the agent has, its meaning in seconds, or an empty text."""
    kind = ALGORITHMS.get(algorithm)
    if kind is None:
        return {name: "" for name in ("discount",) if name in used.values}
    known = [quantity.field for quantity in kind.quantities]
    stated = {name: used.values[name] for name in known if used.values.get(name) is not None}
    seconds = kind(dt=used.dt, **stated).seconds()
    return {name: format_seconds(seconds[name]) if name in seconds else "" for name in stated}


def _column_labels(algorithm: str) -> dict[str, str]:
    kind = ALGORITHMS.get(algorithm)
    if kind is None:
        return {"discount": "discount"}
    return {
        quantity.field: f"{quantity.field.replace('_', ' ')} ({quantity.span or quantity.symbol})"
        for quantity in kind.quantities
    }


def _value_cell(number: object, meaning: str | None) -> str:
    if number is None:
        return "-"
    return f"{value_text(number)} ({meaning.replace(' ', _NO_BREAK)})" if meaning else value_text(number)


def _setting_text(setting: object) -> str:
    if setting is None or isinstance(setting, bool):
        return str(setting).lower()  # as it is typed after --set
    return " x ".join(map(str, setting)) if isinstance(setting, list | tuple) else value_text(setting)


def reference_table(task: str, dts: Sequence[Duration]) -> str:
    """Reference scores without learning; empty for a task without references."""
    found = references_by_name(task, dts)
    if not found:
        return ""
    rows = [(name, *map(_reference_text, references)) for name, references in found.items()]
    episodes = max(each.episodes for references in found.values() for each in references if each is not None)
    caption = f"{task}: reference scores without learning (means of {episodes:,} episodes ± one standard error)"
    return html_table(TextTable(("mean return", *map(dt_text, dts)), rows, caption))


def _reference_text(reference: Reference | None) -> str:
    return "-" if reference is None else f"{reference.mean:,.5g} ± {reference.error:.2g}"
