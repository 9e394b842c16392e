"""The paper's kinds of figures: learning curves, and performance against cycle time, batch time or discount."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import ceil, log, log2
from typing import Any, TypeAlias

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, FixedLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from cycletime.duration import Duration
from cycletime.experiments.outcome import Outcome, OutcomeCell, mean_score
from cycletime.experiments.paper.data import BASELINE_BATCH, PaperResults
from cycletime.experiments.paper.experiments import load_study, sweep_of
from cycletime.reports.figure_style import DASHES, MARKERS, TITLE_PAD, add_seconds_axis, label_steps
from cycletime.reports.formatting import dt_text, join_words
from cycletime.statistics import Curve, mean_curve
from cycletime.training.worlds import ClosedFormWorld

Legend: TypeAlias = list[list[Artist]]
"""What it shows, in groups that each begin a row."""


@dataclass(frozen=True, eq=False)
class RuleRuns:
    """The runs of a rule, of one study."""

    rule: str
    """What the legend calls it."""
    outcome: Outcome
    cells: tuple[OutcomeCell, ...]
    start: Duration | None = None
    """The cycle time that its values were tuned at, where a figure compares several such."""
    is_marked: bool = False
    """Whether they are single points beside the curves, such as those of the baseline."""

    @property
    def dts(self) -> tuple[Duration, ...]:
        """The cycle times."""
        return tuple(sorted({cell.dt for cell in self.cells}))

    @property
    def env_dt(self) -> Duration:
        """The environment's time step, which is the study's."""
        study, task = load_study(sweep_of(self.outcome.name) or self.outcome.name), self.cells[0].labels["task"]
        return next(world.env_dt for world in study.worlds if isinstance(world, ClosedFormWorld) and world.name == task)

    def at(self, dt: Duration) -> tuple[OutcomeCell, ...]:
        """The cells of a cycle time."""
        return tuple(cell for cell in self.cells if cell.dt == dt)


@dataclass(frozen=True, eq=False)
class FigurePanel:
    """One pair of axes; without runs it was not run."""

    title: str
    runs: tuple[RuleRuns, ...]


@dataclass(frozen=True)
class FigurePart:
    """What a figure, or one side of it, is made of."""

    needs: tuple[str, ...]
    """Studies."""
    runs: Callable[[PaperResults], Iterable[RuleRuns]]
    title: str = ""

    def missing(self, data: PaperResults) -> tuple[str, ...]:
        """The studies that are not there."""
        return tuple(study for study in self.needs if study not in data.outcomes)

    def panel(self, data: PaperResults) -> FigurePanel:
        """It, or an empty one if something is missing."""
        return FigurePanel(self.title, () if self.missing(data) else tuple(self.runs(data)))


@dataclass(frozen=True)
class PaperFigure:
    """A figure of the paper, or of ours."""

    title: str
    parts: tuple[FigurePart, ...]
    draw: Callable[[Figure, Sequence[FigurePanel]], Legend]
    """Fills a figure."""
    family: str = ""
    """Figures of a family are compared with each other, and have the same vertical axis."""

    @property
    def needs(self) -> tuple[str, ...]:
        """All studies that it shows."""
        return tuple(dict.fromkeys(study for part in self.parts for study in part.needs))

    def missing(self, data: PaperResults) -> tuple[str, ...]:
        """The studies that keep it from being drawn; none where one part at least is there."""
        if any(not part.missing(data) for part in self.parts):
            return ()
        return tuple(study for study in self.needs if study not in data.outcomes)


def select_runs(data: PaperResults, study: str, rule: str, /, **labels: object) -> RuleRuns:
    """The runs of a study, or those with some labels, under a rule's name."""
    outcome = data.outcome(study)
    return RuleRuns(rule, outcome, tuple(outcome.where(**labels)))


_DT_LOOKS = (("#0072B2", "o"), ("#56B4E9", "s"), ("#009E73", "D"), ("#E69F00", "^"), ("#D55E00", "v"))
"""From cold to warm as cycle times grow, with colours of Okabe and Ito."""
DT_LOOK_COUNT = len(_DT_LOOKS)
_DT_LOOK_INDEX = {"4ms": 0, "8ms": 1, "16ms": 2, "32ms": 3, "64ms": 4, "10ms": 0, "40ms": 2, "120ms": 4}
"""By cycle time, which of the looks it has; those of the robot are in no figure with the others."""
DT_LOOK_INDEX = {Duration(dt): place for dt, place in _DT_LOOK_INDEX.items()}
DT_COLOURS = {dt: _DT_LOOKS[place][0] for dt, place in DT_LOOK_INDEX.items()}
DT_MARKERS = {dt: _DT_LOOKS[place][1] for dt, place in DT_LOOK_INDEX.items()}
NEUTRAL_COLOUR = "0.25"
"""The colour of what belongs to no cycle time."""
PERFORMANCE = "performance: mean return over learning"
BAND_ALPHA = 0.18
"""How much of its colour a band of standard errors has."""
TITLE_SIZE = 8
"""The size of letters in titles of panels."""


