"""Every figure of the paper and its appendix, and a few of ours: on paper, and as data for the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from cycletime.duration import Duration
from cycletime.experiments.outcome import OutcomeCell
from cycletime.experiments.paper.data import BASELINE_BATCH, PaperResults
from cycletime.experiments.paper.experiments import unknown_name_error, winners_name
from cycletime.experiments.paper.figure_kinds import (
    CODE_VARIANTS,
    DT_COLOURS,
    PERFORMANCE,
    FigurePanel,
    FigurePart,
    PaperFigure,
    RuleRuns,
    batch_time_s,
    caption,
    discount_text,
    draw_against_batch_time,
    draw_against_dt,
    draw_against_gamma,
    draw_curves,
    draw_curves_by,
    draw_released_code,
    dts_of,
    select_runs,
    split_by,
    variant_of,
)
from cycletime.experiments.paper.sac_claims import ROBOT_BASELINE
from cycletime.reports.figure_style import COLOURS, DASHES, STYLE, add_footer, save_figure
from cycletime.reports.formatting import dt_text
from cycletime.reports.page.figures import CYCLE_TIME, FigureCell, FigureData, FigureLine, PageFigure, PagePanel
from cycletime.reports.page.values import reference_lines
from cycletime.training.atomic_files import disk_errors

_TUNED, _SAC_TUNED, _PENDULUM_TUNED = map(winners_name, ("ppo-grid", "sac-gamma-sweep", "pendulum-grid"))
_SCALED_DISCOUNT = r"$\gamma_{\delta t, 1}$ (tuned at 16 ms, scaled)"
_KEPT_DISCOUNT = r"$\gamma_{\delta t, 2}$ (tuned at 16 ms, kept)"
_Source: TypeAlias = tuple[str, dict[str, object]]
_STARTS = ("4ms", "16ms", "64ms")
_ROBOT_DISCOUNTS = r"$\gamma_{\delta t, 1}$ = .9227$^3$ = .786 and $\gamma_{\delta t, 2}$ = .9227"


def _whole_studies(*studies: tuple[str, str]) -> tuple[FigurePart, ...]:
    """A single part: of each study all runs, under a rule's name."""
    names = tuple(study for study, _ in studies)
    return (FigurePart(names, lambda data: [select_runs(data, study, rule) for study, rule in studies]),)


def _discounts(baseline: str, aware: str, *rules: str, title: str = "") -> FigurePart:
    """SAC's dt-aware discounts, of the rules 'tuned-scaled' and 'tuned', with the baseline as the second line."""
    names = {"tuned-scaled": _SCALED_DISCOUNT, "tuned": _KEPT_DISCOUNT}

    def runs(data: PaperResults) -> list[RuleRuns]:
        first, *others = [select_runs(data, aware, names[rule], rule=rule) for rule in rules]
        return [first, select_runs(data, baseline, "baseline"), *others]

    return FigurePart((baseline, aware), runs, title)


def _at_cycle_times(runs: RuleRuns, dts: tuple[Duration, ...]) -> RuleRuns:
    return replace(runs, cells=tuple(cell for cell in runs.cells if cell.dt in dts))


def _pendulum_rules(*rules: str, title: str = "") -> FigurePart:
    """PPO's rules on the Double Pendulum, as the paper ran them."""
    return FigurePart(
        ("ppo-pendulum",), lambda data: [select_runs(data, "ppo-pendulum", rule, rule=rule) for rule in rules], title
    )


def _batch_times(
    aware: str, other: str | None = None, rule: str = "", *, title: str = "", alone: bool = False
) -> FigurePart:
    """The dt-aware rule and perhaps another, at all batch times; alone: at the cycle times of the other."""

    def runs(data: PaperResults) -> list[RuleRuns]:
        found = select_runs(data, aware, "dt-aware")
        if other is None:
            return [found]
        second = select_runs(data, other, rule)
        return [_at_cycle_times(found, second.dts) if alone else found, second]

    return FigurePart((aware,) if other is None else (aware, other), runs, title)


