"""From a study's folder to its outcome, and from a sweep's outcome to its winners.

A winner's own scores are too good, since it was chosen by them (the paper's 'maximisation bias'): winners are run again
with fresh seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.agents import Agent
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.experiments.outcome import Outcome, OutcomeCell
from cycletime.experiments.paper.experiments import FRESH_SEED, Size, experiment_of, load_study, sweep_of, winners_name
from cycletime.statistics import Contrast, Estimate, mean_and_error
from cycletime.studies import spec
from cycletime.studies.events import recorded_wall_s
from cycletime.studies.plan import Plan
from cycletime.studies.spec import StudySpec, Tuned
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.engine import AUTO

_MACHINE_KEYS = ("cycletime", "device", "processor", "jax", "NVRTC", "kernel")
"""Of where a run was computed, what is kept."""


def collect(folder: StudyFolder, *, wall_s: float | None = None) -> Outcome:
    """What came of a study of the paper that is finished.

    Args:
        folder: Its folder.
        wall_s: How long that took; by default what was written down there.
    """
    return outcome_of(
        folder, {"scale": study_scale(folder.study), "command": study_command(folder.study)}, wall_s=wall_s
    )


def outcome_of(
    folder: StudyFolder, about: Mapping[str, Any], *, wall_s: float | None = None, bins: int | None = None
) -> Outcome:
    """What came of a study that is finished.

    Args:
        folder: Its folder.
        about: What else is to be said of it: at least its scale, and the command that runs it again.
        wall_s: How long that took; by default what was written down there.
        bins: Of the curves that are kept; by default as many as there are.
    """
    plan, folder = Plan.of(folder.study), verified_folder(folder)
    missing = [planned.name for planned in plan.runs if planned.name not in folder.store]
    if missing:
        raise InputError(
            f"{folder.path} has {len(missing):,} of {len(plan.runs):,} runs left to do: what ran the others goes on."
        )
    cells = tuple(_outcome_cell(folder, cell, plan.names[index], bins) for index, cell in enumerate(plan.cells))
    results = [folder.store.result(planned.name) for planned in plan.runs]
    machines = Counter(tuple((key, told["machine"].get(key)) for key in _MACHINE_KEYS) for told in results)
    told_of = {
        **about,
        "where": sorted({str(told["where"]) for told in results}),
        "engines": dict(plan.engines()),
        "runs": len(plan.runs),
        "simulated_hours": round(plan.simulated_h or 0.0, 2),
        "wall_s": recorded_wall_s(folder.path) if wall_s is None else wall_s,
        "machines": [{"runs": count, **dict(machine)} for machine, count in machines.items()],
        "finished": max(str(told["finished"]) for told in results),
    }
    return Outcome(folder.study.name, folder.study.env_steps, cells, told_of)


def verified_folder(folder: StudyFolder) -> StudyFolder:
    """A study's folder whose finished runs were all held against their hash and their curve."""
    folder = folder.checked()
    folder.store.refresh()
    for path, wrong in folder.store.damaged.items():
        raise InputError(
            f"{path} is damaged ({wrong}): restore it, or let 'cycletime study verify {folder.path} --repair' move it "
            "away and what has trained its runs train them again."
        )
    for dispute in folder.disputes():
        raise InputError(dispute)
    return folder


def scalar_settings(agent: Agent) -> dict[str, Any]:
    """An agent's hyper-parameters that are numbers and words."""
    told = {each.name: getattr(agent, each.name) for each in fields(agent)}  # type: ignore[arg-type]
    return {name: value for name, value in told.items() if isinstance(value, int | float | str)}


def study_scale(study: StudySpec) -> float:
    """The share of the paper's environment steps that a study has."""
    return study.env_steps / load_study(sweep_of(study.name) or study.name).env_steps