def dt_handles(dts: Iterable[Duration]) -> list[Artist]:
    """What the legend says of cycle times."""
    return [
        Line2D([], [], color=DT_COLOURS[dt], marker=DT_MARKERS[dt], markersize=5, label=rf"$\delta t$ = {dt_text(dt)}")
        for dt in dts
    ]


def rule_handles(panels: Iterable[FigurePanel]) -> list[Artist]:
    """What the legend says of rules, which differ in their dashes; nothing of a single one."""
    lines = [[runs.rule for runs in panel.runs if not runs.is_marked] for panel in panels]
    rules = [dict.fromkeys(filter(None, column)) for column in zip_longest(*lines)]
    if len(rules) < 2:
        return []
    return [
        Line2D([], [], color=NEUTRAL_COLOUR, linestyle=dash, label=" or ".join(names))
        for names, dash in zip(rules, DASHES, strict=False)
    ]


def dts_of(runs: Iterable[RuleRuns]) -> list[Duration]:
    """All cycle times of runs."""
    return sorted({dt for each in runs for dt in each.dts})


def format_thousands(axes: Axes) -> None:
    """Write large returns with commas."""
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.10g}")


def log2_axis(axes: Axes, ticks: Sequence[float], label: str) -> None:
    """A horizontal axis on which doubling is always as far, with a tick at each value alone."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(list(ticks)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.set_xlabel(label)


PlaceOf = Callable[[OutcomeCell], float]
"""Where a cell stands on the horizontal axis."""


def draw_line(axes: Axes, place: PlaceOf, cells: Iterable[OutcomeCell], dash: str, **looks: Any) -> NDArray[np.float64]:  # noqa: ANN401
    """Draw the scores of cells; [cells, 2] where the points are, from left to right.

    A cell of which every run diverged leaves a gap.
    """
    ordered = sorted(cells, key=place)
    estimates = [mean_score(cell) for cell in ordered]
    ends = np.array([(each.low, each.value, each.high) if each else (None,) * 3 for each in estimates], np.float64)
    along = np.array([place(cell) for cell in ordered])
    axes.plot(along, ends[:, 1], linestyle=dash, linewidth=1.4, markersize=5, **looks)
    axes.fill_between(along, ends[:, 0], ends[:, 2], color=looks["color"], alpha=BAND_ALPHA, linewidth=0)
    return np.stack([along, ends[:, 1]], axis=1)


def draw_by_dt(axes: Axes, place: PlaceOf, runs: Iterable[RuleRuns]) -> None:
    """A line for each cycle time of each rule, in the cycle time's colour and with the rule's dashes."""
    for each, dash in zip(runs, DASHES, strict=False):
        for dt in each.dts:
            face = DT_COLOURS[dt] if dash == DASHES[0] else "white"
            looks = {"color": DT_COLOURS[dt], "marker": DT_MARKERS[dt], "markerfacecolor": face}
            draw_line(axes, place, each.at(dt), dash, **looks)


def draw_circles(axes: Axes, place: PlaceOf, cells: Iterable[OutcomeCell], label: str, *, is_dashed: bool) -> Artist:
    """Mark cells by circles with a black border; dashed ones are larger, so that both can stand at one place.

    Returns:
        What the legend shows.
    """
    scored = {cell: estimate.value for cell in cells if (estimate := mean_score(cell)) is not None}
    looks: dict[str, Any] = {"s": 110 if is_dashed else 50, "linestyle": "--" if is_dashed else "-"}
    looks |= {"edgecolor": "black", "linewidth": 1.1, "zorder": 3 if is_dashed else 4}
    axes.scatter([*map(place, scored)], [*scored.values()], facecolor=[DT_COLOURS[cell.dt] for cell in scored], **looks)
    return axes.scatter([], [], facecolor="none", label=label, **looks)


SINGLE_SIZE = (6.4, 4.8)
"""The size of a figure with one panel, in inches."""


def row_of_axes(
    figure: Figure, panels: Sequence[FigurePanel], *, width: float = 3.3, same_scale: bool = False
) -> Iterator[tuple[Axes, FigurePanel]]:
    """Axes for each panel that was run; the others say that they were not.

    Args:
        figure: To be filled.
        panels: From left to right.
        width: Of a panel among others, in inches.
        same_scale: Whether their scores can be compared, and not those of different tasks.
    """
    figure.set_size_inches(SINGLE_SIZE if len(panels) == 1 else (width * len(panels), 4.2))
    every = figure.subplots(1, len(panels), sharey=same_scale, squeeze=False)[0]
    every[0].set_ylabel(PERFORMANCE)
    for axes, panel in zip(every, panels, strict=True):
        axes.set_title(panel.title, fontsize=TITLE_SIZE, fontweight="bold")
        if panel.runs:
            format_thousands(axes)
            yield axes, panel
        else:
            _say_not_run(axes, keep_ticks=same_scale)


def _say_not_run(axes: Axes, *, keep_ticks: bool) -> None:
    axes.text(0.5, 0.5, "not run", ha="center", va="center", transform=axes.transAxes, fontsize=12, color="0.5")
    axes.set_xticks([])
    axes.grid(visible=False)
    if not keep_ticks:
        axes.set_yticks([])


def caption(panels: Sequence[FigurePanel]) -> str:
    """The sentences below a figure."""
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
    """What holds of all runs, once; where studies differ, each with the studies that it holds of."""
    studies: dict[str, list[str]] = {}
    for each in runs:
        if each.outcome.name not in studies.setdefault(words(each), []):
            studies[words(each)].append(each.outcome.name)
    if len(studies) == 1:
        return next(iter(studies))
    return join_words([f"{text} ({', '.join(names)})" for text, names in studies.items()])


def _seeds_text(seeds: Sequence[int]) -> str:
    return f"n = {len(seeds)} seed{'' if len(seeds) == 1 else 's'}"


_COLUMNS = 3
_MARKED_EVERY = 20
"""Bins from one marker to the next."""


def draw_curves(figure: Figure, panels: Sequence[FigurePanel]) -> Legend:
    """A pair of axes for each panel, with the same scales."""
    columns = min(_COLUMNS, len(panels))
    rows = ceil(len(panels) / columns)
    figure.set_size_inches(SINGLE_SIZE if len(panels) == 1 else (2.9 * columns, 2.2 * rows + 1.3))
    every = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for place, axes in enumerate(every.flatten()):
        if place < len(panels):
            _draw_curve_panel(axes, panels[place], is_top=place < columns, is_bottom=place + columns >= len(panels))
        else:
            axes.remove()
    for axes in every[:, 0]:
        axes.set_ylabel("episodic return")
    return [dt_handles(dts_of(each for panel in panels for each in panel.runs)), rule_handles(panels)]


def draw_curves_by(
    kind: Callable[[OutcomeCell], float], name: Callable[[float], str], figure: Figure, panels: Sequence[FigurePanel]
) -> Legend:
    """As `draw_curves`, with a pair of axes for each kind of cell.

    Args:
        kind: What tells cells apart, such as their batch time.
        name: What the panel of a kind is called.
        figure: To be filled.
        panels: A single one.
    """
    (panel,) = panels
    return draw_curves(figure, split_by(kind, name, panel))


def split_by(
    kind: Callable[[OutcomeCell], float], name: Callable[[float], str], panel: FigurePanel
) -> list[FigurePanel]:
    """A panel for each kind of cell."""
    kinds = sorted({kind(cell) for each in panel.runs for cell in each.cells})

    def part(wanted: float) -> FigurePanel:
        chosen = [
            replace(each, cells=tuple(cell for cell in each.cells if kind(cell) == wanted)) for each in panel.runs
        ]
        return FigurePanel(name(wanted), tuple(each for each in chosen if each.cells))

    return [part(each) for each in kinds]


def curve_of(cell: OutcomeCell, env_steps: int) -> Curve | None:
    """The mean curve of the runs that have a score; None if every run diverged."""
    runs = cell.curves[np.isfinite(cell.scores)]
    return mean_curve(runs, env_steps) if len(runs) else None


def _draw_curve_panel(axes: Axes, panel: FigurePanel, *, is_top: bool, is_bottom: bool) -> None:
    for runs, dash in zip(panel.runs, DASHES, strict=False):
        for cell in runs.cells:
            if (curve := curve_of(cell, runs.outcome.env_steps)) is not None:
                _draw_curve(axes, curve, cell, dash)
    axes.set_title(panel.title, fontsize=TITLE_SIZE, fontweight="bold", pad=TITLE_PAD if is_top else None)
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=(1, 2, 2.5, 5, 10)))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.tick_params(labelbottom=is_bottom)
    format_thousands(axes)
    if is_bottom:
        label_steps(axes)
    if is_top:
        add_seconds_axis(axes, float(panel.runs[0].env_dt))


def _draw_curve(axes: Axes, curve: Curve, cell: OutcomeCell, dash: str) -> None:
    colour = DT_COLOURS[cell.dt]
    begin = (
        DT_LOOK_INDEX[cell.dt] + 1
    ) * _MARKED_EVERY // DT_LOOK_COUNT - 1  # so that markers of different curves stand apart
    axes.plot(
        curve.env_steps,
        curve.mean,
        color=colour,
        linestyle=dash,
        linewidth=1.3,
        marker=DT_MARKERS[cell.dt],
        markersize=4,
        markerfacecolor=colour if dash == "-" else "white",
        markevery=(begin, _MARKED_EVERY),
    )
    if curve.low is not None and curve.high is not None:
        axes.fill_between(curve.env_steps, curve.low, curve.high, color=colour, alpha=BAND_ALPHA, linewidth=0)


def draw_against_dt(figure: Figure, panels: Sequence[FigurePanel]) -> Legend:
    """A pair of axes for each panel, each with its own scale, since they show different tasks."""
    for axes, panel in row_of_axes(figure, panels):
        _draw_dt_panel(axes, panel)
    return [_rule_line_handles(panels)]


def _draw_dt_panel(axes: Axes, panel: FigurePanel) -> None:
    for runs, dash, marker in zip(panel.runs, DASHES, MARKERS, strict=False):
        points = draw_line(axes, _milliseconds, runs.cells, dash, color=_line_colour(runs.start))
        colours = [DT_COLOURS[runs.start or dt] for dt in runs.dts]
        for (x, y), colour in zip(points, colours, strict=True):
            face = colour if dash == DASHES[0] else "white"
            axes.plot(x, y, marker=marker, markersize=6, color=colour, markerfacecolor=face, linestyle="none")
    log2_axis(axes, [float(dt) * 1e3 for dt in dts_of(panel.runs)], r"cycle time $\delta t$ (ms)")


def _rule_line_handles(panels: Sequence[FigurePanel]) -> list[Artist]:
    looks = {
        runs.rule: (dash, marker, runs.start)
        for panel in panels
        for runs, dash, marker in zip(panel.runs, DASHES, MARKERS, strict=False)
    }
    handles: list[Artist] = []
    for rule, (dash, marker, start) in looks.items():
        colour = _line_colour(start)
        face = colour if dash == DASHES[0] else "white"
        handles.append(Line2D([], [], color=colour, linestyle=dash, marker=marker, markerfacecolor=face, label=rule))
    return handles


def _line_colour(start: Duration | None) -> str:
    return NEUTRAL_COLOUR if start is None else DT_COLOURS[start]


def _milliseconds(cell: OutcomeCell) -> float:
    return float(cell.dt) * 1e3


_BASELINE_BATCH_TIME_S = BASELINE_BATCH * 0.016
"""The batch time of the baseline at 16 ms, which dt-aware values from there keep."""


def batch_time_s(cell: OutcomeCell) -> float:
    """How long it takes to collect a batch."""
    return round(float(cell.dt) * float(cell.values["batch"]), 9)


def draw_against_batch_time(figure: Figure, panels: Sequence[FigurePanel]) -> Legend:
    """A pair of axes for each panel, with the same scales."""
    circles: list[Artist] = []
    for axes, panel in row_of_axes(figure, panels, same_scale=True):
        circles += _draw_batch_time_panel(axes, panel)
    runs = [each for panel in panels for each in panel.runs]
    return [dt_handles(dts_of(runs)), rule_handles(panels), circles]


def _draw_batch_time_panel(axes: Axes, panel: FigurePanel) -> list[Artist]:
    """Draw lines, and mark the baseline's points and the dt-aware ones that follow from it; these for the legend."""
    lines = [runs for runs in panel.runs if not runs.is_marked]
    axes.axvline(_BASELINE_BATCH_TIME_S, color=NEUTRAL_COLOUR, linewidth=0.8, zorder=0)
    draw_by_dt(axes, batch_time_s, lines)
    log2_axis(axes, sorted({batch_time_s(cell) for runs in lines for cell in runs.cells}), "batch time (s)")
    handles = []
    for runs in panel.runs:
        if runs.is_marked:
            followed = [cell for cell in lines[0].cells if batch_time_s(cell) == _BASELINE_BATCH_TIME_S]
            from_baseline = f"dt-aware from the baseline ({_BASELINE_BATCH_TIME_S:g} s)"
            handles += [
                draw_circles(axes, batch_time_s, runs.cells, runs.rule, is_dashed=True),
                draw_circles(axes, batch_time_s, followed, from_baseline, is_dashed=False),
            ]
    return handles


