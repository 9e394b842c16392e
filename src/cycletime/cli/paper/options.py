"""Options that several of the paper's commands share: which experiments, how much of them, and where results are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

from tyro.conf import Positional, arg

from cycletime.cli.options import Count, Real
from cycletime.errors import InputError

if TYPE_CHECKING:
    from cycletime.paper.claims.sources import Data
    from cycletime.paper.experiments import Experiment, Size
    from cycletime.paper.running import Workspace


@dataclass(frozen=True, kw_only=True)
class SizeOptions:
    """How much of experiments."""

    seeds: Annotated[Count, arg(help_behavior_hint="(default: the study's own)")] = None
    """Runs of each point: 30, but for 10 of pendulum-grid and sac-robot, and 5 of PPO on the robot."""
    fresh_seeds: Annotated[Count, arg(help_behavior_hint="(default: as many as of the sweep)")] = None
    """Runs of each winner of a sweep."""
    scale: Real = 1.0
    """The share of the paper's environment steps; results that are scaled down are labelled so."""

    @property
    def size(self) -> Size:
        """How much of each."""
        from cycletime.paper.experiments import Size

        return Size(self.scale, self.seeds, self.fresh_seeds)


@dataclass(frozen=True, kw_only=True)
class Chosen(SizeOptions):
    """Which experiments, how much of them, where they are kept, and what computes them."""

    names: Annotated[Positional[tuple[str, ...]], arg(metavar="NAME ...", help_behavior_hint="(required, or --all)")]
    """Experiments, as 'cycletime paper list' has them."""
    all: bool = False
    """All of them."""
    out: Annotated[Path, arg(metavar="FOLDER")] = Path("paper")
    """Where their studies are kept, each in a folder of its own."""
    engine: Annotated[str, arg(metavar="ENGINE")] = "auto"
    """The engine: compiled, cuda, or auto for the fastest that takes a run on the device."""

    @property
    def experiments(self) -> tuple[Experiment, ...]:
        """Those that are asked for."""
        from cycletime.paper.experiments import EXPERIMENTS, experiments

        if self.all == bool(self.names):
            raise InputError("Give either the names of experiments or --all: 'cycletime paper list' has them.")
        return experiments(EXPERIMENTS if self.all else self.names)

    def workspace(self, device: Literal["cpu", "gpu"], *, change_engine: bool = False) -> Workspace:
        """Where they are kept, on a device."""
        from cycletime.paper.running import Workspace

        return Workspace(out=self.out, size=self.size, device=device, engine=self.engine, change_engine=change_engine)


@dataclass(frozen=True, kw_only=True)
class FromResults:
    """Where results are read from."""

    results: Annotated[
        Optional[Path],  # noqa: UP045
        arg(metavar="FOLDER", help_behavior_hint="(default: those that come with cycletime)"),
    ] = None
    """Results, as 'cycletime paper collect' keeps them."""

    @property
    def results_folder(self) -> Path:
        """The folder that is read."""
        from cycletime.paper.results import shipped_results

        return shipped_results() if self.results is None else self.results

    def data(self) -> Data:
        """All that there is; nothing where no results come with the code."""
        from cycletime.paper.claims.sources import Data
        from cycletime.paper.results import read_results

        if self.results is None and not self.results_folder.is_dir():
            return Data({})
        return read_results(self.results_folder)