def _with_baseline(part: FigurePart, study: str) -> FigurePart:
    """A part with the baseline's points."""

    def runs(data: PaperResults) -> Iterable[RuleRuns]:
        yield from part.runs(data)
        yield replace(select_runs(data, study, "baseline", rule="baseline"), is_marked=True)

    return FigurePart((*part.needs, study), runs, part.title)


def _from_starts(data: PaperResults) -> list[RuleRuns]:
    found = []
    for start in _STARTS:
        outcome = data.outcome(f"ppo-dt0-{start}")
        values = outcome.cell(dt=start).values
        name = f"dt-aware from {start.removesuffix('ms')} ms (b {values['batch']}, m {values['minibatch']})"
        found.append(replace(select_runs(data, outcome.name, name), start=Duration(start)))
    return [*found, select_runs(data, _TUNED, "tuned at each cycle time")]


def _marked_sweep(data: PaperResults) -> list[RuleRuns]:
    choices = {
        "sac-baseline": r"baseline ($\gamma$ = .99)",
        "sac-scaled": r"scaled ($\gamma$ = .99$^{\delta t / 16\,\mathrm{ms}}$)",
    }
    points = [replace(select_runs(data, study, name), is_marked=True) for study, name in choices.items()]
    return [select_runs(data, "sac-gamma-sweep", "sweep"), *points]


def _robot_rules(study: str) -> FigurePart:
    """PPO's rules on the robot; at 40 ms, where the values come from, they are the same."""

    def runs(data: PaperResults) -> list[RuleRuns]:
        return [
            select_runs(data, study, "dt-aware", rule="dt-aware"),
            select_runs(data, study, "baseline", rule="baseline", dt="10ms"),
        ]

    return FigurePart((study,), runs)


def _robot_discounts(data: PaperResults) -> list[RuleRuns]:
    """SAC on the robot: the sweep at 40 ms, the three discounts at 120 ms, and what each of these is."""
    longer = select_runs(data, "sac-robot-120ms", "120 ms")
    aware = tuple(cell for cell in longer.cells if cell.labels["discount"] != ROBOT_BASELINE)
    return [
        select_runs(data, "sac-robot-sweep", "40 ms"),
        longer,
        replace(select_runs(data, "sac-robot-120ms", "baseline", discount=ROBOT_BASELINE), is_marked=True),
        replace(longer, rule=_ROBOT_DISCOUNTS, cells=aware, is_marked=True),
    ]


def _code_variants(task: str, title: str, baseline: str, aware: str) -> FigurePart:
    """Baseline and dt-aware values with the ways of the paper's text and with those of the released code."""

    def runs(data: PaperResults) -> Iterable[RuleRuns]:
        for rule, study in (("baseline", baseline), ("dt-aware", aware)):
            labels: dict[str, object] = {"batch": BASELINE_BATCH} if study == "ppo-dt-aware" else {}
            others = select_runs(data, "ppo-released-code", rule, rule=rule, task=task)
            yield others
            yield _at_cycle_times(select_runs(data, study, rule, rule=rule, **labels), others.dts)

    return FigurePart(tuple(dict.fromkeys(("ppo-released-code", baseline, aware))), runs, title)


def _carried_and_kept(title: str, aware: _Source, kept: _Source, tuned: str) -> FigurePart:
    """One set of values carried and kept, and what tuning at each cycle time finds; sources are studies and labels."""

    def runs(data: PaperResults) -> Iterable[RuleRuns]:
        for (study, labels), rule in (
            (aware, "dt-aware"),
            (kept, "baseline"),
            ((tuned, {}), "tuned at each cycle time"),
        ):
            yield select_runs(data, study, rule, **labels)

    return FigurePart(tuple(dict.fromkeys((aware[0], kept[0], tuned))), runs, title)


