"""Every figure of the paper and its appendix, and a few of ours, for print and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cycletime.experiments.investigation import winners_name
from cycletime.experiments.paper.data import BASELINE_BATCH, PaperResults
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
    Select,
)
from cycletime.experiments.paper.sac_claims import ROBOT_BASELINE, ROBOT_PEAK, ROBOT_SCALED
from cycletime.reports.figure import FigureSpec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TUNED, _SAC_TUNED, _PENDULUM_TUNED = map(winners_name, ("ppo-grid", "sac-gamma-sweep", "pendulum-grid"))
_SHORT, _LONG = ("4ms", "8ms"), ("32ms", "64ms")
_AWARE, _BASELINE = {"rule": "dt-aware"}, {"rule": "baseline"}
_KEPT_AND_SCALED = (r"baseline ($\gamma$ = .99)", r"scaled ($\gamma$ = .99$^{\delta t / 16\,\mathrm{ms}}$)")
_ROBOT_DISCOUNTS = r"$\gamma_{\delta t, 1}$ = .9227$^3$ = .786 and $\gamma_{\delta t, 2}$ = .9227"


def _part(*selected: Select, title: str = "") -> tuple[FigurePart, ...]:
    return (FigurePart(selected, title),)


def _discounts(baseline: str, aware: str, *rules: str, title: str = "") -> tuple[FigurePart, ...]:
    """SAC's dt-aware discounts, of the rules 'tuned-scaled' and 'tuned', with the baseline as the second line."""
    names = {
        "tuned-scaled": r"$\gamma_{\delta t, 1}$ (tuned at 16 ms, scaled)",
        "tuned": r"$\gamma_{\delta t, 2}$ (tuned at 16 ms, kept)",
    }
    first, *others = (Select(aware, names[rule], {"rule": rule}) for rule in rules)
    return _part(first, Select(baseline, "baseline"), *others, title=title)


def _pendulum_rules(*rules: str, title: str = "") -> tuple[FigurePart, ...]:
    """PPO's rules on the Double Pendulum, as the paper ran them."""
    return _part(*(Select("ppo-pendulum", rule, {"rule": rule}) for rule in rules), title=title)


def _batch_times(aware: str, *others: Select, title: str = "", dts: tuple[str, ...] = ()) -> tuple[FigurePart, ...]:
    """The dt-aware rule and others at all batch times, and perhaps only at some cycle times."""
    return _part(Select(aware, "dt-aware", dts=dts), *others, title=title)


def _robot_rules(study: str) -> tuple[FigurePart, ...]:
    """PPO's rules on the robot; at 40 ms, where the values come from, they are the same."""
    return _part(Select(study, "dt-aware", _AWARE), Select(study, "baseline", _BASELINE, ("10ms",)))


def _code_variants(task: str, title: str, baseline: Select, aware: Select) -> tuple[FigurePart, ...]:
    """Baseline and dt-aware values with the paper's text and with variants of the released code."""
    variants = [Select("ppo-released-code", rule, {"rule": rule, "task": task}) for rule in ("baseline", "dt-aware")]
    return _part(*variants, baseline, aware, title=title)


_SAC_PENDULUM = ("sac-pendulum-baseline", "sac-pendulum-dt-aware")
_SCALED, _CONSTANT = Select("ppo-scaled", "scaled"), Select("ppo-constant", "constant")
_FROM_BASELINE = {**_AWARE, "batch": BASELINE_BATCH}

