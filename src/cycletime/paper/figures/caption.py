"""What stands below a figure: how many seeds, which bands, and what is not as in the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from cycletime.paper.figures.panels import FigurePanel, Runs
from cycletime.reports.words import several


def caption(panels: Sequence[FigurePanel]) -> str:
    """The sentences below a figure."""
    runs = [each for panel in panels for each in panel.runs]
    found = [
        _of_scale(runs),
        _of_seeds(runs),
        _of_astray(runs),
        f"Data: {several(sorted({where for each in runs for where in each.outcome.sources}))}.",
    ]
    return " ".join(sentence for sentence in found if sentence)


def _of_seeds(runs: Iterable[Runs]) -> str:
    if all(len(cell.seeds) == 1 for each in runs for cell in each.cells):
        return "n = 1 seed, so without standard errors."
    return f"Means over {_told(runs, lambda each: _seeds(each.cells[0].seeds))} ± one standard error."


def _of_scale(runs: Iterable[Runs]) -> str:
    if all(each.outcome.scale == 1 for each in runs):
        return ""
    return f"Scaled-down: {_told(runs, lambda each: f'{100 * each.outcome.scale:.3g} % of the environment steps')}."


def _of_astray(runs: Iterable[Runs]) -> str:
    cells = {id(cell): cell for each in runs for cell in each.cells}.values()
    astray = sum(int((~np.isfinite(cell.scores)).sum()) for cell in cells)
    if not astray:
        return ""
    return f"{astray} run{'' if astray == 1 else 's'} of {sum(len(cell.seeds) for cell in cells):,} diverged, left out."


def _told(runs: Iterable[Runs], words: Callable[[Runs], str]) -> str:
    """What holds of all runs, once; where studies differ, each with the studies that it holds of."""
    studies: dict[str, list[str]] = {}
    for each in runs:
        if each.outcome.name not in studies.setdefault(words(each), []):
            studies[words(each)].append(each.outcome.name)
    if len(studies) == 1:
        return next(iter(studies))
    return several([f"{text} ({', '.join(names)})" for text, names in studies.items()])


def _seeds(seeds: Sequence[int]) -> str:
    return f"n = {len(seeds)} seed{'' if len(seeds) == 1 else 's'}"
