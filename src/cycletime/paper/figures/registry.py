"""All figures by name, each with the studies that it needs and how it is drawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from cycletime.duration import Duration
from cycletime.paper.claims.robot import BASELINE
from cycletime.paper.claims.sources import BASELINE_BATCH, Data
from cycletime.paper.experiments import winners_name
from cycletime.paper.figures.against_batch_time import batch_time_s, draw_against_batch_time
from cycletime.paper.figures.against_dt import draw_against_dt
from cycletime.paper.figures.against_gamma import discount_words, draw_against_gamma
from cycletime.paper.figures.curves import draw_curves, draw_curves_by
from cycletime.paper.figures.panels import Drawing, FigurePart, Runs, runs_of
from cycletime.paper.figures.released_code import draw_released_code

_TUNED, _SAC_TUNED, _PENDULUM_TUNED = map(winners_name, ("ppo-grid", "sac-gamma-sweep", "pendulum-grid"))
_SCALED_DISCOUNT = r"$\gamma_{\delta t, 1}$ (tuned at 16 ms, scaled)"
_KEPT_DISCOUNT = r"$\gamma_{\delta t, 2}$ (tuned at 16 ms, kept)"
_Source: TypeAlias = tuple[str, dict[str, object]]
_STARTS = ("4ms", "16ms", "64ms")
_ROBOT_DISCOUNTS = r"$\gamma_{\delta t, 1}$ = .9227$^3$ = .786 and $\gamma_{\delta t, 2}$ = .9227"


def _whole(*studies: tuple[str, str]) -> tuple[FigurePart, ...]:
    """A single part: of each study all runs, under a rule's name."""
    names = tuple(study for study, _ in studies)
    return (FigurePart(names, lambda data: [runs_of(data, study, rule) for study, rule in studies]),)


def _discounts(baseline: str, aware: str, *rules: str, title: str = "") -> FigurePart:
    """SAC's dt-aware discounts, of the rules 'tuned-scaled' and 'tuned', with the baseline as the second line."""
    names = {"tuned-scaled": _SCALED_DISCOUNT, "tuned": _KEPT_DISCOUNT}

    def runs(data: Data) -> list[Runs]:
        first, *others = [runs_of(data, aware, names[rule], rule=rule) for rule in rules]
        return [first, runs_of(data, baseline, "baseline"), *others]

    return FigurePart((baseline, aware), runs, title)


def _at(runs: Runs, dts: tuple[Duration, ...]) -> Runs:
    """Of runs those at some cycle times."""
    return replace(runs, cells=tuple(cell for cell in runs.cells if cell.dt in dts))


def _pendulum_rules(*rules: str, title: str = "") -> FigurePart:
    """PPO's rules on the Double Pendulum, as the paper ran them."""
    return FigurePart(
        ("ppo-pendulum",), lambda data: [runs_of(data, "ppo-pendulum", rule, rule=rule) for rule in rules], title
    )


def _batch_times(
    aware: str, other: str | None = None, rule: str = "", *, title: str = "", alone: bool = False
) -> FigurePart:
    """The dt-aware rule and perhaps another, at all batch times; alone: at the cycle times of the other."""

    def runs(data: Data) -> list[Runs]:
        found = runs_of(data, aware, "dt-aware")
        if other is None:
            return [found]
        second = runs_of(data, other, rule)
        return [_at(found, second.dts) if alone else found, second]

    return FigurePart((aware,) if other is None else (aware, other), runs, title)


def _with_baseline(part: FigurePart, study: str) -> FigurePart:
    """A part with the baseline's points."""

    def runs(data: Data) -> Iterable[Runs]:
        yield from part.runs(data)
        yield replace(runs_of(data, study, "baseline", rule="baseline"), is_marked=True)

    return FigurePart((*part.needs, study), runs, part.title)