_by_batch_time = partial(draw_curves_by, batch_time_s, lambda seconds: f"batch time {seconds:g} s")
_by_discount = partial(
    draw_curves_by, lambda cell: cell.values["discount"], lambda g: rf"$\gamma$ = {discount_text(g)}"
)
_SAC_PENDULUM = ("sac-pendulum-baseline", "sac-pendulum-dt-aware")

FIGURES: dict[str, PaperFigure] = {
    "ppo-baseline": PaperFigure("Baseline PPO on Reacher", _whole_studies(("ppo-baseline", "baseline")), draw_curves),
    "ppo-tuned": PaperFigure(
        "PPO on Reacher: the baseline, and values tuned at each cycle time",
        _whole_studies((_TUNED, "tuned (fresh seeds)"), ("ppo-baseline", "baseline")),
        draw_against_dt,
    ),
    "ppo-batch-time": PaperFigure(
        "dt-aware PPO on Reacher, from different batch sizes at 16 ms",
        (_with_baseline(_batch_times("ppo-dt-aware"), "ppo-baseline"),),
        draw_against_batch_time,
        "PPO against batch time",
    ),
    "ppo-scaled": PaperFigure(
        r"PPO on Reacher: dt-aware, and with $\gamma$ and $\lambda$ scaled at short cycle times too",
        (_batch_times("ppo-dt-aware", "ppo-scaled", "scaled"),),
        draw_against_batch_time,
        "PPO against batch time",
    ),
    "sac-baseline": PaperFigure(
        "Baseline SAC on Reacher", _whole_studies(("sac-baseline", "baseline")), draw_curves, "SAC curves"
    ),
    "sac-tuned": PaperFigure(
        r"SAC on Reacher: choices of the discount $\gamma$",
        _whole_studies((_SAC_TUNED, "tuned (fresh seeds)"), ("sac-baseline", "baseline"), ("sac-scaled", "scaled")),
        draw_against_dt,
    ),
    "sac-gamma": PaperFigure(
        r"SAC on Reacher: a sweep of the discount $\gamma$",
        (FigurePart(("sac-gamma-sweep", "sac-baseline", "sac-scaled"), _marked_sweep),),
        draw_against_gamma,
    ),
    "three-part": PaperFigure(
        "dt-aware values and the baseline",
        (
            _discounts("sac-baseline", "sac-dt-aware", "tuned-scaled", "tuned", title="SAC on Reacher"),
            _pendulum_rules("dt-aware", "baseline", title="PPO on Double Pendulum"),
            _discounts(*_SAC_PENDULUM, "tuned-scaled", "tuned", title="SAC on Double Pendulum"),
        ),
        draw_against_dt,
    ),
    "ppo-dt0": PaperFigure(
        "dt-aware PPO on Reacher, from values tuned at different cycle times",
        (FigurePart((*(f"ppo-dt0-{start}" for start in _STARTS), _TUNED), _from_starts),),
        draw_against_dt,
    ),
    "ppo-robot": PaperFigure(
        "PPO on the simulated robot, from b = 400 and m = 10 at 40 ms",
        (_robot_rules("ppo-robot"),),
        draw_curves,
        "PPO robot curves",
    ),
    "sac-robot": PaperFigure(
        r"SAC on the simulated robot: the discount $\gamma$ at 40 and 120 ms",
        (FigurePart(("sac-robot-sweep", "sac-robot-120ms"), _robot_discounts),),
        draw_against_gamma,
    ),
    "ppo-constant": PaperFigure(
        r"PPO on Reacher: dt-aware, and with $\gamma$ and $\lambda$ kept at long cycle times too",
        (_batch_times("ppo-dt-aware", "ppo-constant", "constant"),),
        draw_against_batch_time,
        "PPO against batch time",
    ),
    "ppo-batch-time-curves": PaperFigure(
        "dt-aware PPO on Reacher",
        (_batch_times("ppo-dt-aware"),),
        _by_batch_time,
        "PPO curves by batch time",
    ),
    "ppo-scaled-curves": PaperFigure(
        r"PPO on Reacher: dt-aware, and with $\gamma$ and $\lambda$ scaled at short cycle times too",
        (_batch_times("ppo-dt-aware", "ppo-scaled", "scaled", alone=True),),
        _by_batch_time,
        "PPO curves by batch time",
    ),
    "ppo-constant-curves": PaperFigure(
        r"PPO on Reacher: dt-aware, and with $\gamma$ and $\lambda$ kept at long cycle times too",
        (_batch_times("ppo-dt-aware", "ppo-constant", "constant", alone=True),),
        _by_batch_time,
        "PPO curves by batch time",
    ),
    "sac-gamma-curves": PaperFigure(
        r"SAC on Reacher: a sweep of the discount $\gamma$", _whole_studies(("sac-gamma-sweep", "sweep")), _by_discount
    ),
    "sac-dt-aware-curves-1": PaperFigure(
        r"SAC on Reacher: $\gamma_{\delta t, 1}$ = .851$^{\delta t / 16\,\mathrm{ms}}$ and the baseline",
        (_discounts("sac-baseline", "sac-dt-aware", "tuned-scaled"),),
        draw_curves,
        "SAC curves",
    ),
    "sac-dt-aware-curves-2": PaperFigure(
        r"SAC on Reacher: $\gamma_{\delta t, 2}$ = .851 and the baseline",
        (_discounts("sac-baseline", "sac-dt-aware", "tuned"),),
        draw_curves,
        "SAC curves",
    ),
    "pendulum-baseline-curves": PaperFigure(
        "Baseline PPO on Double Pendulum", (_pendulum_rules("baseline"),), draw_curves, "PPO pendulum curves"
    ),
    "pendulum-dt-aware-curves": PaperFigure(
        "PPO on Double Pendulum: dt-aware and the baseline",
        (_pendulum_rules("dt-aware", "baseline"),),
        draw_curves,
        "PPO pendulum curves",
    ),
    "sac-pendulum-curves-baseline": PaperFigure(
        "Baseline SAC on Double Pendulum",
        _whole_studies(("sac-pendulum-baseline", "baseline")),
        draw_curves,
        "SAC pendulum curves",
    ),
    "sac-pendulum-curves-1": PaperFigure(
        r"SAC on Double Pendulum: $\gamma_{\delta t, 1}$ = .9987$^{\delta t / 16\,\mathrm{ms}}$ and the baseline",
        (_discounts(*_SAC_PENDULUM, "tuned-scaled"),),
        draw_curves,
        "SAC pendulum curves",
    ),
    "sac-pendulum-curves-2": PaperFigure(
        r"SAC on Double Pendulum: $\gamma_{\delta t, 2}$ = .9987 and the baseline",
        (_discounts(*_SAC_PENDULUM, "tuned"),),
        draw_curves,
        "SAC pendulum curves",
    ),
    "ppo-robot-2000-curves": PaperFigure(
        "PPO on the simulated robot, from b = 2000 and m = 50 at 40 ms",
        (_robot_rules("ppo-robot-2000"),),
        draw_curves,
        "PPO robot curves",
    ),
    "sac-robot-40ms-curves": PaperFigure(
        r"SAC on the simulated robot at 40 ms: a sweep of the discount $\gamma$",
        _whole_studies(("sac-robot-sweep", "sweep")),
        _by_discount,
        "SAC robot curves",
    ),
    "sac-robot-120ms-curves": PaperFigure(
        r"SAC on the simulated robot at 120 ms: three discounts $\gamma$, and two of them for twice the time",
        _whole_studies(("sac-robot-120ms", "as long as at 40 ms"), ("sac-robot-extended", "for twice the time")),
        _by_discount,
        "SAC robot curves",
    ),
    "pendulum-tuned": PaperFigure(
        "PPO on Double Pendulum: values tuned at each cycle time, the baseline, and dt-aware",
        (
            FigurePart(
                (_PENDULUM_TUNED, "ppo-pendulum"),
                lambda data: [
                    select_runs(data, _PENDULUM_TUNED, "tuned (fresh seeds)"),
                    *(select_runs(data, "ppo-pendulum", rule, rule=rule) for rule in ("baseline", "dt-aware")),
                ],
            ),
        ),
        draw_against_dt,
    ),
    "pendulum-batch-time": PaperFigure(
        "PPO on Double Pendulum, from different batch sizes at 16 ms",
        (
            _with_baseline(_batch_times("pendulum-dt-aware", title="dt-aware"), "ppo-pendulum"),
            _batch_times("pendulum-dt-aware", "pendulum-scaled", "scaled", title="dt-aware and scaled"),
            _batch_times("pendulum-dt-aware", "pendulum-constant", "constant", title="dt-aware and constant"),
        ),
        draw_against_batch_time,
    ),
    "rule": PaperFigure(
        "PPO's values for 16 ms at other cycle times: carried by the rule, kept, and tuned anew",
        (
            _carried_and_kept("Reacher", ("ppo-dt-aware", {"batch": BASELINE_BATCH}), ("ppo-baseline", {}), _TUNED),
            _carried_and_kept(
                "Double Pendulum",
                ("ppo-pendulum", {"rule": "dt-aware"}),
                ("ppo-pendulum", {"rule": "baseline"}),
                _PENDULUM_TUNED,
            ),
        ),
        draw_against_dt,
    ),
    "released-code": PaperFigure(
        "PPO with the ways of the paper's text, and with those of the released code",
        (
            _code_variants("reacher", "Reacher", "ppo-baseline", "ppo-dt-aware"),
            _code_variants("double-pendulum", "Double Pendulum", "ppo-pendulum", "ppo-pendulum"),
        ),
        draw_released_code,
    ),
}
"""The paper's in its order, then its appendix's, then ours."""


