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
_DT_LOOK_INDEX = {"4ms": 0, "8ms": 1, "16ms": 2, "32ms": 3, "64ms": 4, "10ms": 0, "40ms": 2, "120ms": 4}
"""By cycle time, which of the looks it has; those of the robot are in no figure with the others."""
DT_LOOKS = {Duration(dt): _DT_LOOKS[index] for dt, index in _DT_LOOK_INDEX.items()}
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


@dataclass(frozen=True, eq=False)
class FigurePanel:
    """One pair of axes; without runs it was not run."""

    title: str
    runs: tuple[RuleRuns, ...]


@dataclass(frozen=True)
class Select:
    """The runs of a study that a figure shows under a rule's name."""

    study: str
    rule: str
    """Values of the cell at the start stand for their names in braces."""
    labels: Mapping[str, object] = field(default_factory=dict)
    """Of the cells, by default all; of a tuple any."""
    dts: tuple[str, ...] = ()
    """Their cycle times, by default all."""
    start: str | None = None
    ring: Literal["dashed", "solid"] | None = None

    def runs(self, data: PaperResults) -> RuleRuns:
        outcome, dts = data.outcome(self.study), {Duration(dt) for dt in self.dts}
        several = {name: value for name, value in self.labels.items() if isinstance(value, tuple)}
        found = outcome.where(**{name: value for name, value in self.labels.items() if name not in several})
        cells = tuple(
            cell
            for cell in found
            if (not dts or cell.dt in dts) and all(cell.labels[name] in values for name, values in several.items())
        )
        if self.start is None:
            return RuleRuns(self.rule, outcome, cells, ring=self.ring)
        rule = self.rule.format(**outcome.cell(dt=self.start).values)
        return RuleRuns(rule, outcome, cells, Duration(self.start), self.ring)


@dataclass(frozen=True)
class FigurePart:
    selected: tuple[Select, ...]
    title: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.study for each in self.selected))

    def missing(self, data: PaperResults) -> tuple[str, ...]:
        return tuple(study for study in self.needs if study not in data.outcomes)

    def panel(self, data: PaperResults) -> FigurePanel:
        """The panel, empty if a study is missing."""
        return FigurePanel(self.title, () if self.missing(data) else tuple(each.runs(data) for each in self.selected))


@dataclass(frozen=True)
class FigureKind:
    panels: Callable[[Sequence[FigurePanel]], Iterable[PanelSpec]]
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class PaperFigure:
    title: str
    parts: tuple[FigurePart, ...]
    kind: FigureKind
    family: str = ""
    """Figures of a family are compared with each other, and have the same vertical axis."""

    def missing(self, data: PaperResults) -> tuple[str, ...]:
        """The studies that keep it from being drawn; none where one part at least is there."""
        if any(not part.missing(data) for part in self.parts):
            return ()
        return tuple(study for study in self.needs if study not in data.outcomes)

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(study for part in self.parts for study in part.needs))

    def describe(self, name: str, data: PaperResults) -> FigureSpec:
        panels = [part.panel(data) for part in self.parts]
        every = [runs for panel in panels for runs in panel.runs]
        is_curves, drawn = self.kind.settings["kind"] == "curves", tuple(self.kind.panels(panels))
        marked = any(panel.x_mark is not None for panel in drawn)
        return FigureSpec(
            name=name,
            title=self.title,
            panels=drawn,
            cells=_cells(every),
            caption=caption(panels),
            print_caption=f"Vertical line: the batch time that is best at 16 ms. {caption(panels)}" if marked else "",
            command=f"cycletime experiment figures paper {name}",
            step_s=float(every[0].env_dt) if is_curves else None,
            pack=name if is_curves else "",
            **self.kind.settings,
        )


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


def split_by(kind: _Place, name: Callable[[float], str], panels: Sequence[FigurePanel]) -> list[FigurePanel]:
    """From a single panel, one for each kind of cell, such as each batch time."""
    (panel,) = panels
    kinds = sorted({kind(cell) for each in panel.runs for cell in each.cells})

    def part(wanted: float) -> FigurePanel:
        chosen = (each.where(lambda cell: kind(cell) == wanted) for each in panel.runs)
        return FigurePanel(name(wanted), tuple(each for each in chosen if each.cells))

    return [part(each) for each in kinds]


def _curve_panels(panels: Sequence[FigurePanel]) -> Iterable[PanelSpec]:
    rules = _rules(panels)
    for panel in panels:
        lines = [
            replace(_dt_line(runs, cell.dt, rules), cells=(runs.name_of(cell),))
            for runs in panel.runs
            for cell in sorted(runs.cells, key=lambda cell: cell.dt)
        ]
        yield PanelSpec(panel.title, tuple(lines))


