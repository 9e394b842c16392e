"""What doing nothing and a scripted controller get, beside what was learned."""

from __future__ import annotations

from collections.abc import Sequence

from cycletime.duration import Duration
from cycletime.reports.page.figures import Line
from cycletime.reports.page.html import table
from cycletime.reports.style import DASHES
from cycletime.reports.words import span
from cycletime.tasks.references import NOTHING, SCRIPTED, Reference, references

_COLOURS = {NOTHING: "#8c959f", SCRIPTED: "#8250df"}
"""Of lines that belong to no rule."""


def reference_lines(task: str, dts: Sequence[Duration]) -> list[Line]:
    """Lines for a figure against the cycle time; none of a task that nothing is known of."""
    found = _by_name(task, dts)
    return [
        Line(name, (), _COLOURS[name], DASHES[3], tuple(None if each is None else each.mean for each in told))
        for name, told in found.items()
    ]


def reference_table(task: str, dts: Sequence[Duration]) -> str:
    """A table; nothing of a task that nothing is known of."""
    found = _by_name(task, dts)
    if not found:
        return ""
    rows = [(name, *map(_words, told)) for name, told in found.items()]
    episodes = max(each.episodes for told in found.values() for each in told if each is not None)
    caption = f"{task}: what needs no learning gets (means of {episodes:,} episodes ± one standard error)"
    return table(("mean return", *map(span, dts)), rows, caption)


def _words(reference: Reference | None) -> str:
    return "-" if reference is None else f"{reference.mean:,.5g} ± {reference.error:.2g}"


def _by_name(task: str, dts: Sequence[Duration]) -> dict[str, list[Reference | None]]:
    known = [{each.name: each for each in references(task, dt)} for dt in dts]
    names = [name for name in (NOTHING, SCRIPTED) if any(name in each for each in known)]
    return {name: [each.get(name) for each in known] for name in names}
