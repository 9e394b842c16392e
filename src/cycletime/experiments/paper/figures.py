"""Every figure of the paper and its appendix, and a few of ours, for print and for the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from cycletime.duration import Duration
from cycletime.experiments.investigation import known_name, winners_name
from cycletime.experiments.paper.data import BASELINE_BATCH, PaperResults
from cycletime.experiments.paper.experiments import TITLE
from cycletime.experiments.paper.figure_kinds import (
    AGAINST_BATCH_TIME,
    AGAINST_DISCOUNT,
    AGAINST_DT,
    CODE_VARIANTS_SIDE_BY_SIDE,
    CURVES,
    CURVES_BY_BATCH_TIME,
    CURVES_BY_DISCOUNT,
    FigurePart,
    PaperFigure,
    RuleRuns,
    select_runs,
)
from cycletime.experiments.paper.sac_claims import ROBOT_BASELINE
from cycletime.reports.figure import FigureSpec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
        yield replace(select_runs(data, study, "baseline", rule="baseline"), ring="dashed")

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
    kept, scaled = r"baseline ($\gamma$ = .99)", r"scaled ($\gamma$ = .99$^{\delta t / 16\,\mathrm{ms}}$)"
    return [
        select_runs(data, "sac-gamma-sweep", "sweep"),
        replace(select_runs(data, "sac-baseline", kept), ring="dashed"),
        replace(select_runs(data, "sac-scaled", scaled), ring="solid"),
    ]


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
        replace(select_runs(data, "sac-robot-120ms", "baseline", discount=ROBOT_BASELINE), ring="dashed"),
        replace(longer, rule=_ROBOT_DISCOUNTS, cells=aware, ring="solid"),
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


_SAC_PENDULUM = ("sac-pendulum-baseline", "sac-pendulum-dt-aware")

FIGURES: dict[str, PaperFigure] = {
    "ppo-baseline": PaperFigure("Baseline PPO on Reacher", _whole_studies(("ppo-baseline", "baseline")), CURVES),
    "ppo-tuned": PaperFigure(
        "PPO on Reacher: the baseline, and values tuned at each cycle time",
        _whole_studies((_TUNED, "tuned (fresh seeds)"), ("ppo-baseline", "baseline")),
        AGAINST_DT,
    ),
    "ppo-batch-time": PaperFigure(
        "dt-aware PPO on Reacher, from different batch sizes at 16 ms",
        (_with_baseline(_batch_times("ppo-dt-aware"), "ppo-baseline"),),
        AGAINST_BATCH_TIME,
        "PPO against batch time",
    ),
    "ppo-scaled": PaperFigure(
        r"PPO on Reacher: dt-aware, and with $\gamma$ and $\lambda$ scaled at short cycle times too",
        (_batch_times("ppo-dt-aware", "ppo-scaled", "scaled"),),
        AGAINST_BATCH_TIME,
        "PPO against batch time",
    ),
    "sac-baseline": PaperFigure(
        "Baseline SAC on Reacher", _whole_studies(("sac-baseline", "baseline")), CURVES, "SAC curves"
    ),
    "sac-tuned": PaperFigure(
        r"SAC on Reacher: choices of the discount $\gamma$",
        _whole_studies((_SAC_TUNED, "tuned (fresh seeds)"), ("sac-baseline", "baseline"), ("sac-scaled", "scaled")),
        AGAINST_DT,
    ),
    "sac-gamma": PaperFigure(
        r"SAC on Reacher: a sweep of the discount $\gamma$",
        (FigurePart(("sac-gamma-sweep", "sac-baseline", "sac-scaled"), _marked_sweep),),
        AGAINST_DISCOUNT,
    ),
    "three-part": PaperFigure(
        "dt-aware values and the baseline",
        (
            _discounts("sac-baseline", "sac-dt-aware", "tuned-scaled", "tuned", title="SAC on Reacher"),
            _pendulum_rules("dt-aware", "baseline", title="PPO on Double Pendulum"),
            _discounts(*_SAC_PENDULUM, "tuned-scaled", "tuned", title="SAC on Double Pendulum"),
        ),
        AGAINST_DT,
    ),
    "ppo-dt0": PaperFigure(
        "dt-aware PPO on Reacher, from values tuned at different cycle times",
        (FigurePart((*(f"ppo-dt0-{start}" for start in _STARTS), _TUNED), _from_starts),),
        AGAINST_DT,
    ),
    "ppo-robot": PaperFigure(
        "PPO on the simulated robot, from b = 400 and m = 10 at 40 ms",
        (_robot_rules("ppo-robot"),),
        CURVES,
        "PPO robot curves",
    ),
    "sac-robot": PaperFigure(
        r"SAC on the simulated robot: the discount $\gamma$ at 40 and 120 ms",
        (FigurePart(("sac-robot-sweep", "sac-robot-120ms"), _robot_discounts),),
        AGAINST_DISCOUNT,
    ),
    "ppo-constant": PaperFigure(
        r"PPO on Reacher: dt-aware, and with $\gamma$ and $\lambda$ kept at long cycle times too",
        (_batch_times("ppo-dt-aware", "ppo-constant", "constant"),),
        AGAINST_BATCH_TIME,
        "PPO against batch time",
    ),
    "ppo-batch-time-curves": PaperFigure(
        "dt-aware PPO on Reacher",
        (_batch_times("ppo-dt-aware"),),
        CURVES_BY_BATCH_TIME,
        "PPO curves by batch time",
    ),
    "ppo-scaled-curves": PaperFigure(
        r"PPO on Reacher: dt-aware, and with $\gamma$ and $\lambda$ scaled at short cycle times too",
        (_batch_times("ppo-dt-aware", "ppo-scaled", "scaled", alone=True),),
        CURVES_BY_BATCH_TIME,
        "PPO curves by batch time",
    ),
    "ppo-constant-curves": PaperFigure(
        r"PPO on Reacher: dt-aware, and with $\gamma$ and $\lambda$ kept at long cycle times too",
        (_batch_times("ppo-dt-aware", "ppo-constant", "constant", alone=True),),
        CURVES_BY_BATCH_TIME,
        "PPO curves by batch time",
    ),
    "sac-gamma-curves": PaperFigure(
        r"SAC on Reacher: a sweep of the discount $\gamma$",
        _whole_studies(("sac-gamma-sweep", "sweep")),
        CURVES_BY_DISCOUNT,
    ),
    "sac-dt-aware-curves-1": PaperFigure(
        r"SAC on Reacher: $\gamma_{\delta t, 1}$ = .851$^{\delta t / 16\,\mathrm{ms}}$ and the baseline",
        (_discounts("sac-baseline", "sac-dt-aware", "tuned-scaled"),),
        CURVES,
        "SAC curves",
    ),
    "sac-dt-aware-curves-2": PaperFigure(
        r"SAC on Reacher: $\gamma_{\delta t, 2}$ = .851 and the baseline",
        (_discounts("sac-baseline", "sac-dt-aware", "tuned"),),
        CURVES,
        "SAC curves",
    ),
    "pendulum-baseline-curves": PaperFigure(
        "Baseline PPO on Double Pendulum", (_pendulum_rules("baseline"),), CURVES, "PPO pendulum curves"
    ),
    "pendulum-dt-aware-curves": PaperFigure(
        "PPO on Double Pendulum: dt-aware and the baseline",
        (_pendulum_rules("dt-aware", "baseline"),),
        CURVES,
        "PPO pendulum curves",
    ),
    "sac-pendulum-curves-baseline": PaperFigure(
        "Baseline SAC on Double Pendulum",
        _whole_studies(("sac-pendulum-baseline", "baseline")),
        CURVES,
        "SAC pendulum curves",
    ),
    "sac-pendulum-curves-1": PaperFigure(
        r"SAC on Double Pendulum: $\gamma_{\delta t, 1}$ = .9987$^{\delta t / 16\,\mathrm{ms}}$ and the baseline",
        (_discounts(*_SAC_PENDULUM, "tuned-scaled"),),
        CURVES,
        "SAC pendulum curves",
    ),
    "sac-pendulum-curves-2": PaperFigure(
        r"SAC on Double Pendulum: $\gamma_{\delta t, 2}$ = .9987 and the baseline",
        (_discounts(*_SAC_PENDULUM, "tuned"),),
        CURVES,
        "SAC pendulum curves",
    ),
    "ppo-robot-2000-curves": PaperFigure(
        "PPO on the simulated robot, from b = 2000 and m = 50 at 40 ms",
        (_robot_rules("ppo-robot-2000"),),
        CURVES,
        "PPO robot curves",
    ),
    "sac-robot-40ms-curves": PaperFigure(
        r"SAC on the simulated robot at 40 ms: a sweep of the discount $\gamma$",
        _whole_studies(("sac-robot-sweep", "sweep")),
        CURVES_BY_DISCOUNT,
        "SAC robot curves",
    ),
    "sac-robot-120ms-curves": PaperFigure(
        r"SAC on the simulated robot at 120 ms: three discounts $\gamma$, and two of them for twice the time",
        _whole_studies(("sac-robot-120ms", "as long as at 40 ms"), ("sac-robot-extended", "for twice the time")),
        CURVES_BY_DISCOUNT,
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
        AGAINST_DT,
    ),
    "pendulum-batch-time": PaperFigure(
        "PPO on Double Pendulum, from different batch sizes at 16 ms",
        (
            _with_baseline(_batch_times("pendulum-dt-aware", title="dt-aware"), "ppo-pendulum"),
            _batch_times("pendulum-dt-aware", "pendulum-scaled", "scaled", title="dt-aware and scaled"),
            _batch_times("pendulum-dt-aware", "pendulum-constant", "constant", title="dt-aware and constant"),
        ),
        AGAINST_BATCH_TIME,
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
        AGAINST_DT,
    ),
    "released-code": PaperFigure(
        "PPO with the ways of the paper's text, and with those of the released code",
        (
            _code_variants("reacher", "Reacher", "ppo-baseline", "ppo-dt-aware"),
            _code_variants("double-pendulum", "Double Pendulum", "ppo-pendulum", "ppo-pendulum"),
        ),
        CODE_VARIANTS_SIDE_BY_SIDE,
    ),
}
"""The paper's in its order, then its appendix's, then ours."""

FORMATS = ("pdf", "svg", "png")


def describe_figures(data: PaperResults, only: Sequence[str] = ()) -> list[FigureSpec]:
    """Figures that there is data for, or some of them.

    Raises:
        InputError: if there is no such figure.
    """
    wanted = [known_name(TITLE, "figure", stem, FIGURES) for stem in only] or FIGURES
    lacking = missing_figures(data)
    return [FIGURES[stem].describe(stem, data) for stem in wanted if stem not in lacking]


def missing_figures(data: PaperResults) -> dict[str, str]:
    """By name, the figures that cannot be drawn, and what they need."""
    lacking = {stem: figure.missing(data) for stem, figure in FIGURES.items()}
    return {stem: ", ".join(studies) for stem, studies in lacking.items() if studies}


def save_figures(data: PaperResults, folder: Path, only: Sequence[str] = ()) -> list[Path]:
    """Draw the figures that there is data for, each as PDF, SVG and PNG; the same data give the same bytes.

    Args:
        data: The results.
        folder: Where the files go; it is made.
        only: The figures that are wanted, by default all.
    """
    from cycletime.reports import drawing

    return drawing.save_figures(draw_figures(data, only), folder, FORMATS)


def draw_figures(data: PaperResults, only: Sequence[str] = ()) -> dict[str, Figure]:
    """Figures by name. Those of a family have the same vertical axis, whichever of them are wanted."""
    from cycletime.reports.drawing import draw_figure, share_vertical_axis

    wanted = [spec.name for spec in describe_figures(data, only)]
    families = {FIGURES[stem].family for stem in wanted} - {""}
    shown = [stem for stem, figure in FIGURES.items() if stem in wanted or figure.family in families]
    drawn = {spec.name: draw_figure(spec) for spec in describe_figures(data, shown)} if shown else {}
    for family in families:
        share_vertical_axis([figure for stem, figure in drawn.items() if FIGURES[stem].family == family])
    return {stem: drawn[stem] for stem in wanted}