def _dt_panels(panels: Sequence[FigurePanel]) -> Iterable[PanelSpec]:
    """Against the cycle time, a line for each rule, and reference scores without learning."""
    rules = _rules(panels)
    for panel in panels:
        dts = sorted({dt for runs in panel.runs for dt in runs.dts})
        lines = [
            LineSpec(
                runs.rule,
                runs.names_at(dts, lambda cell: cell.dt),
                DT_LOOKS[runs.start][0] if runs.start else _rule_colour(runs.rule, index),
                DASHES[index],
                MARKERS[rules.index(runs.rule)],
            )
            for index, runs in enumerate(panel.runs)
        ]
        lines += reference_lines(panel.runs[0].cells[0].labels["task"], dts) if panel.runs else []
        yield PanelSpec(panel.title, tuple(lines), tuple(float(dt) * 1e3 for dt in dts))


def _rules(panels: Sequence[FigurePanel]) -> list[str]:
    """All rules of a figure, so that each looks the same in every panel, and no two look alike."""
    return list(dict.fromkeys(runs.rule for panel in panels for runs in panel.runs))


def _rule_colour(rule: str, index: int) -> str:
    known = next((place for name, place in _RULE_COLOURS.items() if rule.startswith(name)), index)
    return COLOURS[known % len(COLOURS)]


def _batch_time_panels(panels: Sequence[FigurePanel]) -> Iterable[PanelSpec]:
    """Against the batch time, with a line at the one that is best at 16 ms.

    Beside points of the baseline, print has those of dt-aware values that follow from it.
    """
    rules = _rules(panels)
    for panel in panels:
        spec = _panel_by_dt(panel, batch_time_s, rules)
        if any(runs.ring for runs in panel.runs):
            followed = replace(
                panel.runs[0].where(lambda cell: batch_time_s(cell) == _BASELINE_BATCH_TIME_S),
                rule=f"dt-aware from the baseline ({_BASELINE_BATCH_TIME_S:g} s)",
                ring="solid",
            )
            with_followed = replace(panel, runs=(*panel.runs, followed))
            circled = _panel_by_dt(with_followed, batch_time_s, [*rules, followed.rule]).lines[len(spec.lines) :]
            spec = replace(spec, lines=(*spec.lines, *(replace(line, is_on_page=False) for line in circled)))
        yield replace(spec, x_mark=_tuned_batch_time_s(panel.runs[0])) if panel.runs else spec


def _tuned_batch_time_s(runs: RuleRuns) -> float | None:
    """The batch time that scores best at 16 ms, where values are tuned."""
    tuned = {batch_time_s(cell): mean_score(cell) for cell in runs.where(lambda cell: cell.dt == _TUNED_AT).cells}
    found = {place: estimate.value for place, estimate in tuned.items() if estimate is not None}
    return max(found, key=found.__getitem__, default=None)


def _discount_panels(panels: Sequence[FigurePanel]) -> Iterable[PanelSpec]:
    for panel in panels:
        spec = _panel_by_dt(panel, discount_place, _rules(panels))
        cells = [cell for runs in panel.runs for cell in runs.cells]
        discounts = {discount_place(cell): float(cell.values["discount"]) for cell in cells}
        yield replace(spec, names=tuple(discount_text(discounts[place]) for place in spec.places))


def _panel_by_dt(panel: FigurePanel, place: _Place, rules: Sequence[str]) -> PanelSpec:
    """Lines against something else than the cycle time, one for each cycle time of each rule."""
    places = sorted({place(cell) for runs in panel.runs for cell in runs.cells})
    lines = [
        replace(
            _dt_line(runs, dt, rules),
            cells=runs.where(lambda cell, dt=dt: cell.dt == dt).names_at(places, place),  # type: ignore[misc]
            ring=runs.ring,
        )
        for runs in panel.runs
        for dt in runs.dts
    ]
    return PanelSpec(panel.title, tuple(lines), tuple(places))


def _dt_line(runs: RuleRuns, dt: Duration, rules: Sequence[str]) -> LineSpec:
    """The look of a rule's line at a cycle time, without cells."""
    colour, marker = DT_LOOKS[dt]
    name = f"{dt_text(dt)}, {runs.rule}" if len(rules) > 1 else dt_text(dt)
    dash = DASHES[rules.index(runs.rule) % len(DASHES)]
    return LineSpec(name, (), colour, dash, marker, colour_name=rf"$\delta t$ = {dt_text(dt)}", dash_name=runs.rule)


