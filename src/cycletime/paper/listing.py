"""The paper's experiments in a list: how large they are, and what there is of their results."""

from __future__ import annotations

from dataclasses import dataclass

from cycletime.paper.claims.sources import Data
from cycletime.paper.experiments import EXPERIMENTS, Experiment, Size
from cycletime.paper.outcome import Outcome
from cycletime.paper.sizes import extent_of
from cycletime.runs.machine import cores
from cycletime.studies.plan.elsewhere import CORES


@dataclass(frozen=True)
class Listed:
    """An experiment, and what there is of it."""

    name: str
    about: str
    shown_in: str
    where: tuple[str, ...]
    """Where its results come from: closed form, or a simulated robot."""
    studies: tuple[str, ...]
    runs: int
    simulated_h: float
    here_s: float
    """About, on the cores that are here."""
    cores_s: dict[int, float]
    """About, on as many cores."""
    h200_s: float | None
    """About, on one H200; None where that is not known."""
    engines: tuple[str, ...]
    """On a GPU."""
    results: str
    """In words: so many seeds, scaled down or not; or 'none'."""
    n: tuple[int, ...]
    """The seeds of results at hand, each number once."""
    scale: float | None
    """The least share of the paper's environment steps among them."""


def rows(data: Data, size: Size) -> list[Listed]:
    """All experiments, in the paper's order."""
    return [row_of(experiment, data, size) for experiment in EXPERIMENTS.values()]


def row_of(experiment: Experiment, data: Data, size: Size) -> Listed:
    """An experiment, in a size."""
    extent = extent_of(experiment, size)
    there = [data.outcomes[part] for part in experiment.parts if part in data.outcomes]
    return Listed(
        name=experiment.name,
        about=experiment.about,
        shown_in=experiment.shown_in,
        where=extent.where,
        studies=experiment.parts,
        runs=extent.runs,
        simulated_h=round(extent.simulated_h, 3),
        here_s=round(extent.cores_s[cores()], 1),
        cores_s={count: round(extent.cores_s[count], 1) for count in CORES},
        h200_s=None if extent.h200_s is None else round(extent.h200_s, 1),
        engines=extent.engines,
        results=_in_words(experiment, there),
        n=tuple(sorted({n for outcome in there for n in outcome.n})),
        scale=min((outcome.scale for outcome in there), default=None),
    )


def _in_words(experiment: Experiment, there: list[Outcome]) -> str:
    if not there:
        return "none"
    if len(there) < len(experiment.parts):
        return f"{len(there)} of {len(experiment.parts)} studies"
    n, scale = min(n for outcome in there for n in outcome.n), min(outcome.scale for outcome in there)
    seeds = f"{n} seed{'' if n == 1 else 's'}"
    return seeds if scale == 1 else f"{seeds}, {100 * scale:.3g} %"