FIGURES: dict[str, PaperFigure] = {
    "ppo-baseline": PaperFigure("Baseline PPO on Reacher", _part(Select("ppo-baseline", "baseline")), CURVES),
    "ppo-tuned": PaperFigure(
        "PPO on Reacher: the baseline, and values tuned at each cycle time",
        _part(Select(_TUNED, "tuned (fresh seeds)"), Select("ppo-baseline", "baseline")),
        AGAINST_DT,
    ),
    "ppo-batch-time": PaperFigure(
        "dt-aware PPO on Reacher, from different batch sizes at 16 ms",
        _batch_times("ppo-dt-aware", Select("ppo-baseline", "baseline", _BASELINE, ring="dashed")),
        AGAINST_BATCH_TIME,
        "PPO against batch time",
    ),
    "ppo-scaled": PaperFigure(
        r"PPO on Reacher: dt-aware, and with $\gamma$ and $\lambda$ scaled at short cycle times too",
        _batch_times("ppo-dt-aware", _SCALED),
        AGAINST_BATCH_TIME,
        "PPO against batch time",
    ),
    "sac-baseline": PaperFigure(
        "Baseline SAC on Reacher", _part(Select("sac-baseline", "baseline")), CURVES, "SAC curves"
    ),
    "sac-tuned": PaperFigure(
        r"SAC on Reacher: choices of the discount $\gamma$",
        _part(
            Select(_SAC_TUNED, "tuned (fresh seeds)"),
            Select("sac-baseline", "baseline"),
            Select("sac-scaled", "scaled"),
        ),
        AGAINST_DT,
    ),
    "sac-gamma": PaperFigure(
        r"SAC on Reacher: a sweep of the discount $\gamma$",
        _part(
            Select("sac-gamma-sweep", "sweep"),
            Select("sac-baseline", _KEPT_AND_SCALED[0], ring="dashed"),
            Select("sac-scaled", _KEPT_AND_SCALED[1], ring="solid"),
        ),
        AGAINST_DISCOUNT,
    ),
    "three-part": PaperFigure(
        "dt-aware values and the baseline",
        (
            *_discounts("sac-baseline", "sac-dt-aware", "tuned-scaled", "tuned", title="SAC on Reacher"),
            *_pendulum_rules("dt-aware", "baseline", title="PPO on Double Pendulum"),
            *_discounts(*_SAC_PENDULUM, "tuned-scaled", "tuned", title="SAC on Double Pendulum"),
        ),
        AGAINST_DT,
    ),
    "ppo-dt0": PaperFigure(
        "dt-aware PPO on Reacher, from values tuned at different cycle times",
        _part(
            *(
                Select(f"ppo-dt0-{ms}ms", f"dt-aware from {ms} ms (b {{batch}}, m {{minibatch}})", start=f"{ms}ms")
                for ms in (4, 16, 64)
            ),
            Select(_TUNED, "tuned at each cycle time"),
        ),
        AGAINST_DT,
    ),
    "ppo-robot": PaperFigure(
        "PPO on the simulated robot, from b = 400 and m = 10 at 40 ms",
        _robot_rules("ppo-robot"),
        CURVES,
        "PPO robot curves",
    ),
    "sac-robot": PaperFigure(
        r"SAC on the simulated robot: the discount $\gamma$ at 40 and 120 ms",
        _part(
            Select("sac-robot-sweep", "40 ms"),
            Select("sac-robot-120ms", "120 ms"),
            Select("sac-robot-120ms", "baseline", {"discount": ROBOT_BASELINE}, ring="dashed"),
            Select("sac-robot-120ms", _ROBOT_DISCOUNTS, {"discount": (ROBOT_SCALED, ROBOT_PEAK)}, ring="solid"),
        ),
        AGAINST_DISCOUNT,
    ),
    "ppo-constant": PaperFigure(
        r"PPO on Reacher: dt-aware, and with $\gamma$ and $\lambda$ kept at long cycle times too",
        _batch_times("ppo-dt-aware", _CONSTANT),
        AGAINST_BATCH_TIME,
        "PPO against batch time",
    ),
    "ppo-batch-time-curves": PaperFigure(
        "dt-aware PPO on Reacher",
        _batch_times("ppo-dt-aware"),
        CURVES_BY_BATCH_TIME,
        "PPO curves by batch time",
    ),
    "ppo-scaled-curves": PaperFigure(
        r"PPO on Reacher: dt-aware, and with $\gamma$ and $\lambda$ scaled at short cycle times too",
        _batch_times("ppo-dt-aware", _SCALED, dts=_SHORT),
        CURVES_BY_BATCH_TIME,
        "PPO curves by batch time",
    ),
    "ppo-constant-curves": PaperFigure(
        r"PPO on Reacher: dt-aware, and with $\gamma$ and $\lambda$ kept at long cycle times too",
        _batch_times("ppo-dt-aware", _CONSTANT, dts=_LONG),
        CURVES_BY_BATCH_TIME,
        "PPO curves by batch time",
    ),
    "sac-gamma-curves": PaperFigure(
        r"SAC on Reacher: a sweep of the discount $\gamma$",
        _part(Select("sac-gamma-sweep", "sweep")),
        CURVES_BY_DISCOUNT,
    ),
    "sac-dt-aware-curves-1": PaperFigure(
        r"SAC on Reacher: $\gamma_{\delta t, 1}$ = .851$^{\delta t / 16\,\mathrm{ms}}$ and the baseline",
        _discounts("sac-baseline", "sac-dt-aware", "tuned-scaled"),
        CURVES,
        "SAC curves",
    ),
    "sac-dt-aware-curves-2": PaperFigure(
        r"SAC on Reacher: $\gamma_{\delta t, 2}$ = .851 and the baseline",
        _discounts("sac-baseline", "sac-dt-aware", "tuned"),
        CURVES,
        "SAC curves",
    ),
    "pendulum-baseline-curves": PaperFigure(
        "Baseline PPO on Double Pendulum", _pendulum_rules("baseline"), CURVES, "PPO pendulum curves"
    ),
    "pendulum-dt-aware-curves": PaperFigure(
        "PPO on Double Pendulum: dt-aware and the baseline",
        _pendulum_rules("dt-aware", "baseline"),
        CURVES,
        "PPO pendulum curves",
    ),
    "sac-pendulum-curves-baseline": PaperFigure(
        "Baseline SAC on Double Pendulum",
        _part(Select("sac-pendulum-baseline", "baseline")),
        CURVES,
        "SAC pendulum curves",
    ),
    "sac-pendulum-curves-1": PaperFigure(
        r"SAC on Double Pendulum: $\gamma_{\delta t, 1}$ = .9987$^{\delta t / 16\,\mathrm{ms}}$ and the baseline",
        _discounts(*_SAC_PENDULUM, "tuned-scaled"),
        CURVES,
        "SAC pendulum curves",
    ),
    "sac-pendulum-curves-2": PaperFigure(
        r"SAC on Double Pendulum: $\gamma_{\delta t, 2}$ = .9987 and the baseline",
        _discounts(*_SAC_PENDULUM, "tuned"),
        CURVES,
        "SAC pendulum curves",
    ),
    "ppo-robot-2000-curves": PaperFigure(
        "PPO on the simulated robot, from b = 2000 and m = 50 at 40 ms",
        _robot_rules("ppo-robot-2000"),
        CURVES,
        "PPO robot curves",
    ),
    "sac-robot-40ms-curves": PaperFigure(
        r"SAC on the simulated robot at 40 ms: a sweep of the discount $\gamma$",
        _part(Select("sac-robot-sweep", "sweep")),
        CURVES_BY_DISCOUNT,
        "SAC robot curves",
    ),
    "sac-robot-120ms-curves": PaperFigure(
        r"SAC on the simulated robot at 120 ms: three discounts $\gamma$, and two of them for twice the time",
        _part(Select("sac-robot-120ms", "as long as at 40 ms"), Select("sac-robot-extended", "for twice the time")),
        CURVES_BY_DISCOUNT,
        "SAC robot curves",
    ),
    "pendulum-tuned": PaperFigure(
        "PPO on Double Pendulum: values tuned at each cycle time, the baseline, and dt-aware",
        _part(
            Select(_PENDULUM_TUNED, "tuned (fresh seeds)"),
            Select("ppo-pendulum", "baseline", _BASELINE),
            Select("ppo-pendulum", "dt-aware", _AWARE),
        ),
        AGAINST_DT,
    ),
    "pendulum-batch-time": PaperFigure(
        "PPO on Double Pendulum, from different batch sizes at 16 ms",
        (
            *_batch_times(
                "pendulum-dt-aware",
                Select("ppo-pendulum", "baseline", _BASELINE, ring="dashed"),
                title="dt-aware",
            ),
            *_batch_times("pendulum-dt-aware", Select("pendulum-scaled", "scaled"), title="dt-aware and scaled"),
            *_batch_times("pendulum-dt-aware", Select("pendulum-constant", "constant"), title="dt-aware and constant"),
        ),
        AGAINST_BATCH_TIME,
    ),
    "rule": PaperFigure(
        "PPO's values for 16 ms at other cycle times: carried by the rule, kept, and tuned anew",
        (
            *_part(
                Select("ppo-dt-aware", "dt-aware", {"batch": BASELINE_BATCH}),
                Select("ppo-baseline", "baseline"),
                Select(_TUNED, "tuned at each cycle time"),
                title="Reacher",
            ),
            *_part(
                Select("ppo-pendulum", "dt-aware", _AWARE),
                Select("ppo-pendulum", "baseline", _BASELINE),
                Select(_PENDULUM_TUNED, "tuned at each cycle time"),
                title="Double Pendulum",
            ),
        ),
        AGAINST_DT,
    ),
    "released-code": PaperFigure(
        "PPO with the ways of the paper's text, and with those of the released code",
        (
            *_code_variants(
                "reacher",
                "Reacher",
                Select("ppo-baseline", "baseline", _BASELINE, _SHORT),
                Select("ppo-dt-aware", "dt-aware", _FROM_BASELINE, _SHORT),
            ),
            *_code_variants(
                "double-pendulum",
                "Double Pendulum",
                Select("ppo-pendulum", "baseline", _BASELINE, _SHORT),
                Select("ppo-pendulum", "dt-aware", _AWARE, _SHORT),
            ),
        ),
        CODE_VARIANTS_SIDE_BY_SIDE,
    ),
}
"""The paper's in its order, then its appendix's, then ours."""

FORMATS = ("pdf", "svg", "png")


def describe_figures(data: PaperResults, only: Sequence[str] = ()) -> list[FigureSpec]:
    lacking = missing_figures(data)
    return [FIGURES[stem].describe(stem, data) for stem in only or FIGURES if stem not in lacking]


def missing_figures(data: PaperResults) -> dict[str, str]:
    """By name, the figures that cannot be drawn, and what they need."""
    lacking = {stem: figure.missing(data) for stem, figure in FIGURES.items()}
    return {stem: ", ".join(studies) for stem, studies in lacking.items() if studies}


def save_figures(data: PaperResults, folder: Path, only: Sequence[str] = ()) -> list[Path]:
    """Draw the figures that there is data for, each as PDF, SVG and PNG; the same data give the same bytes."""
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