def _variant_panels(panels: Sequence[FigurePanel]) -> Iterable[PanelSpec]:
    """The released code's variants side by side, a line for each cycle time and rule."""
    for panel in panels:
        lines: dict[tuple[Duration, str], dict[tuple[str, str], str]] = {}
        for runs in panel.runs:
            for cell in runs.cells:
                variant = cell.values["learn_when"], cell.values["initial_weights"]
                lines.setdefault((cell.dt, runs.rule), {})[variant] = runs.name_of(cell)
        specs = [
            LineSpec(
                f"{dt_text(dt)}, {rule}",
                tuple(map(names.get, CODE_VARIANTS)),
                DT_LOOKS[dt][0],
                DASHES[0 if rule == "dt-aware" else 1],
                DT_LOOKS[dt][1],
            )
            for (dt, rule), names in sorted(lines.items())
        ]
        places = tuple(float(place) for place in range(len(CODE_VARIANTS)))
        yield PanelSpec(panel.title, tuple(specs), places, tuple(CODE_VARIANTS.values()))


_POINTS: dict[str, Any] = {"kind": "points", "y_label": PERFORMANCE}
_CURVES: dict[str, Any] = {"kind": "curves", "y_label": RETURN}
CURVES = FigureKind(_curve_panels, _CURVES)
CURVES_BY_BATCH_TIME = FigureKind(
    lambda panels: _curve_panels(split_by(batch_time_s, lambda seconds: f"batch time {seconds:g} s", panels)), _CURVES
)
CURVES_BY_DISCOUNT = FigureKind(
    lambda panels: _curve_panels(
        split_by(lambda cell: cell.values["discount"], lambda g: rf"$\gamma$ = {discount_text(g)}", panels)
    ),
    _CURVES,
)
AGAINST_DT = FigureKind(_dt_panels, {**_POINTS, "x_label": CYCLE_TIME, "same_scale": False})
AGAINST_BATCH_TIME = FigureKind(_batch_time_panels, {**_POINTS, "x_label": "batch time (s)"})
AGAINST_DISCOUNT = FigureKind(
    _discount_panels,
    {
        **_POINTS,
        "x_label": r"discount $\gamma$ = .99$^e$, on a logarithmic axis of $e$",
        "x_axis": "linear",
        "same_scale": False,
    },
)
CODE_VARIANTS_SIDE_BY_SIDE = FigureKind(
    _variant_panels, {**_POINTS, "x_label": "", "x_axis": "categories", "same_scale": False}
)


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


def caption(panels: Sequence[FigurePanel]) -> str:
    """The sentences below a figure: scale, seeds, runs that diverged, origin of the data."""
    runs = [each for panel in panels for each in panel.runs]
    found = [
        _scale_sentence(runs),
        _seeds_sentence(runs),
        _diverged_sentence(runs),
        f"Data: {join_words(sorted({where for each in runs for where in each.outcome.sources}))}.",
    ]
    return " ".join(sentence for sentence in found if sentence)


def _seeds_sentence(runs: Iterable[RuleRuns]) -> str:
    if all(len(cell.seeds) == 1 for each in runs for cell in each.cells):
        return "n = 1 seed, so without standard errors."
    return f"Means over {_per_study(runs, lambda each: _seeds_text(each.cells[0].seeds))} ± one standard error."


def _scale_sentence(runs: Iterable[RuleRuns]) -> str:
    if all(each.outcome.scale == 1 for each in runs):
        return ""
    return (
        f"Scaled-down: {_per_study(runs, lambda each: f'{100 * each.outcome.scale:.3g} % of the environment steps')}."
    )


def _diverged_sentence(runs: Iterable[RuleRuns]) -> str:
    cells = {id(cell): cell for each in runs for cell in each.cells}.values()
    astray = sum(int((~np.isfinite(cell.scores)).sum()) for cell in cells)
    if not astray:
        return ""
    return f"{astray} run{'' if astray == 1 else 's'} of {sum(len(cell.seeds) for cell in cells):,} diverged, left out."


def _per_study(runs: Iterable[RuleRuns], words: Callable[[RuleRuns], str]) -> str:
    """A text that is the same for all runs once; where studies differ, each with its studies."""
    studies: dict[str, list[str]] = {}
    for each in runs:
        if each.outcome.name not in studies.setdefault(words(each), []):
            studies[words(each)].append(each.outcome.name)
    if len(studies) == 1:
        return next(iter(studies))
    return join_words([f"{text} ({', '.join(names)})" for text, names in studies.items()])


def _seeds_text(seeds: Sequence[int]) -> str:
    return f"n = {len(seeds)} seed{'' if len(seeds) == 1 else 's'}"