__all__ = ["FIGURES", "FORMATS", "draw_figures", "missing_figures", "save_figures"]

FORMATS = ("pdf", "svg", "png")


def save_figures(data: PaperResults, folder: Path, only: Sequence[str] = ()) -> list[Path]:
    """Draw the figures that there is data for, each as PDF, SVG and PNG; the same data give the same bytes.

    Args:
        data: What came of the studies.
        folder: Where the files go; it is made.
        only: The figures that are wanted, by default all.
    """
    paths = []
    with mpl.rc_context(STYLE):
        drawn = draw_figures(data, only)
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        for stem, figure in drawn.items():
            paths += save_figure(figure, folder, stem, FORMATS)
    return paths


def missing_figures(data: PaperResults) -> dict[str, str]:
    """By name, the figures that cannot be drawn, and what they need."""
    lacking = {stem: drawing.missing(data) for stem, drawing in FIGURES.items()}
    return {stem: ", ".join(studies) for stem, studies in lacking.items() if studies}


def draw_figures(data: PaperResults, only: Sequence[str] = ()) -> dict[str, Figure]:
    """Figures by name. Those of a family have the same vertical axis, whichever of them are wanted."""
    for stem in only:
        if stem not in FIGURES:
            raise unknown_name_error("figure", stem, FIGURES)
    lacking = missing_figures(data)
    wanted = [stem for stem in only or FIGURES if stem not in lacking]
    families = {FIGURES[stem].family for stem in wanted} - {""}
    drawn = {
        stem: _draw(stem, data)
        for stem, drawing in FIGURES.items()
        if stem not in lacking and (stem in wanted or drawing.family in families)
    }
    for family in families:
        _share_vertical_axis([figure for stem, figure in drawn.items() if FIGURES[stem].family == family])
    return {stem: drawn[stem] for stem in wanted}


