"""The paper's kinds of figures: learning curves, and performance against cycle time, batch time or discount.

Colours stand for cycle times, from cold to warm as they grow, and dashes for rules; against the cycle time both stand
for rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log, log2
from typing import Any, Literal, TypeAlias

import numpy as np

from cycletime.duration import Duration
from cycletime.experiments.outcome import Outcome, OutcomeCell, mean_score
from cycletime.experiments.paper.data import BASELINE_BATCH, PaperResults
from cycletime.experiments.paper.experiments import load_study
from cycletime.reports.figure import (
    COLOURS,
    CYCLE_TIME,
    DASHES,
    MARKERS,
    RETURN,
    FigureCell,
    FigureSpec,
    LineSpec,
    PanelSpec,
)
from cycletime.reports.figures import reference_lines
from cycletime.reports.formatting import dt_text, join_words
from cycletime.training.worlds import ClosedFormWorld

PERFORMANCE = "performance: mean return over learning"
CODE_VARIANTS = {
    ("batch", "released"): "the paper's\ntext",
    ("episode_end", "released"): "learning at\nepisodes' ends",
    ("batch", "pytorch"): "PyTorch's\nweights",
    ("episode_end", "pytorch"): "both",
}
"""By when it learns and its initial weights."""
_DT_LOOKS = (("#0072B2", "o"), ("#56B4E9", "s"), ("#009E73", "D"), ("#E69F00", "^"), ("#D55E00", "v"))
"""From cold to warm as cycle times grow, with colours of Okabe and Ito."""
_LOOK_DTS = (("4ms", "10ms"), ("8ms",), ("16ms", "40ms"), ("32ms",), ("64ms", "120ms"))
"""The cycle times that have each look; those of the robot are in no figure with the others."""
DT_LOOKS = {Duration(dt): look for look, dts in zip(_DT_LOOKS, _LOOK_DTS, strict=True) for dt in dts}
_RULE_COLOURS = {
    "dt-aware": 0,
    "baseline": 1,
    "tuned": 2,
    "scaled": 3,
    "constant": 4,
    r"$\gamma_{\delta t, 1}$": 5,
    r"$\gamma_{\delta t, 2}$": 2,
}
"""By the beginning of a rule's name; no two that a figure shows together have the same."""
_BASELINE_BATCH_TIME_S = BASELINE_BATCH * 0.016
"""The batch time of the baseline at 16 ms, which dt-aware values from there keep."""
_TUNED_AT = Duration("16ms")
_PLACE_OF_ONE = 4.0
"""Where a discount of 1 stands: one place after the largest other, .99^(1/8), though it is infinitely far away."""
_Place: TypeAlias = Callable[[OutcomeCell], float]


@dataclass(frozen=True, eq=False)
class RuleRuns:
    rule: str
    outcome: Outcome
    cells: tuple[OutcomeCell, ...]
    start: Duration | None = None
    """The cycle time that its values were tuned at, where a figure compares several such."""
    ring: Literal["dashed", "solid"] | None = None
    """The border of their circles, if they are single points beside the curves, such as those of the baseline."""

    @property
    def dts(self) -> tuple[Duration, ...]:
        return tuple(sorted({cell.dt for cell in self.cells}))

    @property
    def env_dt(self) -> Duration:
        study, task = load_study(self.outcome.name), self.cells[0].labels["task"]
        return next(world.env_dt for world in study.worlds if isinstance(world, ClosedFormWorld) and world.name == task)

    def where(self, keep: Callable[[OutcomeCell], bool]) -> RuleRuns:
        return replace(self, cells=tuple(filter(keep, self.cells)))

    def name_of(self, cell: OutcomeCell) -> str:
        """A name that no other cell has: its study, and its number there."""
        return f"{self.outcome.name}/{self.outcome.cells.index(cell)}"

    def names_at(self, places: Sequence[Any], place: Callable[[OutcomeCell], Any]) -> tuple[str | None, ...]:
        names = {place(cell): self.name_of(cell) for cell in self.cells}
        return tuple(map(names.get, places))


Panels: TypeAlias = Mapping[str, Sequence[RuleRuns]]
"""By title, the runs that each pair of axes shows; without runs it was not run."""