_PLACE_OF_ONE = 4.0
"""Where a discount of 1 stands: one place after the largest other, .99^(1/8), though it is infinitely far away."""


def discount_place(cell: OutcomeCell) -> float:
    """Where a cell stands: of a discount .99^e it is -log2 e, so that those of the sweep are one apart."""
    discount = cell.values["discount"]
    return _PLACE_OF_ONE if discount == 1 else -log2(log(discount) / log(0.99))


def draw_against_gamma(figure: Figure, panels: Sequence[FigurePanel]) -> Legend:
    """One pair of axes: sweeps as lines, and two choices as dash-bordered and as solid-bordered circles."""
    ((axes, panel),) = row_of_axes(figure, panels)
    sweeps = [runs for runs in panel.runs if not runs.is_marked]
    for runs in sweeps:
        draw_by_dt(axes, discount_place, [runs])
    dashed, solid = (runs for runs in panel.runs if runs.is_marked)
    circles = [
        draw_circles(axes, discount_place, runs.cells, runs.rule, is_dashed=is_dashed)
        for runs, is_dashed in ((dashed, True), (solid, False))
    ]
    ticks = {discount_place(cell): cell.values["discount"] for runs in sweeps for cell in runs.cells}
    axes.set_xticks(list(ticks), [discount_text(discount) for discount in ticks.values()])
    apart = ", and 1" if _PLACE_OF_ONE in ticks else ""
    axes.set_xlabel(rf"discount $\gamma$ = .99$^e$, on a logarithmic axis of $e${apart}")
    return [dt_handles(dts_of(panel.runs)), circles]


