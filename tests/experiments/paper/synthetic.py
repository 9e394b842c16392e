"""Outcomes of the paper's studies that nobody ran: their cells and values are real, their curves are made up."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from cycletime.experiments.collecting import scalar_settings
from cycletime.experiments.investigation import FRESH_SEED, winners_name
from cycletime.experiments.outcome import Outcome, OutcomeCell, winners
from cycletime.experiments.paper.data import TASK_SCALES, PaperResults
from cycletime.experiments.paper.experiments import EXPERIMENTS, FIRST_SEEDS, PRESPECIFIED_SEEDS, load_study

BINS = 100
Labels: TypeAlias = Mapping[str, Any]
"""Of a cell: study, task, algorithm, rule, dt (a text such as '4ms'), what the study varies, and further values of the
agent under their names. So `batch` is that at 16 ms where a study varies it, and else the agent's own."""
Score: TypeAlias = Callable[[Labels], float | NDArray[np.float64]]
"""A cell's mean score, from which a plausible curve is made; or the mean curve itself, [BINS]."""

STUDIES = tuple(study for row in EXPERIMENTS.values() for study in row.studies)
SWEEPS = tuple(row.winners_of for row in EXPERIMENTS.values() if row.winners_of is not None)


def synthetic_data(
    score: Score,
    seeds: int = 30,
    *,
    noise: float = 0.05,
    only: Sequence[str] = (),
    scale: float = 1.0,
    curves: Callable[[Labels, NDArray[np.float64]], NDArray[np.float64]] = lambda _, curves: curves,
) -> PaperResults:
    """Data of every study, or of some; those of winners follow from their sweeps.

    Args:
        score: What each cell has; its sample mean is exactly this.
        seeds: Of each cell, but for prespecified ones.
        noise: The sample standard deviation of a cell's scores, as a share of a perfect policy's return.
        only: Studies; of a sweep's winners too, if they are named.
        scale: The share of the paper's environment steps.
        curves: A last change of a cell's curves, [seeds, BINS], such as a run that goes astray.
    """
    wanted = only or (*STUDIES, *map(winners_name, SWEEPS))
    sweeps = {sweep for sweep in SWEEPS if winners_name(sweep) in wanted}
    outcomes: dict[str, Outcome] = {}

    def made(study: str, labels: Labels, values: Labels, first_seed: int) -> OutcomeCell:
        told = {"study": study, **values, **labels, "dt": f"{labels['dt'] * 1e3:g}ms"}
        spread = noise * TASK_SCALES[labels["task"]].full
        count = PRESPECIFIED_SEEDS if study in FIRST_SEEDS else seeds
        drawn = curves(told, _curves(np.asarray(score(told), float), count, spread, told))
        scores = drawn.mean(axis=1)
        return OutcomeCell(labels, values, tuple(range(first_seed, first_seed + count)), scores, scores.copy(), drawn)

    for study in STUDIES:
        if study in wanted or study in sweeps:
            env_steps, places = _places(study)
            cells = tuple(made(study, labels, values, FIRST_SEEDS.get(study, 0)) for labels, values in places)
            outcomes[study] = Outcome(study, round(env_steps * scale), cells, _about(scale))
    for sweep in sweeps:
        name, swept = winners_name(sweep), outcomes[sweep]
        best = [winner.cell for winner in winners(swept).values()]
        cells = tuple(made(name, cell.labels, cell.values, FRESH_SEED) for cell in best)
        outcomes[name] = Outcome(name, swept.env_steps, cells, swept.about)
    return PaperResults({name: outcomes[name] for name in wanted})


def _about(scale: float) -> dict[str, Any]:
    return {"scale": scale, "command": "nobody ran it", "where": ["made up"], "runs": 0, "machines": []}


@cache
def _places(study: str) -> tuple[int, tuple[tuple[Labels, Labels], ...]]:
    """The environment steps of a study, and the labels and values of its cells."""
    whole = load_study(study)
    cells = [({**cell.labels, "dt": float(cell.dt)}, scalar_settings(cell.run(0).own_agent)) for cell in whole.cells()]
    return whole.env_steps, tuple(cells)


def _curves(score: NDArray[np.float64], seeds: int, spread: float, labels: Labels) -> NDArray[np.float64]:
    """[seeds, BINS] curves that rise to a plateau, whose mean score and its spread are exactly those wanted."""
    random = np.random.default_rng(crc32(repr(sorted(labels.items())).encode()))
    time = np.arange(BINS) / BINS
    start = 0.0 if labels["task"] == "reacher" else 0.05 * TASK_SCALES[labels["task"]].full
    rise = 1 - np.exp(-time / 0.15)
    mean = score if score.ndim else start + (score - start) * rise / rise.mean()
    offsets, wiggles = random.normal(size=(seeds, 1)), random.normal(size=(seeds, BINS))
    if seeds == 1:
        return np.asarray(mean + 0.3 * spread * (wiggles - wiggles.mean()))
    offsets = (offsets - offsets.mean()) / offsets.std(ddof=1)
    wiggles = wiggles - wiggles.mean(axis=1, keepdims=True)
    wiggles = wiggles - wiggles.mean(axis=0)
    return np.asarray(mean + spread * (offsets + 0.3 * wiggles))
