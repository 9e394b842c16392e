"""The figure of single runs, finished or not: a line for each learning curve, and one panel for each metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator
from numpy.typing import NDArray

from cycletime.errors import InputError, unknown_name_error
from cycletime.reports.figure import COLOURS, DASHES
from cycletime.reports.figure_style import FORMATS, STYLE, add_seconds_axis, label_steps, save_figure
from cycletime.reports.formatting import dt_text
from cycletime.studies.study_folder import open_run
from cycletime.training.learning_curve import Columns, EpisodeBins, Episodes
from cycletime.training.run_folder import RunFolder
from cycletime.training.spec import RunSpec

_NOT_METRICS = ("env_steps", "agent_steps", "learnings")


@dataclass(frozen=True, eq=False)
class RunCurves:
    spec: RunSpec
    where: str
    env_dt_s: float
    env_steps: NDArray[np.float64]
    """The bins' ends, as far as the run has come."""
    returns: NDArray[np.float64]
    episodes: Episodes | None
    """Each by itself, where they were kept."""
    metrics: Columns
    """By name, a number for each line of the metrics, `env_steps` among them."""


def read_run_curves(path: Path) -> RunCurves:
    """A run by the path of its folder, as far as it has come; the run may be in the store of its study."""
    run = open_run(path)
    if isinstance(run, RunFolder) and not run.is_finished:
        so_far = run.so_far()
        if so_far.env_dt is None:
            raise InputError(f"{run.spec.name} is of an earlier version, which did not note env_dt: resume it first.")
        curve, metrics, where, env_dt_s = so_far.curve, so_far.metrics, "a run that is not finished", so_far.env_dt
        done_steps = int(curve.env_steps.max(initial=0))
    else:
        finished = run.finished() if isinstance(run, RunFolder) else run
        curve, metrics, where = finished.curve, finished.metrics, str(finished.result["where"])
        env_dt_s, done_steps = finished.result["env_dt_s"], run.spec.env_steps
    # The bins are those of the whole run, without those that it has not come to.
    bins = curve if isinstance(curve, EpisodeBins) else EpisodeBins.none(run.spec.env_steps).plus(curve)
    ends = np.linspace(0, run.spec.env_steps, len(bins.counts) + 1)[1:]
    reached = slice(bins.index_of(np.array([done_steps]))[0] + 1 if len(curve) else 0)
    if not len(bins.means()[reached]):
        raise InputError(f"{run.spec.name} has no learning curve yet: none of its episodes has ended.")
    return RunCurves(
        spec=run.spec,
        where=where,
        env_dt_s=float(env_dt_s),
        env_steps=np.minimum(ends[reached], done_steps),
        returns=bins.means()[reached],
        episodes=curve if isinstance(curve, Episodes) else None,
        metrics=metrics,
    )


def chosen_metrics(runs: Sequence[RunCurves], asked: Sequence[str]) -> list[str]:
    """The metrics that are asked for; 'all' is all that some run has."""
    known = list(dict.fromkeys(name for run in runs for name in run.metrics if name not in _NOT_METRICS))
    if list(asked) == ["all"]:
        return known
    for name in asked:
        if name not in known:
            raise unknown_name_error(name, "a metric of these runs", ["all", *known])
    return list(dict.fromkeys(asked))


XAxis: TypeAlias = Literal["env-steps", "seconds"]
_MAX_RUNS_WITH_EPISODES = 2
"""Of more runs than this, single episodes would hide each other."""


def figure_format(path: Path) -> str:
    ending = path.suffix.removeprefix(".")
    if ending not in FORMATS:
        raise InputError(f"{str(path)!r} is not a figure: give a name that ends in .{', .'.join(FORMATS)}.")
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {str(path.parent)!r}: make it first, or give another name.")
    return ending


def save_runs_figure(path: Path, runs: Sequence[RunCurves], metrics: Sequence[str], x: XAxis = "env-steps") -> None:
    ending = figure_format(path)
    with mpl.rc_context(STYLE):
        save_figure(runs_figure(runs, metrics, x), path.parent, path.stem, (ending,))


def runs_figure(runs: Sequence[RunCurves], metrics: Sequence[str], x: XAxis = "env-steps") -> Figure:
    panels = 1 + len(metrics)
    figure = Figure(figsize=(6.4, 2.9 + 1.7 * (panels - 1) + 0.22 * len(runs)), layout="constrained")
    every = figure.subplots(panels, 1, sharex=True, squeeze=False, height_ratios=[1.7] + [1.0] * (panels - 1))
    top, *others = every.flatten().tolist()
    labels = _labels(runs)
    for index, run in enumerate(runs):
        round_, place = divmod(index, len(COLOURS))  # another dash once all colours are used
        look = {"color": COLOURS[place], "linestyle": DASHES[round_ % len(DASHES)]}
        scale = run.env_dt_s if x == "seconds" else 1.0
        if run.episodes is not None and len(runs) <= _MAX_RUNS_WITH_EPISODES:
            dots = {"color": COLOURS[place], "markersize": 1.5, "alpha": 0.25}
            top.plot(run.episodes.env_steps * scale, run.episodes.returns, ".", **dots)
        top.plot(run.env_steps * scale, run.returns, linewidth=1.4, label=labels[index], **look)
        for axes, name in zip(others, metrics, strict=True):
            if name in run.metrics:
                axes.plot(run.metrics["env_steps"] * scale, run.metrics[name], linewidth=1.0, **look)
    for axes, name in zip(every[:, 0], ("episodic return", *metrics), strict=True):
        axes.set_ylabel(name)
    bottom, steps = every[-1][0], {run.env_dt_s for run in runs}
    bottom.xaxis.set_major_locator(MaxNLocator(6))
    if x == "seconds":
        bottom.set_xlabel("environment time (s)")
    else:
        bottom.xaxis.set_major_formatter(EngFormatter(sep=""))
        label_steps(bottom)
        if len(steps) == 1:
            add_seconds_axis(top, steps.pop())
    count = "1 run" if len(runs) == 1 else f"{len(runs)} runs, each a line by itself"
    where = " and ".join(dict.fromkeys(run.where for run in runs))
    note = f"{count}: mean return in each 1 % of a run, no interval; data: {where}"
    worlds = " and ".join(dict.fromkeys(run.spec.world.name for run in runs))
    algorithms = " and ".join(dict.fromkeys(run.spec.algorithm for run in runs))
    figure.suptitle(f"{worlds}, {algorithms}\n{note}", fontsize=9)
    figure.legend(loc="outside lower center", ncols=1, frameon=False)
    return figure


def _labels(runs: Sequence[RunCurves]) -> list[str]:
    """Labels that tell runs apart, with their identities where that is needed."""
    texts = []
    for run in runs:
        share = run.env_steps[-1] / run.spec.env_steps
        so_far = [] if share >= 1 else [f"so far {100 * share:.0f} %"]
        parts = run.spec.world.name, run.spec.algorithm, dt_text(run.spec.dt), f"seed {run.spec.seed}", *so_far
        texts.append(", ".join(parts))
    return [
        text if texts.count(text) == 1 else f"{text}, {run.spec.identity[:10]}"
        for text, run in zip(texts, runs, strict=True)
    ]
