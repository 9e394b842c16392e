"""The figure of single runs: a line for each learning curve, and below it one panel for each metric."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from cycletime.errors import InputError
from cycletime.reports.run_curves import RunLines
from cycletime.reports.style import COLOURS, DASHES, FORMATS, STYLE, add_seconds, name_steps, save_figure
from cycletime.reports.words import span

if TYPE_CHECKING:
    from matplotlib.axes import Axes

XAxis: TypeAlias = Literal["env-steps", "seconds"]
_MOST_DOTS = 2
"""Of more runs than this, single episodes would hide each other."""


def format_of(path: Path) -> str:
    """The format that a file's ending names.

    Raises:
        InputError: if it names none.
    """
    ending = path.suffix.removeprefix(".")
    if ending not in FORMATS:
        raise InputError(f"{str(path)!r} is not a figure: give a name that ends in .{', .'.join(FORMATS)}.")
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {str(path.parent)!r}: make it first, or give another name.")
    return ending


def save_runs_figure(path: Path, runs: Sequence[RunLines], metrics: Sequence[str], x: XAxis = "env-steps") -> None:
    """Draw runs, and write the figure in the format of the file's ending.

    Raises:
        InputError: if the ending names no format, or there is no such folder.
    """
    ending = format_of(path)
    with mpl.rc_context(STYLE):
        save_figure(runs_figure(runs, metrics, x), path.parent, path.stem, (ending,))


def runs_figure(runs: Sequence[RunLines], metrics: Sequence[str], x: XAxis = "env-steps") -> Figure:
    """The learning curves, and a panel for each metric."""
    panels = 1 + len(metrics)
    figure = Figure(figsize=(6.4, 2.9 + 1.7 * (panels - 1) + 0.22 * len(runs)), layout="constrained")
    every = figure.subplots(panels, 1, sharex=True, squeeze=False, height_ratios=[1.7] + [1.0] * (panels - 1))
    top, *others = every.flatten().tolist()
    labels = _labels(runs)
    for index, run in enumerate(runs):
        _draw_run(top, run, index, labels[index], x, with_episodes=len(runs) <= _MOST_DOTS)
    top.set_ylabel("episodic return")
    for axes, name in zip(others, metrics, strict=True):
        for index, run in enumerate(runs):
            _draw_metric(axes, run, index, name, x)
        axes.set_ylabel(name)
    _name_x(every[-1][0], top, runs, x)
    count = "1 run" if len(runs) == 1 else f"{len(runs)} runs, each a line by itself"
    where = " and ".join(dict.fromkeys(run.where for run in runs))
    told = f"{count}: mean return in each 1 % of a run, no interval; data: {where}"
    figure.suptitle(f"{_shared(runs)}\n{told}", fontsize=9)
    figure.legend(loc="outside lower center", ncols=1, frameon=False)
    return figure


def _labels(runs: Sequence[RunLines]) -> list[str]:
    """What tells runs apart; where that is not enough, their identities do."""
    parts = [
        (run.spec.world.name, run.spec.algorithm, span(run.spec.dt), f"seed {run.spec.seed}", *_unfinished(run))
        for run in runs
    ]
    told = [", ".join(each) for each in parts]
    return [
        text if told.count(text) == 1 else f"{text}, {run.spec.identity[:10]}"
        for text, run in zip(told, runs, strict=True)
    ]


def _unfinished(run: RunLines) -> tuple[str, ...]:
    done, budget = int(run.env_steps[-1]), run.spec.env_steps
    return () if done >= budget else (f"so far {100 * done / budget:.0f} %",)


def _shared(runs: Sequence[RunLines]) -> str:
    worlds = dict.fromkeys(run.spec.world.name for run in runs)
    algorithms = dict.fromkeys(run.spec.algorithm for run in runs)
    return f"{' and '.join(worlds)}, {' and '.join(algorithms)}"


def _colour_and_dash(index: int) -> tuple[str, Literal["-", "--", "-.", ":"]]:
    """Another dash once all colours are used."""
    round_, place = divmod(index, len(COLOURS))
    return COLOURS[place], DASHES[round_ % len(DASHES)]


def _draw_run(axes: Axes, run: RunLines, index: int, label: str, x: XAxis, *, with_episodes: bool) -> None:
    colour, dash = _colour_and_dash(index)
    scale = run.env_dt_s if x == "seconds" else 1.0
    if with_episodes and run.episodes is not None:
        axes.plot(run.episodes.env_steps * scale, run.episodes.returns, ".", color=colour, markersize=1.5, alpha=0.25)
    axes.plot(run.env_steps * scale, run.returns, color=colour, linestyle=dash, linewidth=1.4, label=label)


def _draw_metric(axes: Axes, run: RunLines, index: int, name: str, x: XAxis) -> None:
    if name not in run.metrics:
        return
    colour, dash = _colour_and_dash(index)
    scale = run.env_dt_s if x == "seconds" else 1.0
    axes.plot(run.metrics["env_steps"] * scale, run.metrics[name], color=colour, linestyle=dash, linewidth=1.0)


def _name_x(bottom: Axes, top: Axes, runs: Sequence[RunLines], x: XAxis) -> None:
    bottom.xaxis.set_major_locator(MaxNLocator(6))
    if x == "seconds":
        bottom.set_xlabel("environment time (s)")
        return
    bottom.xaxis.set_major_formatter(EngFormatter(sep=""))
    name_steps(bottom)
    steps = {run.env_dt_s for run in runs}
    if len(steps) == 1:
        add_seconds(top, steps.pop())