def _from_starts(data: Data) -> list[Runs]:
    found = []
    for start in _STARTS:
        outcome = data.outcome(f"ppo-dt0-{start}")
        values = outcome.cell(dt=start).values
        name = f"dt-aware from {start.removesuffix('ms')} ms (b {values['batch']}, m {values['minibatch']})"
        found.append(replace(runs_of(data, outcome.name, name), start=Duration(start)))
    return [*found, runs_of(data, _TUNED, "tuned at each cycle time")]


def _marked_sweep(data: Data) -> list[Runs]:
    choices = {
        "sac-baseline": r"baseline ($\gamma$ = .99)",
        "sac-scaled": r"scaled ($\gamma$ = .99$^{\delta t / 16\,\mathrm{ms}}$)",
    }
    points = [replace(runs_of(data, study, name), is_marked=True) for study, name in choices.items()]
    return [runs_of(data, "sac-gamma-sweep", "sweep"), *points]


def _robot_rules(study: str) -> FigurePart:
    """PPO's rules on the robot; at 40 ms, where the values come from, they are the same."""

    def runs(data: Data) -> list[Runs]:
        return [
            runs_of(data, study, "dt-aware", rule="dt-aware"),
            runs_of(data, study, "baseline", rule="baseline", dt="10ms"),
        ]

    return FigurePart((study,), runs)


def _robot_discounts(data: Data) -> list[Runs]:
    """SAC on the robot: the sweep at 40 ms, the three discounts at 120 ms, and what each of these is."""
    longer = runs_of(data, "sac-robot-120ms", "120 ms")
    aware = tuple(cell for cell in longer.cells if cell.labels["discount"] != BASELINE)
    return [
        runs_of(data, "sac-robot-sweep", "40 ms"),
        longer,
        replace(runs_of(data, "sac-robot-120ms", "baseline", discount=BASELINE), is_marked=True),
        replace(longer, rule=_ROBOT_DISCOUNTS, cells=aware, is_marked=True),
    ]


def _ways(task: str, title: str, baseline: str, aware: str) -> FigurePart:
    """Baseline and dt-aware values with the ways of the paper's text and with those of the released code."""

    def runs(data: Data) -> Iterable[Runs]:
        for rule, study in (("baseline", baseline), ("dt-aware", aware)):
            labels: dict[str, object] = {"batch": BASELINE_BATCH} if study == "ppo-dt-aware" else {}
            others = runs_of(data, "ppo-released-code", rule, rule=rule, task=task)
            yield others
            yield _at(runs_of(data, study, rule, rule=rule, **labels), others.dts)

    return FigurePart(tuple(dict.fromkeys(("ppo-released-code", baseline, aware))), runs, title)


def _carried_and_kept(title: str, aware: _Source, kept: _Source, tuned: str) -> FigurePart:
    """One set of values carried and kept, and what tuning at each cycle time finds; sources are studies and labels."""

    def runs(data: Data) -> Iterable[Runs]:
        for (study, labels), rule in (
            (aware, "dt-aware"),
            (kept, "baseline"),
            ((tuned, {}), "tuned at each cycle time"),
        ):
            yield runs_of(data, study, rule, **labels)

    return FigurePart(tuple(dict.fromkeys((aware[0], kept[0], tuned))), runs, title)


_by_batch_time = partial(draw_curves_by, batch_time_s, lambda seconds: f"batch time {seconds:g} s")
_by_discount = partial(
    draw_curves_by, lambda cell: cell.values["discount"], lambda g: rf"$\gamma$ = {discount_words(g)}"
)
_SAC_PENDULUM = ("sac-pendulum-baseline", "sac-pendulum-dt-aware")

