"""Which values were used and what they mean in seconds, and reference scores without learning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cycletime.duration import Duration
from cycletime.reports.figures import references_by_name
from cycletime.reports.formatting import TextTable, dt_text
from cycletime.reports.page.html import html_table
from cycletime.rules import ALGORITHMS
from cycletime.rules.quantities import format_seconds
from cycletime.studies.scores import value_text

_NO_BREAK = "\u00a0"
"""A space at which no line ends, so that a number keeps its unit."""


def values_table(algorithm: str, used: Iterable[tuple[str, Duration, Mapping[str, Any]]], caption: str) -> str:
    """A row for each rule and cycle time; in brackets what a value means in seconds."""
    kind = ALGORITHMS.get(algorithm)
    labels = (
        {"discount": "discount"}
        if kind is None
        else {each.field: f"{each.field.replace('_', ' ')} ({each.span or each.symbol})" for each in kind.quantities}
    )
    cells = {}
    for rule, dt, values in used:
        stated = {name: values[name] for name in labels if values.get(name) is not None}
        seconds = {} if kind is None else kind(dt=dt, **stated).seconds()
        cells[f"{rule}, {dt_text(dt)}"] = {
            name: value_text(value)
            + (f" ({format_seconds(seconds[name]).replace(' ', _NO_BREAK)})" if name in seconds else "")
            for name, value in stated.items()
        }
    fields = list(dict.fromkeys(name for row in cells.values() for name in row))
    rows = [(head, *(row.get(name, "-") for name in fields)) for head, row in cells.items()]
    header = ("values", *(labels[name] for name in fields))
    return html_table(TextTable(header, rows, caption)) if fields else ""


def settings_table(every: Iterable[Mapping[str, Any]], caption: str) -> str:
    """All settings: those that are the same everywhere with their value, the others with all that there are."""
    found: dict[str, dict[str, None]] = {}
    for values in every:
        for name, each in values.items():
            found.setdefault(name, {})[_setting_text(each)] = None
    rows = [(name, ", ".join(values)) for name, values in sorted(found.items())]
    return html_table(TextTable(("setting", "value"), rows, caption))


def _setting_text(setting: object) -> str:
    if setting is None or isinstance(setting, bool):
        return str(setting).lower()  # as it is typed after --set
    return " x ".join(map(str, setting)) if isinstance(setting, list | tuple) else value_text(setting)


def reference_table(task: str, dts: Sequence[Duration]) -> str:
    """Reference scores without learning; empty for a task without references."""
    found = references_by_name(task, dts)
    if not found:
        return ""
    rows = [
        (name, *("-" if each is None else f"{each.mean:,.5g} ± {each.error:.2g}" for each in references))
        for name, references in found.items()
    ]
    episodes = max(each.episodes for references in found.values() for each in references if each is not None)
    caption = f"{task}: reference scores without learning (means of {episodes:,} episodes ± one standard error)"
    return html_table(TextTable(("mean return", *map(dt_text, dts)), rows, caption))
