"""The figure of single runs, finished or not: a line for each learning curve, and one panel for each metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator
from numpy.typing import NDArray

from cycletime.errors import InputError, did_you_mean
from cycletime.reports.figure import COLOURS, DASHES
from cycletime.reports.figure_style import FORMATS, STYLE, add_seconds_axis, label_steps, save_figure
from cycletime.reports.formatting import dt_text
from cycletime.studies.study_folder import open_run
from cycletime.training.finished_run import FinishedRun
from cycletime.training.learning_curve import Columns, EpisodeBins, Episodes
from cycletime.training.run_folder import RunFolder
from cycletime.training.spec import RunSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NOT_METRICS = ("env_steps", "agent_steps", "learnings")


@dataclass(frozen=True, eq=False)
class RunCurves:
    spec: RunSpec
    where: str
    """Where its data come from, such as 'closed form'."""
    env_dt_s: float
    env_steps: NDArray[np.float64]
    """The bins' ends, as far as the run has come."""
    returns: NDArray[np.float64]
    episodes: Episodes | None
    """Each by itself, where they were kept."""
    metrics: Columns
    """By name, a number for each line of the metrics, `env_steps` among them."""

    @property
    def metric_names(self) -> tuple[str, ...]:
        return tuple(name for name in self.metrics if name not in _NOT_METRICS)


def read_run_curves(path: Path) -> RunCurves:
    """A run by the path of its folder, as far as it has come; the run may be in the store of its study."""
    run = open_run(path)
    if isinstance(run, RunFolder) and not run.is_finished:
        lines = _unfinished_curves(run)
    else:
        lines = _finished_curves(run.finished() if isinstance(run, RunFolder) else run)
    if not len(lines.returns):
        raise InputError(f"{run.spec.name} has no learning curve yet: none of its episodes has ended.")
    return lines


def chosen_metrics(runs: Sequence[RunCurves], asked: Sequence[str]) -> list[str]:
    """The metrics that are asked for; 'all' is all that some run has."""
    known = list(dict.fromkeys(name for run in runs for name in run.metric_names))
    if list(asked) == ["all"]:
        return known
    for name in asked:
        if name not in known:
            raise InputError(
                f"{name!r} is not a metric of these runs: give all, or some of {', '.join(known) or 'none'}"
                f"{did_you_mean(name, known)}"
            )
    return list(dict.fromkeys(asked))


def _finished_curves(run: FinishedRun) -> RunCurves:
    where, env_dt_s = str(run.result["where"]), float(run.result["env_dt_s"])
    return _run_curves(run.spec, where, env_dt_s, run.curve, run.metrics, run.spec.env_steps)


def _unfinished_curves(folder: RunFolder) -> RunCurves:
    run = folder.so_far()
    if run.env_dt is None:
        raise InputError(f"{folder.spec.name} is of an earlier version, which did not note env_dt: resume it first.")
    done = int(run.curve.env_steps.max(initial=0))
    return _run_curves(folder.spec, "a run that is not finished", float(run.env_dt), run.curve, run.metrics, done)


def _run_curves(
    spec: RunSpec, where: str, env_dt_s: float, curve: Episodes | EpisodeBins, metrics: Columns, done_steps: int
) -> RunCurves:
    """The bins are those of the whole run, without those that it has not come to."""
    bins = curve if isinstance(curve, EpisodeBins) else EpisodeBins.none(spec.env_steps).plus(curve)
    ends = np.linspace(0, spec.env_steps, len(bins.counts) + 1)[1:]
    reached = slice(bins.index_of(np.array([done_steps]))[0] + 1 if len(curve) else 0)
    return RunCurves(
        spec=spec,
        where=where,
        env_dt_s=env_dt_s,
        env_steps=np.minimum(ends[reached], done_steps),
        returns=bins.means()[reached],
        episodes=curve if isinstance(curve, Episodes) else None,
        metrics=metrics,
    )


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
    """Draw runs, and write the figure in the format of the file's ending."""
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
        _draw_run(top, run, index, labels[index], x, with_episodes=len(runs) <= _MAX_RUNS_WITH_EPISODES)
    top.set_ylabel("episodic return")
    for axes, name in zip(others, metrics, strict=True):
        for index, run in enumerate(runs):
            _draw_metric(axes, run, index, name, x)
        axes.set_ylabel(name)
    _label_x(every[-1][0], top, runs, x)
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
    parts = [
        (run.spec.world.name, run.spec.algorithm, dt_text(run.spec.dt), f"seed {run.spec.seed}", *_progress_label(run))
        for run in runs
    ]
    texts = [", ".join(each) for each in parts]
    return [
        text if texts.count(text) == 1 else f"{text}, {run.spec.identity[:10]}"
        for text, run in zip(texts, runs, strict=True)
    ]


def _progress_label(run: RunCurves) -> tuple[str, ...]:
    done, budget = int(run.env_steps[-1]), run.spec.env_steps
    return () if done >= budget else (f"so far {100 * done / budget:.0f} %",)


def _colour_and_dash(index: int) -> tuple[str, Literal["-", "--", "-.", ":"]]:
    """Another dash once all colours are used."""
    round_, place = divmod(index, len(COLOURS))
    return COLOURS[place], DASHES[round_ % len(DASHES)]


def _draw_run(axes: Axes, run: RunCurves, index: int, label: str, x: XAxis, *, with_episodes: bool) -> None:
    colour, dash = _colour_and_dash(index)
    scale = run.env_dt_s if x == "seconds" else 1.0
    if with_episodes and run.episodes is not None:
        axes.plot(run.episodes.env_steps * scale, run.episodes.returns, ".", color=colour, markersize=1.5, alpha=0.25)
    axes.plot(run.env_steps * scale, run.returns, color=colour, linestyle=dash, linewidth=1.4, label=label)


def _draw_metric(axes: Axes, run: RunCurves, index: int, name: str, x: XAxis) -> None:
    if name not in run.metrics:
        return
    colour, dash = _colour_and_dash(index)
    scale = run.env_dt_s if x == "seconds" else 1.0
    axes.plot(run.metrics["env_steps"] * scale, run.metrics[name], color=colour, linestyle=dash, linewidth=1.0)


def _label_x(bottom: Axes, top: Axes, runs: Sequence[RunCurves], x: XAxis) -> None:
    bottom.xaxis.set_major_locator(MaxNLocator(6))
    if x == "seconds":
        bottom.set_xlabel("environment time (s)")
        return
    bottom.xaxis.set_major_formatter(EngFormatter(sep=""))
    label_steps(bottom)
    steps = {run.env_dt_s for run in runs}
    if len(steps) == 1:
        add_seconds_axis(top, steps.pop())