FIGURES: dict[str, Drawing] = {
    "ppo-baseline": Drawing("Baseline PPO on Reacher", _whole(("ppo-baseline", "baseline")), draw_curves),
    "ppo-tuned": Drawing(
        "PPO on Reacher: the baseline, and values tuned at each cycle time",
        _whole((_TUNED, "tuned (fresh seeds)"), ("ppo-baseline", "baseline")),
        draw_against_dt,
    ),
    "ppo-batch-time": Drawing(
        "dt-aware PPO on Reacher, from different batch sizes at 16 ms",
        (_with_baseline(_batch_times("ppo-dt-aware"), "ppo-baseline"),),
        draw_against_batch_time,
        "PPO against batch time",
    ),
    "ppo-scaled": Drawing(
        r"PPO on Reacher: dt-aware, and with $\gamma$ and $\lambda$ scaled at short cycle times too",
        (_batch_times("ppo-dt-aware", "ppo-scaled", "scaled"),),
        draw_against_batch_time,
        "PPO against batch time",
    ),
    "sac-baseline": Drawing("Baseline SAC on Reacher", _whole(("sac-baseline", "baseline")), draw_curves, "SAC curves"),
    "sac-tuned": Drawing(
        r"SAC on Reacher: choices of the discount $\gamma$",
        _whole((_SAC_TUNED, "tuned (fresh seeds)"), ("sac-baseline", "baseline"), ("sac-scaled", "scaled")),
        draw_against_dt,
    ),
    "sac-gamma": Drawing(
        r"SAC on Reacher: a sweep of the discount $\gamma$",
        (FigurePart(("sac-gamma-sweep", "sac-baseline", "sac-scaled"), _marked_sweep),),
        draw_against_gamma,
    ),
    "three-part": Drawing(
        "dt-aware values and the baseline",
        (
            _discounts("sac-baseline", "sac-dt-aware", "tuned-scaled", "tuned", title="SAC on Reacher"),
            _pendulum_rules("dt-aware", "baseline", title="PPO on Double Pendulum"),
            _discounts(*_SAC_PENDULUM, "tuned-scaled", "tuned", title="SAC on Double Pendulum"),
        ),
        draw_against_dt,
    ),
    "ppo-dt0": Drawing(
        "dt-aware PPO on Reacher, from values tuned at different cycle times",
        (FigurePart((*(f"ppo-dt0-{start}" for start in _STARTS), _TUNED), _from_starts),),
        draw_against_dt,
    ),
    "ppo-robot": Drawing(
        "PPO on the simulated robot, from b = 400 and m = 10 at 40 ms",
        (_robot_rules("ppo-robot"),),
        draw_curves,
        "PPO robot curves",
    ),
    "sac-robot": Drawing(
        r"SAC on the simulated robot: the discount $\gamma$ at 40 and 120 ms",
        (FigurePart(("sac-robot-sweep", "sac-robot-120ms"), _robot_discounts),),
        draw_against_gamma,
    ),
    "ppo-constant": Drawing(
        r"PPO on Reacher: dt-aware, and with $\gamma$ and $\lambda$ kept at long cycle times too",
        (_batch_times("ppo-dt-aware", "ppo-constant", "constant"),),
        draw_against_batch_time,
        "PPO against batch time",
    ),
    "ppo-batch-time-curves": Drawing(
        "dt-aware PPO on Reacher",
        (_batch_times("ppo-dt-aware"),),
        _by_batch_time,
        "PPO curves by batch time",
    ),
    "ppo-scaled-curves": Drawing(
        r"PPO on Reacher: dt-aware, and with $\gamma$ and $\lambda$ scaled at short cycle times too",
        (_batch_times("ppo-dt-aware", "ppo-scaled", "scaled", alone=True),),
        _by_batch_time,
        "PPO curves by batch time",
    ),
    "ppo-constant-curves": Drawing(
        r"PPO on Reacher: dt-aware, and with $\gamma$ and $\lambda$ kept at long cycle times too",
        (_batch_times("ppo-dt-aware", "ppo-constant", "constant", alone=True),),
        _by_batch_time,
        "PPO curves by batch time",
    ),
    "sac-gamma-curves": Drawing(
        r"SAC on Reacher: a sweep of the discount $\gamma$", _whole(("sac-gamma-sweep", "sweep")), _by_discount
    ),
    "sac-dt-aware-curves-1": Drawing(
        r"SAC on Reacher: $\gamma_{\delta t, 1}$ = .851$^{\delta t / 16\,\mathrm{ms}}$ and the baseline",
        (_discounts("sac-baseline", "sac-dt-aware", "tuned-scaled"),),
        draw_curves,
        "SAC curves",
    ),
    "sac-dt-aware-curves-2": Drawing(
        r"SAC on Reacher: $\gamma_{\delta t, 2}$ = .851 and the baseline",
        (_discounts("sac-baseline", "sac-dt-aware", "tuned"),),
        draw_curves,
        "SAC curves",
    ),
    "pendulum-baseline-curves": Drawing(
        "Baseline PPO on Double Pendulum", (_pendulum_rules("baseline"),), draw_curves, "PPO pendulum curves"
    ),
    "pendulum-dt-aware-curves": Drawing(
        "PPO on Double Pendulum: dt-aware and the baseline",
        (_pendulum_rules("dt-aware", "baseline"),),
        draw_curves,
        "PPO pendulum curves",
    ),
    "sac-pendulum-curves-baseline": Drawing(
        "Baseline SAC on Double Pendulum",
        _whole(("sac-pendulum-baseline", "baseline")),
        draw_curves,
        "SAC pendulum curves",
    ),
    "sac-pendulum-curves-1": Drawing(
        r"SAC on Double Pendulum: $\gamma_{\delta t, 1}$ = .9987$^{\delta t / 16\,\mathrm{ms}}$ and the baseline",
        (_discounts(*_SAC_PENDULUM, "tuned-scaled"),),
        draw_curves,
        "SAC pendulum curves",
    ),
    "sac-pendulum-curves-2": Drawing(
        r"SAC on Double Pendulum: $\gamma_{\delta t, 2}$ = .9987 and the baseline",
        (_discounts(*_SAC_PENDULUM, "tuned"),),
        draw_curves,
        "SAC pendulum curves",
    ),
    "ppo-robot-2000-curves": Drawing(
        "PPO on the simulated robot, from b = 2000 and m = 50 at 40 ms",
        (_robot_rules("ppo-robot-2000"),),
        draw_curves,
        "PPO robot curves",
    ),
    "sac-robot-40ms-curves": Drawing(
        r"SAC on the simulated robot at 40 ms: a sweep of the discount $\gamma$",
        _whole(("sac-robot-sweep", "sweep")),
        _by_discount,
        "SAC robot curves",
    ),
    "sac-robot-120ms-curves": Drawing(
        r"SAC on the simulated robot at 120 ms: three discounts $\gamma$, and two of them for twice the time",
        _whole(("sac-robot-120ms", "as long as at 40 ms"), ("sac-robot-extended", "for twice the time")),
        _by_discount,
        "SAC robot curves",
    ),
    "pendulum-tuned": Drawing(
        "PPO on Double Pendulum: values tuned at each cycle time, the baseline, and dt-aware",
        (
            FigurePart(
                (_PENDULUM_TUNED, "ppo-pendulum"),
                lambda data: [
                    runs_of(data, _PENDULUM_TUNED, "tuned (fresh seeds)"),
                    *(runs_of(data, "ppo-pendulum", rule, rule=rule) for rule in ("baseline", "dt-aware")),
                ],
            ),
        ),
        draw_against_dt,
    ),
    "pendulum-batch-time": Drawing(
        "PPO on Double Pendulum, from different batch sizes at 16 ms",
        (
            _with_baseline(_batch_times("pendulum-dt-aware", title="dt-aware"), "ppo-pendulum"),
            _batch_times("pendulum-dt-aware", "pendulum-scaled", "scaled", title="dt-aware and scaled"),
            _batch_times("pendulum-dt-aware", "pendulum-constant", "constant", title="dt-aware and constant"),
        ),
        draw_against_batch_time,
    ),
    "rule": Drawing(
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
    "released-code": Drawing(
        "PPO with the ways of the paper's text, and with those of the released code",
        (
            _ways("reacher", "Reacher", "ppo-baseline", "ppo-dt-aware"),
            _ways("double-pendulum", "Double Pendulum", "ppo-pendulum", "ppo-pendulum"),
        ),
        draw_released_code,
    ),
}
"""The paper's in its order, then its appendix's, then ours."""
