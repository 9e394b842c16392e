"""Every figure of the paper and its appendix, and a few of ours, for print and for the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cycletime.experiments.investigation import winners_name
from cycletime.experiments.paper import figure_kinds as kinds
from cycletime.experiments.paper.data import BASELINE_BATCH, PaperResults
from cycletime.experiments.paper.figure_kinds import Panels, PaperFigure, Select
from cycletime.experiments.paper.sac_claims import ROBOT_BASELINE, ROBOT_PEAK, ROBOT_SCALED
from cycletime.reports.figure import FigureSpec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TUNED, _SAC_TUNED, _PENDULUM_TUNED = map(winners_name, ("ppo-grid", "sac-gamma-sweep", "pendulum-grid"))
_SHORT, _LONG = ("4ms", "8ms"), ("32ms", "64ms")
_AWARE, _BASELINE = {"rule": "dt-aware"}, {"rule": "baseline"}
_PPO_BASELINE, _SAC_BASELINE = Select("ppo-baseline", "baseline"), Select("sac-baseline", "baseline")
_PPO_AWARE, _SCALED = Select("ppo-dt-aware", "dt-aware"), Select("ppo-scaled", "scaled")
_CONSTANT = Select("ppo-constant", "constant")
_FRESH, _ANEW = Select(_TUNED, "tuned (fresh seeds)"), Select(_TUNED, "tuned at each cycle time")
_PENDULUM_AWARE = Select("ppo-pendulum", "dt-aware", _AWARE)
_PENDULUM_BASELINE = Select("ppo-pendulum", "baseline", _BASELINE)
_SAC_PENDULUM_BASELINE = Select("sac-pendulum-baseline", "baseline")
_SCALED_TITLE = r"PPO on Reacher: dt-aware, and with $\gamma$ and $\lambda$ scaled at short cycle times too"
_CONSTANT_TITLE = r"PPO on Reacher: dt-aware, and with $\gamma$ and $\lambda$ kept at long cycle times too"


def _figure(kind: Callable[[Panels], dict[str, Any]], family: str, title: str, *selected: Select) -> PaperFigure:
    """A figure with a single pair of axes."""
    return PaperFigure(title, kind, {"": selected}, family)


def _gamma(number: int, study: str) -> Select:
    """SAC's first or second dt-aware discount."""
    rule, words = {1: ("tuned-scaled", "scaled"), 2: ("tuned", "kept")}[number]
    return Select(study, rf"$\gamma_{{\delta t, {number}}}$ (tuned at 16 ms, {words})", {"rule": rule})


def _gamma_curves(
    curves: Callable[..., PaperFigure], stem: str, task: str, tuned: str, baseline: Select
) -> dict[str, PaperFigure]:
    """By name, the curves of both of SAC's dt-aware discounts, each beside the baseline's."""
    study = f"{stem.removesuffix('-dt-aware')}-dt-aware"
    gammas = {1: rf"{tuned}$^{{\delta t / 16\,\mathrm{{ms}}}}$", 2: tuned}
    return {
        f"{stem}-curves-{number}": curves(
            rf"SAC on {task}: $\gamma_{{\delta t, {number}}}$ = {gamma} and the baseline",
            _gamma(number, study),
            baseline,
        )
        for number, gamma in gammas.items()
    }


def _robot_rules(study: str) -> tuple[Select, ...]:
    """PPO's rules on the robot; at 40 ms, where the values come from, they are the same."""
    return Select(study, "dt-aware", _AWARE), Select(study, "baseline", _BASELINE, ("10ms",))


def _code_variants(task: str, baseline: str, aware: str, labels: Mapping[str, object]) -> tuple[Select, ...]:
    """Baseline and dt-aware values with variants of the released code, and with the paper's text."""
    return (
        *(Select("ppo-released-code", rule, {"rule": rule, "task": task}) for rule in ("baseline", "dt-aware")),
        Select(baseline, "baseline", _BASELINE, _SHORT),
        Select(aware, "dt-aware", labels, _SHORT),
    )