def discount_text(discount: float) -> str:
    """A discount as the paper writes it: '.851', '.9987', '1'."""
    digits = 4 if discount > 0.998 else 3
    return f"{discount:.{digits}f}".lstrip("0") if discount < 1 else "1"


CODE_VARIANTS = {
    ("batch", "released"): "the paper's\ntext",
    ("episode_end", "released"): "learning at\nepisodes' ends",
    ("batch", "pytorch"): "PyTorch's\nweights",
    ("episode_end", "pytorch"): "both",
}
"""By when it learns and its initial weights."""
_VARIANT_DODGE = 0.14
"""How far points of a way stand from each other, as a share of the way to the next."""


def draw_released_code(figure: Figure, panels: Sequence[FigurePanel]) -> Legend:
    """A pair of axes for each task, the ways side by side."""
    for axes, panel in row_of_axes(figure, panels, width=4.4):
        _draw_variant_panel(axes, panel)
    runs = [each for panel in panels for each in panel.runs]
    looks: dict[str, Any] = {"color": NEUTRAL_COLOUR, "marker": "o", "linestyle": "none"}
    return [
        [
            *dt_handles(dts_of(runs)),
            Line2D([], [], **looks, label="dt-aware (filled)"),
            Line2D([], [], **looks, markerfacecolor="white", label="baseline (open)"),
        ]
    ]