def _draw(stem: str, data: PaperResults) -> Figure:
    drawing = FIGURES[stem]
    panels = [part.panel(data) for part in drawing.parts]
    figure = Figure()
    legend = drawing.draw(figure, panels)
    figure.suptitle(drawing.title, fontsize=10)
    add_footer(figure, legend, caption(panels))
    return figure


def _share_vertical_axis(figures: Sequence[Figure]) -> None:
    every = [axes for figure in figures for axes in figure.axes]
    ends = [end for axes in every for end in axes.get_ylim()]
    for axes in every:
        axes.set_ylim(min(ends), max(ends))


_TEX_LETTERS = {r"\gamma": "\N{GREEK SMALL LETTER GAMMA}", r"\lambda": "λ", r"\delta t": "δt", r"\,": " "}
_RULE_COLOURS = {"dt-aware": 0, "baseline": 1, "tuned": 2, "scaled": 3, "constant": 4}
"""The colour of a rule, the same in all figures."""


def add_paper_figures(page: FigureData, data: PaperResults, only: Sequence[str] = ()) -> None:
    """All figures that there is data for, or some: what the rule is worth first, then the others in their order."""
    missing = missing_figures(data)
    for stem in only or ("rule", *(stem for stem in FIGURES if stem != "rule")):
        if stem not in missing:
            drawing = FIGURES[stem]
            panels = [part.panel(data) for part in drawing.parts]
            page.add(*_figure(stem, drawing.title, drawing.draw, [panel for panel in panels if panel.runs]))


