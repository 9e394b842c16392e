"""Single runs as lines: their learning curves and metrics, finished or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cycletime.errors import InputError, did_you_mean
from cycletime.loops import EpisodeBins, Episodes
from cycletime.runs.folder import RunFolder
from cycletime.runs.metrics import Columns, columns_of
from cycletime.runs.result import FinishedRun
from cycletime.runs.spec import RunSpec
from cycletime.runs.told import reason_of, told_by
from cycletime.studies.store.folder import open_run

_NOT_METRICS = ("env_steps", "agent_steps", "learnings")


@dataclass(frozen=True, eq=False)
class RunLines:
    """What there is to draw of a run."""

    spec: RunSpec
    where: str
    """Where its data come from, such as 'closed form'."""
    env_dt_s: float
    env_steps: NDArray[np.float64]
    """The bins' ends, as far as the run has come."""
    returns: NDArray[np.float64]
    """The mean return in each bin."""
    episodes: Episodes | None
    """Each by itself, where they were kept."""
    metrics: Columns
    """By name, a number for each line of the metrics, `env_steps` among them."""

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Metrics of learning."""
        return tuple(name for name in self.metrics if name not in _NOT_METRICS)


def read_run(path: Path) -> RunLines:
    """A run by the path of its folder, as far as it has come; the run may be in the store of its study.

    Raises:
        InputError: if there is none, or no episode of it has ended.
        RunError: if its files are damaged.
    """
    run = open_run(path)
    if isinstance(run, RunFolder) and not run.is_finished:
        lines = _of_unfinished(run)
    else:
        lines = _of_finished(run.finished() if isinstance(run, RunFolder) else run)
    if not len(lines.returns):
        raise InputError(f"{run.spec.name} has no learning curve yet: none of its episodes has ended.")
    return lines


def chosen_metrics(runs: Sequence[RunLines], asked: Sequence[str]) -> list[str]:
    """The metrics that are asked for; 'all' is all that some run has.

    Raises:
        InputError: if no run has one of that name.
    """
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


def _of_finished(run: FinishedRun) -> RunLines:
    where, env_dt_s = str(run.result["where"]), float(run.result["env_dt_s"])
    return _lines(run.spec, where, env_dt_s, run.curve, run.metrics, run.spec.env_steps)


def _of_unfinished(folder: RunFolder) -> RunLines:
    from cycletime.runs.curve import read_curve, step_in

    if not folder.curve_file.exists():
        raise InputError(f"{folder.spec.name} has no learning curve yet: it is written with the first checkpoint.")
    env_dt = step_in(folder.curve_file)
    if env_dt is None:
        raise InputError(f"{folder.spec.name} has no learning curve yet: none of its episodes has ended.")
    episodes = read_curve(folder.curve_file, env_dt)
    done = int(episodes.env_steps[-1])
    return _lines(folder.spec, "a run that is not finished", float(env_dt), episodes, _metrics_in(folder), done)


def _metrics_in(folder: RunFolder) -> Columns:
    try:
        return columns_of([told_by(line) for line in folder.metrics_file.read_bytes().splitlines()])
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder.metrics_file} cannot be read: {reason_of(error)}.") from error


def _lines(
    spec: RunSpec, where: str, env_dt_s: float, curve: Episodes | EpisodeBins, metrics: Columns, done_steps: int
) -> RunLines:
    """The bins are those of the whole run, without those that it has not come to."""
    bins = curve if isinstance(curve, EpisodeBins) else EpisodeBins.none(spec.env_steps).plus(curve)
    ends = np.linspace(0, spec.env_steps, len(bins.counts) + 1)[1:]
    reached = slice(bins.index_of(np.array([done_steps]))[0] + 1 if len(curve) else 0)
    return RunLines(
        spec=spec,
        where=where,
        env_dt_s=env_dt_s,
        env_steps=np.minimum(ends[reached], done_steps),
        returns=bins.means()[reached],
        episodes=curve if isinstance(curve, Episodes) else None,
        metrics=metrics,
    )
