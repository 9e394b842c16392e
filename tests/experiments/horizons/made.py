"""Outcomes of the search and the trial that nobody ran: their cells are real, their scores are made up."""

from collections.abc import Callable
from math import log
from pathlib import Path

import numpy as np

from cycletime.agents import PPOAgent, SACAgent
from cycletime.experiments.collecting import scalar_settings
from cycletime.experiments.horizons.candidates import SEARCH, TRIAL, Rules, TaskSet
from cycletime.experiments.horizons.preregistration import preregistered_rules
from cycletime.experiments.horizons.results import CURVE_BINS
from cycletime.experiments.outcome import Outcome, OutcomeCell
from cycletime.studies.spec import Cell, StudySpec

NOTHING = {"reacher": -1.0, "double-pendulum": 300.0, **dict.fromkeys(TRIAL.tasks, 0.0)}
BEST_S = {"reacher": (0.2, 0.32), "double-pendulum": (3.2, 0.32), **dict.fromkeys(TRIAL.tasks, (3.2, 0.64))}
"""By task, the discount and trace horizons that do best."""
SEEDS = 3


def horizons_s(cell: Cell) -> list[float]:
    """The discount horizon of a cell, and of PPO that of the trace."""
    assert isinstance(cell.agent, PPOAgent | SACAgent)
    traces = [cell.agent.trace_decay] if isinstance(cell.agent, PPOAgent) else []
    return [-float(cell.dt) / log(each) for each in (cell.agent.discount, *traces)]


def by_horizons(cell: Cell) -> float:
    """100 more than nothing where all horizons are the best ones, and less the further they are from there."""
    task = cell.world.name
    off = sum(abs(log(ours / best)) for ours, best in zip(horizons_s(cell), BEST_S[task], strict=False))
    return NOTHING[task] + 100 / (1 + off)


def outcome(study: StudySpec, score: Callable[[Cell], float] = by_horizons, noise: float = 0.0) -> Outcome:
    """What would have come of a study; noise is the standard deviation of its runs' scores."""
    rng = np.random.default_rng(0)
    cells = []
    for cell in study.cells():
        scores = score(cell) + noise * rng.standard_normal(SEEDS)
        labels = {**cell.labels, "dt": float(cell.dt)}
        curves = np.repeat(scores[:, None], CURVE_BINS, axis=1)
        cells.append(
            OutcomeCell(labels, scalar_settings(cell.run(0).own_agent), tuple(range(SEEDS)), scores, scores, curves)
        )
    about = {
        "scale": 1.0,
        "nothing": NOTHING[study.worlds[0].name],
        "runs": SEEDS * len(cells),
        "command": "cycletime experiment pack horizons",
        "machines": [{"cycletime": "1", "device": "none"}],
        "wall_s": 1.0,
    }
    return Outcome(study.name, study.env_steps, tuple(cells), about)


def save_results(
    folder: Path, score: Callable[[Cell], float] = by_horizons, noise: float = 0.0, task_set: TaskSet = SEARCH
) -> Path:
    """Files of all outcomes of a search; tuning has found the best horizons."""
    return _save(folder, task_set, task_set.spec.rules, score, noise)


def save_trial(
    folder: Path, score: Callable[[Cell], float] = by_horizons, noise: float = 0.0, task_set: TaskSet = TRIAL
) -> Path:
    """The same of a trial; the frozen list must be there."""
    rules = task_set.spec.against_references(preregistered_rules(folder, task_set.spec))
    return _save(folder, task_set, rules, score, noise)


def _save(folder: Path, task_set: TaskSet, rules: Rules, score: Callable[[Cell], float], noise: float) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for task in task_set.tasks:
        tuning = outcome(task_set.tuning(task))
        tuning.save(folder / f"{task_set.tuning_name(task)}.npz")
        outcome(task_set.study(tuning, rules), score, noise).save(folder / f"{task_set.study_name(task)}.npz")
    return folder