@dataclass(frozen=True)
class Select:
    """The runs of a study that a figure shows under a rule's name."""

    study: str
    rule: str
    """Values of the cell at the start stand for their names in braces."""
    labels: Mapping[str, object] = field(default_factory=dict)
    """Of the cells, by default all; of a tuple any."""
    dts: tuple[str, ...] = ()
    start: str | None = None
    ring: Literal["dashed", "solid"] | None = None

    def runs(self, data: PaperResults) -> RuleRuns:
        outcome, dts = data.outcome(self.study), {Duration(dt) for dt in self.dts}
        several = {name: value if isinstance(value, tuple) else (value,) for name, value in self.labels.items()}
        cells = tuple(
            cell
            for cell in outcome.cells
            if (not dts or cell.dt in dts) and all(cell.labels[name] in values for name, values in several.items())
        )
        if self.start is None:
            return RuleRuns(self.rule, outcome, cells, ring=self.ring)
        rule = self.rule.format(**outcome.cell(dt=self.start).values)
        return RuleRuns(rule, outcome, cells, Duration(self.start), self.ring)


@dataclass(frozen=True)
class PaperFigure:
    title: str
    kind: Callable[[Panels], dict[str, Any]]
    """Its panels and settings, as a `FigureSpec` has them."""
    parts: Mapping[str, tuple[Select, ...]]
    family: str = ""
    """Figures of a family are compared with each other, and have the same vertical axis."""

    def missing(self, data: PaperResults) -> tuple[str, ...]:
        """The studies that keep it from being drawn; none where one part at least is there."""
        lacking = [_missing(selected, data) for selected in self.parts.values()]
        return tuple(dict.fromkeys(study for each in lacking for study in each)) if all(lacking) else ()

    def describe(self, name: str, data: PaperResults) -> FigureSpec:
        panels = {
            title: () if _missing(selected, data) else tuple(each.runs(data) for each in selected)
            for title, selected in self.parts.items()
        }
        every, settings = [runs for each in panels.values() for runs in each], self.kind(panels)
        is_curves, marked = settings["kind"] == "curves", any(panel.x_mark is not None for panel in settings["panels"])
        words = caption(every)
        return FigureSpec(
            name=name,
            title=self.title,
            cells=_cells(every),
            caption=words,
            print_caption=f"Vertical line: the batch time that is best at 16 ms. {words}" if marked else "",
            command=f"cycletime experiment figures paper {name}",
            step_s=float(every[0].env_dt) if is_curves else None,
            pack=name if is_curves else "",
            **settings,
        )


def _missing(selected: Iterable[Select], data: PaperResults) -> list[str]:
    return [each.study for each in selected if each.study not in data.outcomes]


def batch_time_s(cell: OutcomeCell) -> float:
    return round(float(cell.dt) * float(cell.values["batch"]), 9)


def discount_place(cell: OutcomeCell) -> float:
    """Where a cell stands: of a discount .99^e it is -log2 e, so that those of the sweep are one apart."""
    discount = cell.values["discount"]
    return _PLACE_OF_ONE if discount == 1 else round(-log2(log(discount) / log(0.99)), 3) + 0.0


def discount_text(discount: float) -> str:
    """A discount as the paper writes it: '.851', '.9987', '1'."""
    digits = 4 if discount > 0.998 else 3
    return f"{discount:.{digits}f}".lstrip("0") if discount < 1 else "1"


def _split_by(kind: _Place, name: Callable[[float], str], panels: Panels) -> Panels:
    """From a single panel, one for each kind of cell, such as each batch time."""
    (every,) = panels.values()

    def part(wanted: float) -> list[RuleRuns]:
        chosen = (runs.where(lambda cell: kind(cell) == wanted) for runs in every)
        return [runs for runs in chosen if runs.cells]

    return {name(each): part(each) for each in sorted({kind(cell) for runs in every for cell in runs.cells})}


def curves(panels: Panels) -> dict[str, Any]:
    rules, drawn = _rules(panels), []
    for title, runs in panels.items():
        cells = [(each, cell) for each in runs for cell in sorted(each.cells, key=lambda cell: cell.dt)]
        lines = [replace(_dt_line(each, cell.dt, rules), cells=(each.name_of(cell),)) for each, cell in cells]
        drawn.append(PanelSpec(title, tuple(lines)))
    return {"panels": tuple(drawn), "kind": "curves", "y_label": RETURN}


