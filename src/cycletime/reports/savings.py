"""What a rule saves against tuning each cycle time anew, in runs and in hours of the environment's time."""

from __future__ import annotations

from dataclasses import dataclass

from cycletime.duration import Duration
from cycletime.reports.curves import env_dt_of
from cycletime.reports.scores import AS_GIVEN, Panel, StudyScores
from cycletime.studies.spec import Study

PAPER_GRIDS = {"ppo": (25, "5 batch sizes x 5 mini-batch sizes"), "sac": (12, "12 discounts")}
"""By algorithm, the points of the paper's grid, and what they are."""


@dataclass(frozen=True)
class Saving:
    """The price of tuning each cycle time, and of tuning one and carrying its values."""

    task: str
    algorithm: str
    points: int
    """Of the grid."""
    grid: str
    """Whose grid it is."""
    dts: int
    seeds: int
    once_runs: int
    """The runs of a tuning at one cycle time that the study does not contain."""
    study_runs: int
    """The runs that the study plans for this task and algorithm."""
    run_h: float | None
    """What a run takes in hours of the environment's time; None where its time step is not known."""

    @property
    def each_runs(self) -> int:
        """Tuning each cycle time anew."""
        return self.dts * self.points * self.seeds

    @property
    def saved_runs(self) -> int:
        """What the rule saves after all that the study takes; negative if the study takes more."""
        return self.each_runs - self.once_runs - self.study_runs

    def hours(self, runs: int) -> float | None:
        """The same in hours of the environment's time."""
        return None if self.run_h is None else runs * self.run_h


def savings(scores: StudyScores, grid_points: int | None = None) -> list[Saving]:
    """For each task and algorithm with a rule and several cycle times, what the rule saves.

    Args:
        scores: The study.
        grid_points: The points of the grid that each cycle time would be tuned by; by default the study's own grid,
            where it has one, and else the paper's.
    """
    found: dict[tuple[str, str], list[Panel]] = {}
    for panel in scores.panels:
        found.setdefault((panel.task, panel.algorithm), []).append(panel)
    told = [_saving(scores.folder.study, panels, grid_points) for panels in found.values()]
    return [each for each in told if each is not None]


def _saving(study: Study, panels: list[Panel], grid_points: int | None) -> Saving | None:
    first, own = panels[0], len(panels)
    if first.rules == (AS_GIVEN,) or len(first.dts) < 2:
        return None
    if grid_points is not None:
        points, grid = grid_points, "a grid as given"
    elif own > 1:
        points, grid = own, "the study's own grid"
    else:
        points, what = PAPER_GRIDS[first.algorithm]
        grid = f"the paper's grid ({what}), since the study has none"
    tuned_at = Duration(next(first.runs()).folder.spec.origin["tuned_at"])
    is_in_study = own > 1 and grid_points is None and tuned_at in first.dts
    env_dt_s = env_dt_of(first)
    return Saving(
        task=first.task,
        algorithm=first.algorithm,
        points=points,
        grid=grid,
        dts=len(first.dts),
        seeds=len(study.seeds),
        once_runs=0 if is_in_study else points * len(study.seeds),
        study_runs=len({run.name for panel in panels for run in panel.runs()}),
        run_h=None if env_dt_s is None else study.env_steps * env_dt_s / 3600,
    )