def _without_tex(text: str) -> str:
    """A title without the marks of TeX."""
    for mark, letter in _TEX_LETTERS.items():
        text = text.replace(mark, letter)
    return re.sub(r"[${}\\_^]|mathrm", "", text)


def _cell_name(runs: RuleRuns, cell: OutcomeCell) -> str:
    """A name that no other cell has: its study, and its number there."""
    return f"{runs.outcome.name}/{runs.outcome.cells.index(cell)}"


def _shown_cells(cells: Iterable[tuple[RuleRuns, OutcomeCell]]) -> dict[str, FigureCell]:
    """Cells by name, of which at least one run has a score."""
    found = {}
    for runs, cell in cells:
        finite = np.isfinite(cell.scores)
        if finite.any():
            scores, curves = cell.scores[finite].tolist(), cell.curves[finite]
            found[_cell_name(runs, cell)] = FigureCell(scores, curves, runs.outcome.env_steps)
    return found


def _figure(
    stem: str, title: str, draw: Callable[..., Any], panels: Sequence[FigurePanel]
) -> tuple[PageFigure, dict[str, FigureCell]]:
    if isinstance(draw, partial) and draw.func is draw_curves_by:
        kind, name = draw.args
        panels, draw = split_by(kind, name, panels[0]), draw_curves
    is_curves = draw is draw_curves
    cells = _shown_cells(_all_cells(panels))
    told = [_PANELS[draw](panel, cells) for panel in panels]
    x_label = {draw_against_batch_time: "batch time (s)", draw_against_gamma: "discount"}.get(draw, CYCLE_TIME)
    common: dict[str, Any] = {
        "name": stem,
        "title": _without_tex(title),
        "panels": tuple(told),
        "caption": caption(panels),
        "command": f"cycletime paper figures {stem}",
    }
    if is_curves:
        step_s = float(panels[0].runs[0].env_dt)
        return PageFigure(**common, kind="curves", y_label="episodic return", step_s=step_s, pack=stem), cells
    is_logarithmic = draw not in (draw_released_code, draw_against_gamma)
    return PageFigure(
        **common,
        kind="points",
        y_label=PERFORMANCE,
        x_label="" if draw is draw_released_code else x_label,
        is_logarithmic=is_logarithmic,
        same_scale=draw is draw_against_batch_time,
    ), cells


def _all_cells(panels: Iterable[FigurePanel]) -> list[tuple[RuleRuns, OutcomeCell]]:
    return [(runs, cell) for panel in panels for runs in panel.runs for cell in runs.cells]


def _curves(panel: FigurePanel, cells: dict[str, FigureCell]) -> PagePanel:
    several = len(panel.runs) > 1
    lines = [
        FigureLine(_line_name(runs, cell.dt, several=several), (name,), DT_COLOURS[cell.dt], dash)
        for runs, dash in zip(panel.runs, DASHES, strict=False)
        for cell in sorted(runs.cells, key=lambda cell: cell.dt)
        if (name := _cell_name(runs, cell)) in cells
    ]
    return PagePanel(_without_tex(panel.title), tuple(lines))