def curves_by_batch_time(panels: Panels) -> dict[str, Any]:
    return curves(_split_by(batch_time_s, lambda seconds: f"batch time {seconds:g} s", panels))


def curves_by_discount(panels: Panels) -> dict[str, Any]:
    return curves(_split_by(lambda cell: cell.values["discount"], lambda g: rf"$\gamma$ = {discount_text(g)}", panels))


def against_dt(panels: Panels) -> dict[str, Any]:
    """Against the cycle time, a line for each rule, and reference scores without learning."""
    rules, drawn = _rules(panels), []
    for title, every in panels.items():
        dts = sorted({dt for runs in every for dt in runs.dts})
        lines = [
            LineSpec(
                runs.rule,
                runs.names_at(dts, lambda cell: cell.dt),
                DT_LOOKS[runs.start][0] if runs.start else _rule_colour(runs.rule, index),
                DASHES[index],
                MARKERS[rules.index(runs.rule)],
            )
            for index, runs in enumerate(every)
        ]
        lines += reference_lines(every[0].cells[0].labels["task"], dts) if every else []
        drawn.append(PanelSpec(title, tuple(lines), tuple(float(dt) * 1e3 for dt in dts)))
    return {"panels": tuple(drawn), **_POINTS, "x_label": CYCLE_TIME, "same_scale": False}


def _rules(panels: Panels) -> list[str]:
    """All rules of a figure, so that each looks the same in every panel, and no two look alike."""
    return list(dict.fromkeys(runs.rule for every in panels.values() for runs in every))


def _rule_colour(rule: str, index: int) -> str:
    known = next((place for name, place in _RULE_COLOURS.items() if rule.startswith(name)), index)
    return COLOURS[known % len(COLOURS)]


def against_batch_time(panels: Panels) -> dict[str, Any]:
    """Against the batch time, with a line at the one that is best at 16 ms.

    Beside points of the baseline, print has those of dt-aware values that follow from it.
    """
    rules, drawn = _rules(panels), []
    for title, every in panels.items():
        spec = _panel_by_dt(title, every, batch_time_s, rules)
        if any(runs.ring for runs in every):
            followed = replace(
                every[0].where(lambda cell: batch_time_s(cell) == _BASELINE_BATCH_TIME_S),
                rule=f"dt-aware from the baseline ({_BASELINE_BATCH_TIME_S:g} s)",
                ring="solid",
            )
            circled = _panel_by_dt(title, [*every, followed], batch_time_s, [*rules, followed.rule])
            only_print = [replace(line, is_on_page=False) for line in circled.lines[len(spec.lines) :]]
            spec = replace(spec, lines=(*spec.lines, *only_print))
        drawn.append(replace(spec, x_mark=_tuned_batch_time_s(every[0])) if every else spec)
    return {"panels": tuple(drawn), **_POINTS, "x_label": "batch time (s)"}


def _tuned_batch_time_s(runs: RuleRuns) -> float | None:
    tuned = {batch_time_s(cell): mean_score(cell) for cell in runs.where(lambda cell: cell.dt == _TUNED_AT).cells}
    found = {place: estimate.value for place, estimate in tuned.items() if estimate is not None}
    return max(found, key=found.__getitem__, default=None)


def against_discount(panels: Panels) -> dict[str, Any]:
    drawn = []
    for title, every in panels.items():
        spec = _panel_by_dt(title, every, discount_place, _rules(panels))
        discounts = {discount_place(cell): cell.values["discount"] for runs in every for cell in runs.cells}
        drawn.append(replace(spec, names=tuple(discount_text(discounts[place]) for place in spec.places)))
    label = r"discount $\gamma$ = .99$^e$, on a logarithmic axis of $e$"
    return {"panels": tuple(drawn), **_POINTS, "x_label": label, "x_axis": "linear", "same_scale": False}


def _panel_by_dt(title: str, every: Sequence[RuleRuns], place: _Place, rules: Sequence[str]) -> PanelSpec:
    """Lines against something else than the cycle time, one for each cycle time of each rule."""
    places = sorted({place(cell) for runs in every for cell in runs.cells})
    lines = [
        replace(
            _dt_line(runs, dt, rules),
            cells=runs.where(lambda cell, dt=dt: cell.dt == dt).names_at(places, place),  # type: ignore[misc]
            ring=runs.ring,
        )
        for runs in every
        for dt in runs.dts
    ]
    return PanelSpec(title, tuple(lines), tuple(places))


