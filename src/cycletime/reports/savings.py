"""What a rule saves against tuning each cycle time anew, in runs and in hours of the environment's time."""

from __future__ import annotations

from dataclasses import dataclass

from cycletime.duration import Duration
from cycletime.reports.curves import env_dt_of
from cycletime.reports.scores import AS_GIVEN, Panel, StudyScores
from cycletime.studies.spec.study import Source, Study

PAPER_GRIDS = {"ppo": (25, "5 batch sizes x 5 mini-batch sizes"), "sac": (12, "12 discounts")}
"""By algorithm, the points of the paper's grid, and what they are."""


@dataclass(frozen=True)
class Price:
    """Runs, and what they take in hours of the environment's time; None where its time step is not known."""

    runs: int
    hours: float | None

    def times(self, count: int) -> Price:
        """So many of them."""
        return Price(count * self.runs, None if self.hours is None else count * self.hours)

    @property
    def is_positive(self) -> bool:
        """Whether it is more than nothing: by hours, which are what counts on a robot, where they are known."""
        return (self.runs if self.hours is None else self.hours) > 0

    def minus(self, other: Price) -> Price:
        """What is left."""
        known = self.hours is not None and other.hours is not None
        return Price(self.runs - other.runs, (self.hours or 0.0) - (other.hours or 0.0) if known else None)


@dataclass(frozen=True)
class Saving:
    """The price of tuning each cycle time, and of tuning one and carrying its values."""

    task: str
    algorithm: str
    how: str
    """How each cycle time would be tuned: 'by the paper's grid', for example."""
    points: int
    """How many choices of values a tuning tries."""
    seeds: int
    """Of each."""
    dts: int
    tuning: Price
    """Of one tuning."""
    contains_tuning: bool
    """Whether that tuning is a part of the study."""
    study: Price
    """Of all that the study plans for this task and algorithm."""

    @property
    def each(self) -> Price:
        """Tuning each cycle time anew."""
        return self.tuning.times(self.dts)

    @property
    def once(self) -> Price:
        """What tuning one cycle time takes besides the study."""
        return self.tuning.times(0 if self.contains_tuning else 1)

    @property
    def saved(self) -> Price:
        """What the rule saves after all that the study takes; negative if the study takes more."""
        return self.each.minus(self.once).minus(self.study)


def savings(scores: StudyScores, grid_points: int | None = None) -> list[Saving]:
    """For each task and algorithm with a rule and several cycle times, what the rule saves.

    Args:
        scores: The study.
        grid_points: The points of the grid that each cycle time would be tuned by. By default they are tuned as the
            study's values were, where their file says how; else by the study's own grid, or by the paper's.
    """
    found: dict[tuple[str, str], list[Panel]] = {}
    for panel in scores.panels:
        found.setdefault((panel.task, panel.algorithm), []).append(panel)
    told = [_saving(scores.folder.study, panels, grid_points) for panels in found.values()]
    return [each for each in told if each is not None]


def _saving(study: Study, panels: list[Panel], grid_points: int | None) -> Saving | None:
    first, own, seeds = panels[0], len(panels), len(study.seeds)
    if first.rules == (AS_GIVEN,) or len(first.dts) < 2:
        return None
    tuned, env_dt_s = study.tuned.get(first.algorithm), env_dt_of(first)
    source = None if tuned is None or grid_points is not None or own > 1 else tuned.source
    run = Price(1, None if env_dt_s is None else study.env_steps * env_dt_s / 3600)
    tuned_at = Duration(next(first.runs()).spec.origin["tuned_at"])
    points, how = _grid(first.algorithm, own, grid_points)
    tuning = run.times(points * seeds)
    if source is not None and source.runs is not None:
        points, seeds, how = source.trials or source.runs, source.seeds or 1, _as_tuned(source)
        tuning = Price(source.runs, source.simulated_hours)
    return Saving(
        task=first.task,
        algorithm=first.algorithm,
        how=how,
        points=points,
        seeds=seeds,
        dts=len(first.dts),
        tuning=tuning,
        contains_tuning=own > 1 and grid_points is None and tuned_at in first.dts,
        study=run.times(len({run.name for panel in panels for run in panel.runs()})),
    )


def _grid(algorithm: str, own: int, grid_points: int | None) -> tuple[int, str]:
    """The points of the grid, and whose it is."""
    if grid_points is not None:
        return grid_points, "by a grid as given"
    if own > 1:
        return own, "by the study's own grid"
    points, what = PAPER_GRIDS[algorithm]
    return points, f"by the paper's grid ({what}), since the study does not say how its values were tuned"


def _as_tuned(source: Source) -> str:
    name = "the tuning" if source.tuning is None else f"the tuning {source.tuning!r}"
    return f"like {name} that the study's values are from ({source.file})"