def study_command(study: StudySpec) -> str:
    """What runs a study again."""
    experiment = experiment_of(study.name)
    assert experiment is not None, "it is a study of the paper"
    scale = study_scale(study)
    seeds = "--seeds" if sweep_of(study.name) is None else "--fresh-seeds"
    words = ["cycletime", "experiment", "run", "paper", experiment.name, seeds, str(len(study.seeds))]
    words += [] if scale == 1 else ["--scale", f"{scale:g}"]
    words += [] if study.device == "cpu" else ["--device", study.device]
    words += [] if study.engine == AUTO else ["--engine", study.engine]
    return " ".join(words)


def _outcome_cell(folder: StudyFolder, cell: spec.Cell, names: tuple[str, ...], bins: int | None) -> OutcomeCell:
    curves = np.stack([folder.store.means(name) for name in names])
    results = [folder.store.result(name) for name in names]
    return OutcomeCell(
        labels={**cell.labels, "dt": float(cell.dt)},
        values=scalar_settings(cell.agent),
        seeds=tuple(int(told["seed"]) for told in results),
        scores=_numbers(results, "average_return"),
        plain=_numbers(results, "mean_over_episodes"),
        curves=curves.reshape(len(names), bins or curves.shape[1], -1).mean(axis=2),
    )


def _numbers(results: list[Mapping[str, Any]], measure: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([nan if told[measure] is None else told[measure] for told in results], np.float64)


@dataclass(frozen=True)
class Winner:
    """The best cell at a cycle time, and those that are as good for all one can tell."""

    dt: Duration
    cell: OutcomeCell
    mean: Estimate
    """Of the runs that it won with."""
    as_good: tuple[OutcomeCell, ...]
    """Cells behind it by less than the standard error of the difference, the nearest first."""


def winners(sweep: Outcome) -> dict[Duration, Winner]:
    """By cycle time, who won a sweep; runs that diverged count as the worst score that there is."""
    every = np.concatenate([cell.scores for cell in sweep.cells])
    worst = float(np.min(every, where=np.isfinite(every), initial=inf))
    return {dt: _winner(sweep, dt, worst) for dt in sorted({cell.dt for cell in sweep.cells})}


def _winner(sweep: Outcome, dt: Duration, worst: float) -> Winner:
    scored = [cell for cell in sweep.where(dt=dt) if np.isfinite(cell.scores).any()]
    if not scored:
        raise InputError(f"At {dt} every run of {sweep.name} diverged: there is no winner.")
    counted = {cell: np.where(np.isfinite(cell.scores), cell.scores, worst) for cell in scored}
    best, *others = sorted(scored, key=lambda cell: -float(counted[cell].mean()))
    close = tuple(cell for cell in others if _is_as_good(counted[cell], counted[best]))
    return Winner(dt, best, mean_and_error(best.scores, failed="exclude"), close)


def _is_as_good(scores: NDArray[np.float64], best: NDArray[np.float64]) -> bool:
    """Whether runs are behind by less than the standard error of the difference, which a single run does not tell."""
    if min(len(scores), len(best)) < 2:
        return False
    behind = Contrast.of([(1.0, best), (-1.0, scores)])
    return behind.value < behind.error


def winners_study(sweep: Outcome, part: str, size: Size) -> StudySpec:
    """The study that runs the winners of a sweep again."""
    full = load_study(part, size)
    (algorithm,) = full.algorithms
    tuned = full.tuned[algorithm]
    tried = [name for name, values in tuned.values.items() if len(values) > 1]
    points = tuple(
        {"dt": dt, **{name: winner.cell.labels[name] for name in tried}} for dt, winner in winners(sweep).items()
    )
    kept = {name: values for name, values in tuned.values.items() if name not in tried}
    return replace(
        full,
        name=winners_name(part),
        seeds=tuple(range(FRESH_SEED, FRESH_SEED + (size.fresh_seeds or len(full.seeds)))),
        tuned={algorithm: Tuned(tuned.dt, kept)},
        points={algorithm: points},
    )