_AGAINST_DT = partial(_figure, kinds.against_dt, "")
_AGAINST_BATCH_TIME = partial(_figure, kinds.against_batch_time, "PPO against batch time")
_SAC_CURVES = partial(_figure, kinds.curves, "SAC curves")
_AGAINST_DISCOUNT = partial(_figure, kinds.against_discount, "")
_ROBOT_CURVES = partial(_figure, kinds.curves, "PPO robot curves")
_BY_BATCH_TIME = partial(_figure, kinds.curves_by_batch_time, "PPO curves by batch time")
_BY_DISCOUNT = partial(_figure, kinds.curves_by_discount, "")
_PENDULUM_CURVES = partial(_figure, kinds.curves, "PPO pendulum curves")
_SAC_PENDULUM_CURVES = partial(_figure, kinds.curves, "SAC pendulum curves")
_SAC_ROBOT_CURVES = partial(_figure, kinds.curves_by_discount, "SAC robot curves")

FIGURES: dict[str, PaperFigure] = {
    "ppo-baseline": _figure(kinds.curves, "", "Baseline PPO on Reacher", _PPO_BASELINE),
    "ppo-tuned": _AGAINST_DT(
        "PPO on Reacher: the baseline, and values tuned at each cycle time", _FRESH, _PPO_BASELINE
    ),
    "ppo-batch-time": _AGAINST_BATCH_TIME(
        "dt-aware PPO on Reacher, from different batch sizes at 16 ms",
        _PPO_AWARE,
        Select("ppo-baseline", "baseline", _BASELINE, ring="dashed"),
    ),
    "ppo-scaled": _AGAINST_BATCH_TIME(_SCALED_TITLE, _PPO_AWARE, _SCALED),
    "sac-baseline": _SAC_CURVES("Baseline SAC on Reacher", _SAC_BASELINE),
    "sac-tuned": _AGAINST_DT(
        r"SAC on Reacher: choices of the discount $\gamma$",
        replace(_FRESH, study=_SAC_TUNED),
        _SAC_BASELINE,
        Select("sac-scaled", "scaled"),
    ),
    "sac-gamma": _AGAINST_DISCOUNT(
        r"SAC on Reacher: a sweep of the discount $\gamma$",
        Select("sac-gamma-sweep", "sweep"),
        Select("sac-baseline", r"baseline ($\gamma$ = .99)", ring="dashed"),
        Select("sac-scaled", r"scaled ($\gamma$ = .99$^{\delta t / 16\,\mathrm{ms}}$)", ring="solid"),
    ),
    "three-part": PaperFigure(
        "dt-aware values and the baseline",
        kinds.against_dt,
        {
            "SAC on Reacher": (_gamma(1, "sac-dt-aware"), _SAC_BASELINE, _gamma(2, "sac-dt-aware")),
            "PPO on Double Pendulum": (_PENDULUM_AWARE, _PENDULUM_BASELINE),
            "SAC on Double Pendulum": (
                *(_gamma(1, "sac-pendulum-dt-aware"), _SAC_PENDULUM_BASELINE, _gamma(2, "sac-pendulum-dt-aware")),
            ),
        },
    ),
    "ppo-dt0": _AGAINST_DT(
        "dt-aware PPO on Reacher, from values tuned at different cycle times",
        *(
            Select(f"ppo-dt0-{ms}ms", f"dt-aware from {ms} ms (b {{batch}}, m {{minibatch}})", start=f"{ms}ms")
            for ms in (4, 16, 64)
        ),
        _ANEW,
    ),
    "ppo-robot": _ROBOT_CURVES(
        "PPO on the simulated robot, from b = 400 and m = 10 at 40 ms", *_robot_rules("ppo-robot")
    ),
    "sac-robot": _AGAINST_DISCOUNT(
        r"SAC on the simulated robot: the discount $\gamma$ at 40 and 120 ms",
        Select("sac-robot-sweep", "40 ms"),
        Select("sac-robot-120ms", "120 ms"),
        Select("sac-robot-120ms", "baseline", {"discount": ROBOT_BASELINE}, ring="dashed"),
        Select(
            "sac-robot-120ms",
            r"$\gamma_{\delta t, 1}$ = .9227$^3$ = .786 and $\gamma_{\delta t, 2}$ = .9227",
            {"discount": (ROBOT_SCALED, ROBOT_PEAK)},
            ring="solid",
        ),
    ),
    "ppo-constant": _AGAINST_BATCH_TIME(_CONSTANT_TITLE, _PPO_AWARE, _CONSTANT),
    "ppo-batch-time-curves": _BY_BATCH_TIME("dt-aware PPO on Reacher", _PPO_AWARE),
    "ppo-scaled-curves": _BY_BATCH_TIME(_SCALED_TITLE, replace(_PPO_AWARE, dts=_SHORT), _SCALED),
    "ppo-constant-curves": _BY_BATCH_TIME(_CONSTANT_TITLE, replace(_PPO_AWARE, dts=_LONG), _CONSTANT),
    "sac-gamma-curves": _BY_DISCOUNT(
        r"SAC on Reacher: a sweep of the discount $\gamma$", Select("sac-gamma-sweep", "sweep")
    ),
    **_gamma_curves(_SAC_CURVES, "sac-dt-aware", "Reacher", ".851", _SAC_BASELINE),
    "pendulum-baseline-curves": _PENDULUM_CURVES("Baseline PPO on Double Pendulum", _PENDULUM_BASELINE),
    "pendulum-dt-aware-curves": _PENDULUM_CURVES(
        "PPO on Double Pendulum: dt-aware and the baseline", _PENDULUM_AWARE, _PENDULUM_BASELINE
    ),
    "sac-pendulum-curves-baseline": _SAC_PENDULUM_CURVES("Baseline SAC on Double Pendulum", _SAC_PENDULUM_BASELINE),
    **_gamma_curves(_SAC_PENDULUM_CURVES, "sac-pendulum", "Double Pendulum", ".9987", _SAC_PENDULUM_BASELINE),
    "ppo-robot-2000-curves": _ROBOT_CURVES(
        "PPO on the simulated robot, from b = 2000 and m = 50 at 40 ms", *_robot_rules("ppo-robot-2000")
    ),
    "sac-robot-40ms-curves": _SAC_ROBOT_CURVES(
        r"SAC on the simulated robot at 40 ms: a sweep of the discount $\gamma$", Select("sac-robot-sweep", "sweep")
    ),
    "sac-robot-120ms-curves": _SAC_ROBOT_CURVES(
        r"SAC on the simulated robot at 120 ms: three discounts $\gamma$, and two of them for twice the time",
        Select("sac-robot-120ms", "as long as at 40 ms"),
        Select("sac-robot-extended", "for twice the time"),
    ),
    "pendulum-tuned": _AGAINST_DT(
        "PPO on Double Pendulum: values tuned at each cycle time, the baseline, and dt-aware",
        replace(_FRESH, study=_PENDULUM_TUNED),
        _PENDULUM_BASELINE,
        _PENDULUM_AWARE,
    ),
    "pendulum-batch-time": PaperFigure(
        "PPO on Double Pendulum, from different batch sizes at 16 ms",
        kinds.against_batch_time,
        {
            title: (Select("pendulum-dt-aware", "dt-aware"), other)
            for title, other in (
                ("dt-aware", replace(_PENDULUM_BASELINE, ring="dashed")),
                ("dt-aware and scaled", Select("pendulum-scaled", "scaled")),
                ("dt-aware and constant", Select("pendulum-constant", "constant")),
            )
        },
    ),
    "rule": PaperFigure(
        "PPO's values for 16 ms at other cycle times: carried by the rule, kept, and tuned anew",
        kinds.against_dt,
        {
            "Reacher": (replace(_PPO_AWARE, labels={"batch": BASELINE_BATCH}), _PPO_BASELINE, _ANEW),
            "Double Pendulum": (_PENDULUM_AWARE, _PENDULUM_BASELINE, replace(_ANEW, study=_PENDULUM_TUNED)),
        },
    ),
    "released-code": PaperFigure(
        "PPO with the ways of the paper's text, and with those of the released code",
        kinds.code_variants,
        {
            "Reacher": _code_variants("reacher", "ppo-baseline", "ppo-dt-aware", {**_AWARE, "batch": BASELINE_BATCH}),
            "Double Pendulum": _code_variants("double-pendulum", "ppo-pendulum", "ppo-pendulum", _AWARE),
        },
    ),
}
"""The paper's in its order, then its appendix's, then ours."""

FORMATS = ("pdf", "svg", "png")


def describe_figures(data: PaperResults, only: Sequence[str] = ()) -> list[FigureSpec]:
    lacking = missing_figures(data)
    return [FIGURES[stem].describe(stem, data) for stem in only or FIGURES if stem not in lacking]


def missing_figures(data: PaperResults) -> dict[str, str]:
    lacking = {stem: figure.missing(data) for stem, figure in FIGURES.items()}
    return {stem: ", ".join(studies) for stem, studies in lacking.items() if studies}


def save_figures(data: PaperResults, folder: Path, only: Sequence[str] = ()) -> list[Path]:
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