def _line_name(runs: RuleRuns, dt: Duration, *, several: bool) -> str:
    return f"{dt_text(dt)}, {_without_tex(runs.rule)}" if several else dt_text(dt)


def _against_dt(panel: FigurePanel, cells: dict[str, FigureCell]) -> PagePanel:
    dts = dts_of(panel.runs)
    lines = []
    for index, (runs, dash) in enumerate(zip(panel.runs, DASHES, strict=False)):
        colour = DT_COLOURS[runs.start] if runs.start else _rule_colour(runs.rule, index)
        lines.append(
            FigureLine(_without_tex(runs.rule), _cells_at(runs, cells, dts, lambda cell: cell.dt), colour, dash)
        )
    task = panel.runs[0].cells[0].labels["task"]
    return PagePanel(
        _without_tex(panel.title), (*lines, *reference_lines(task, dts)), tuple(float(dt) * 1e3 for dt in dts)
    )


def _rule_colour(rule: str, index: int) -> str:
    known = next((place for name, place in _RULE_COLOURS.items() if rule.startswith(name)), index)
    return COLOURS[known % len(COLOURS)]


def _cells_at(
    runs: RuleRuns, cells: dict[str, FigureCell], places: Sequence[Any], place_of: Callable[[OutcomeCell], Any]
) -> tuple[str | None, ...]:
    """For each place the name of its cell; None where there is none with a score."""
    names = {place_of(cell): _cell_name(runs, cell) for cell in runs.cells}
    return tuple(name if (name := names.get(place)) in cells else None for place in places)


def _by_dt(place_of: Callable[[OutcomeCell], float]) -> Callable[[FigurePanel, dict[str, FigureCell]], PagePanel]:
    """Lines against something else, one for each cycle time of each rule."""

    def panel_of(panel: FigurePanel, cells: dict[str, FigureCell]) -> PagePanel:
        places = sorted({place_of(cell) for runs in panel.runs for cell in runs.cells})
        lines = []
        for runs, dash in zip(panel.runs, DASHES, strict=False):
            for dt in runs.dts:
                own = RuleRuns(runs.rule, runs.outcome, runs.at(dt))
                name = _line_name(runs, dt, several=len(panel.runs) > 1)
                lines.append(FigureLine(name, _cells_at(own, cells, places, place_of), DT_COLOURS[dt], dash))
        return PagePanel(_without_tex(panel.title), tuple(lines), tuple(places))

    return panel_of


def _released_code(panel: FigurePanel, cells: dict[str, FigureCell]) -> PagePanel:
    lines: dict[tuple[Duration, str], dict[tuple[str, str], str]] = {}
    for runs in panel.runs:
        for cell in runs.cells:
            lines.setdefault((cell.dt, runs.rule), {})[variant_of(cell)] = _cell_name(runs, cell)
    told = [
        FigureLine(
            f"{dt_text(dt)}, {rule}",
            tuple(name if (name := names.get(way)) in cells else None for way in CODE_VARIANTS),
            DT_COLOURS[dt],
            DASHES[0 if rule == "dt-aware" else 1],
        )
        for (dt, rule), names in sorted(lines.items())
    ]
    return PagePanel(
        panel.title,
        tuple(told),
        tuple(float(place) for place in range(len(CODE_VARIANTS))),
        tuple(CODE_VARIANTS.values()),
    )


_PANELS: dict[Callable[..., Any], Callable[[FigurePanel, dict[str, FigureCell]], PagePanel]] = {
    draw_curves: _curves,
    draw_against_dt: _against_dt,
    draw_against_batch_time: _by_dt(batch_time_s),
    draw_against_gamma: _by_dt(lambda cell: float(cell.values["discount"])),
    draw_released_code: _released_code,
}
"""By the function that draws a panel on paper, the one that makes it data."""