def _dt_line(runs: RuleRuns, dt: Duration, rules: Sequence[str]) -> LineSpec:
    """The look of a rule's line at a cycle time, without cells."""
    colour, marker = DT_LOOKS[dt]
    name = f"{dt_text(dt)}, {runs.rule}" if len(rules) > 1 else dt_text(dt)
    dash = DASHES[rules.index(runs.rule) % len(DASHES)]
    return LineSpec(name, (), colour, dash, marker, colour_name=rf"$\delta t$ = {dt_text(dt)}", dash_name=runs.rule)


def code_variants(panels: Panels) -> dict[str, Any]:
    """The released code's variants side by side, a line for each cycle time and rule."""
    drawn = []
    for title, every in panels.items():
        lines: dict[tuple[Duration, str], dict[tuple[str, str], str]] = {}
        for runs in every:
            for cell in runs.cells:
                variant = cell.values["learn_when"], cell.values["initial_weights"]
                lines.setdefault((cell.dt, runs.rule), {})[variant] = runs.name_of(cell)
        dashes = {"dt-aware": DASHES[0], "baseline": DASHES[1]}
        specs = [
            LineSpec(f"{dt_text(dt)}, {rule}", tuple(map(names.get, CODE_VARIANTS)), colour, dashes[rule], marker)
            for (dt, rule), names in sorted(lines.items())
            for colour, marker in [DT_LOOKS[dt]]
        ]
        places = tuple(map(float, range(len(CODE_VARIANTS))))
        drawn.append(PanelSpec(title, tuple(specs), places, tuple(CODE_VARIANTS.values())))
    return {"panels": tuple(drawn), **_POINTS, "x_label": "", "x_axis": "categories", "same_scale": False}


_POINTS: dict[str, Any] = {"kind": "points", "y_label": PERFORMANCE}


def _cells(runs: Iterable[RuleRuns]) -> dict[str, FigureCell]:
    """By name, the cells of which at least one run has a score."""
    found = {}
    for each in runs:
        for cell in each.cells:
            finite = np.isfinite(cell.scores)
            if finite.any():
                scores, curves = cell.scores[finite].tolist(), cell.curves[finite]
                found[each.name_of(cell)] = FigureCell(scores, curves, each.outcome.env_steps)
    return found


def caption(runs: Sequence[RuleRuns]) -> str:
    """The sentences below a figure: scale, seeds, runs that diverged, origin of the data."""
    cells = list({id(cell): cell for each in runs for cell in each.cells}.values())
    astray = sum(int((~np.isfinite(cell.scores)).sum()) for cell in cells)
    found = []
    if any(each.outcome.scale != 1 for each in runs):
        scales = _per_study(runs, lambda each: f"{100 * each.outcome.scale:.3g} % of the environment steps")
        found.append(f"Scaled-down: {scales}.")
    if all(len(cell.seeds) == 1 for cell in cells):
        found.append("n = 1 seed, so without standard errors.")
    else:
        seeds = _per_study(runs, lambda each: f"n = {(n := len(each.cells[0].seeds))} seed{'' if n == 1 else 's'}")
        found.append(f"Means over {seeds} ± one standard error.")
    if astray:
        every = sum(len(cell.seeds) for cell in cells)
        found.append(f"{astray} run{'' if astray == 1 else 's'} of {every:,} diverged, left out.")
    sources = sorted({where for each in runs for where in each.outcome.sources})
    return " ".join([*found, f"Data: {join_words(sources)}."])


def _per_study(runs: Iterable[RuleRuns], words: Callable[[RuleRuns], str]) -> str:
    """A text that is the same for all runs once; where studies differ, each with its studies."""
    studies: dict[str, list[str]] = {}
    for each in runs:
        if each.outcome.name not in studies.setdefault(words(each), []):
            studies[words(each)].append(each.outcome.name)
    if len(studies) == 1:
        return next(iter(studies))
    return join_words([f"{text} ({', '.join(names)})" for text, names in studies.items()])
