"""What a figure of the paper shows: panels, each with the runs of one or several rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from matplotlib.artist import Artist
from matplotlib.figure import Figure

from cycletime.duration import Duration
from cycletime.paper.claims.sources import Data
from cycletime.paper.experiments import study_of, sweep_of
from cycletime.paper.outcome import Outcome, OutcomeCell
from cycletime.runs.worlds import ClosedFormWorld

Legend: TypeAlias = list[list[Artist]]
"""What it shows, in groups that each begin a row."""


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs of a rule, of one study."""

    rule: str
    """What the legend calls it."""
    outcome: Outcome
    cells: tuple[OutcomeCell, ...]
    start: Duration | None = None
    """The cycle time that its values were tuned at, where a figure compares several such."""
    is_marked: bool = False
    """Whether they are single points beside the curves, such as those of the baseline."""

    @property
    def dts(self) -> tuple[Duration, ...]:
        """The cycle times."""
        return tuple(sorted({cell.dt for cell in self.cells}))

    @property
    def env_dt(self) -> Duration:
        """The environment's time step, which is the study's."""
        study, task = study_of(sweep_of(self.outcome.name) or self.outcome.name), self.cells[0].labels["task"]
        return next(world.env_dt for world in study.worlds if isinstance(world, ClosedFormWorld) and world.name == task)

    def at(self, dt: Duration) -> tuple[OutcomeCell, ...]:
        """The cells of a cycle time."""
        return tuple(cell for cell in self.cells if cell.dt == dt)


@dataclass(frozen=True, eq=False)
class FigurePanel:
    """One pair of axes; without runs it was not run."""

    title: str
    runs: tuple[Runs, ...]


@dataclass(frozen=True)
class FigurePart:
    """What a figure, or one side of it, is made of."""

    needs: tuple[str, ...]
    """Studies."""
    runs: Callable[[Data], Iterable[Runs]]
    title: str = ""

    def missing(self, data: Data) -> tuple[str, ...]:
        """The studies that are not there."""
        return tuple(study for study in self.needs if study not in data.outcomes)

    def panel(self, data: Data) -> FigurePanel:
        """It, or an empty one if something is missing."""
        return FigurePanel(self.title, () if self.missing(data) else tuple(self.runs(data)))


@dataclass(frozen=True)
class Drawing:
    """A figure of the paper, or of ours."""

    title: str
    parts: tuple[FigurePart, ...]
    draw: Callable[[Figure, Sequence[FigurePanel]], Legend]
    """Fills a figure."""
    family: str = ""
    """Figures of a family are compared with each other, and have the same vertical axis."""

    @property
    def needs(self) -> tuple[str, ...]:
        """All studies that it shows."""
        return tuple(dict.fromkeys(study for part in self.parts for study in part.needs))

    def missing(self, data: Data) -> tuple[str, ...]:
        """The studies that keep it from being drawn; none where one part at least is there."""
        if any(not part.missing(data) for part in self.parts):
            return ()
        return tuple(study for study in self.needs if study not in data.outcomes)


def runs_of(data: Data, study: str, rule: str, /, **labels: object) -> Runs:
    """The runs of a study, or those with some labels, under a rule's name."""
    outcome = data.outcome(study)
    return Runs(rule, outcome, tuple(outcome.where(**labels)))