def _draw_variant_panel(axes: Axes, panel: FigurePanel) -> None:
    dts = dts_of(panel.runs)
    kinds = [(rule, dt) for dt in dts for rule in ("baseline", "dt-aware")]
    for runs in panel.runs:
        for cell in runs.cells:
            shift = _VARIANT_DODGE * (kinds.index((runs.rule, cell.dt)) - (len(kinds) - 1) / 2)
            _draw_point(
                axes, cell, list(CODE_VARIANTS).index(variant_of(cell)) + shift, is_filled=runs.rule == "dt-aware"
            )
    axes.set_xticks(range(len(CODE_VARIANTS)), list(CODE_VARIANTS.values()))
    axes.grid(visible=False, axis="x")


def _draw_point(axes: Axes, cell: OutcomeCell, x: float, *, is_filled: bool) -> None:
    estimate = mean_score(cell)
    if estimate is None:
        return
    error = 0.0 if estimate.high is None else estimate.high - estimate.value
    colour = DT_COLOURS[cell.dt]
    axes.errorbar(
        x,
        estimate.value,
        yerr=error,
        color=colour,
        marker=DT_MARKERS[cell.dt],
        markerfacecolor=colour if is_filled else "white",
        markersize=6,
        capsize=3,
    )


def variant_of(cell: OutcomeCell) -> tuple[str, str]:
    """When it learns, and its initial weights."""
    return cell.values["learn_when"], cell.values["initial_weights"]
