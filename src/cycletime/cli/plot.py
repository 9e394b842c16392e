"""`cycletime plot`: the learning curves of runs, as a figure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from cycletime.cli.options import NONE, Parts
from cycletime.errors import InputError, printable


@dataclass(frozen=True, kw_only=True)
class Plot:
    """Draw the learning curves of one or several runs, finished or not.

    For example: cycletime plot runs/reacher-ppo-* --metrics entropy --to curves.svg
    """

    folders: Annotated[Positional[tuple[Path, ...]], arg(metavar="RUN", help_behavior_hint="(required)")]
    """The runs' folders."""
    to: Annotated[Path, arg(metavar="FILE")] = Path("learning-curve.png")
    """The figure, whose name ends in .png, .svg or .pdf."""
    metrics: Annotated[Parts, arg(metavar="NAME ...")] = NONE
    """Draw these metrics of learning below, each in a panel; 'all' for all that there are."""
    x: Literal["env-steps", "seconds"] = "env-steps"
    """What the x-axis counts: environment steps, or seconds of the environment's time."""

    def run(self) -> int:
        """Draw, write, and say where."""
        if not self.folders:
            raise InputError("There is no run to plot: give at least one run's folder.")
        from cycletime.reports.run_curves import chosen_metrics, read_run
        from cycletime.reports.run_figure import format_of, save_runs_figure

        format_of(self.to)  # refuses before anything is read
        runs = [read_run(path) for path in dict.fromkeys(self.folders)]
        save_runs_figure(self.to, runs, chosen_metrics(runs, self.metrics), self.x)
        print(f"wrote {printable(str(self.to))} ({self.to.stat().st_size:,} bytes)")
        return 0
