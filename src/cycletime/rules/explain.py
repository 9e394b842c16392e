"""Carried hyper-parameters that explain themselves: as a table for people, and as JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf
from typing import Any

from cycletime.rules.hyperparameters import Hyperparameters, Origin
from cycletime.rules.laws import Number
from cycletime.rules.quantities import Quantity, in_seconds


def explain(values: Hyperparameters, further_notes: Sequence[str] = ()) -> str:
    """The values in a table; carried ones beside those they come from, with formulas and notes."""
    if values.origin is None:
        return _untransferred(values)
    before, rho = values.origin.before, values.dt / values.origin.before.dt
    title = (
        f"{values.algorithm.upper()} from {before.dt} to {values.dt}, rule '{values.origin.rule}', rho = dt/dt0 = {rho}"
    )
    header = ("hyper-parameter", f"at {before.dt}", f"at {values.dt}", "formula of x0", "in seconds")
    rows = [_row(quantity, before, values, values.origin) for quantity in values.quantities]
    return "\n".join(
        [title, "", *aligned([header, *filter(None, rows)]), *_note_lines([*further_notes, *values.notes])]
    )


def as_json(values: Hyperparameters, further_notes: Sequence[str] = ()) -> dict[str, Any]:
    """Carried values as plain JSON data. 'Unlimited' is null there, since JSON has no infinity.

    Raises:
        ValueError: if they were not carried.
    """
    if values.origin is None:
        raise ValueError("Only hyper-parameters that were carried to another cycle time have a transfer to report.")
    before = values.origin.before
    return {
        "algorithm": values.algorithm,
        "rule": values.origin.rule,
        "from": _json_values(before),
        "to": _json_values(values),
        "seconds": {"from": _json_seconds(before), "to": _json_seconds(values)},
        "notes": [*further_notes, *values.notes],
    }


def _untransferred(values: Hyperparameters) -> str:
    seconds = values.seconds()
    rows = [
        (_label(q), _number(values.stated()[q.field]), _meaning(seconds.get(q.field)))
        for q in values.quantities
        if q.field in values.stated()
    ]
    header = ("hyper-parameter", f"at {values.dt}", "in seconds")
    return "\n".join([f"{values.algorithm.upper()} at {values.dt}", "", *aligned([header, *rows])])


def _row(quantity: Quantity, before: Hyperparameters, after: Hyperparameters, origin: Origin) -> tuple[str, ...] | None:
    if quantity.field not in after.stated():
        return None
    law = origin.laws.get(quantity.field)
    return (
        _label(quantity),
        _number(before.stated()[quantity.field]),
        _number(after.stated()[quantity.field]),
        law.formula if law else "not touched",
        _meaning(before.seconds().get(quantity.field), after.seconds().get(quantity.field)),
    )


def _label(quantity: Quantity) -> str:
    return f"{quantity.field} ({quantity.symbol})"


def _meaning(*spans_s: float | None) -> str:
    known = [in_seconds(span_s) for span_s in spans_s if span_s is not None]
    if len(set(known)) < 2:
        return "".join(known[:1])
    return " -> ".join(span.removesuffix(" s") for span in known[:-1]) + f" -> {known[-1]}"


def _number(value: Number) -> str:
    return str(value) if isinstance(value, int) else f"{float(value):.6g}"


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines of a table, whose first row is the header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]


def _note_lines(notes: Sequence[str]) -> list[str]:
    return ["", *(f"note: {note}" for note in notes)] if notes else []


def _json_values(values: Hyperparameters) -> dict[str, Number]:
    return {"dt_s": float(values.dt), **values.stated()}


def _json_seconds(values: Hyperparameters) -> dict[str, float | None]:
    names = {quantity.field: quantity.span.replace("-", "").replace(" ", "_") for quantity in values.quantities}
    return {names[field]: None if isinf(span_s) else span_s for field, span_s in values.seconds().items()}
