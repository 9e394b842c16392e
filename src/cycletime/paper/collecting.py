"""From a study's folder to what is kept of it: its finished runs, cell by cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from math import nan
from typing import Any

import numpy as np

from cycletime.agents import Agent
from cycletime.engines.registry import AUTO
from cycletime.errors import InputError
from cycletime.paper.experiments import experiment_of, study_of, sweep_of
from cycletime.paper.outcome import Outcome, OutcomeCell
from cycletime.studies.plan.plan import Plan
from cycletime.studies.running.sessions import worked_s
from cycletime.studies.spec import study as spec
from cycletime.studies.spec.study import Study
from cycletime.studies.store.folder import StudyFolder

_MACHINE = ("cycletime", "device", "processor", "jax", "NVRTC", "kernel")
"""Of where a run was computed, what is kept."""


def collect(folder: StudyFolder, *, wall_s: float | None = None) -> Outcome:
    """What came of a study of the paper that is finished.

    Args:
        folder: Its folder.
        wall_s: How long that took; by default what was written down there.

    Raises:
        InputError: if runs of it are missing, or cannot be trusted.
    """
    return outcome_of(folder, {"scale": scale_of(folder.study), "command": command_of(folder.study)}, wall_s=wall_s)


def outcome_of(
    folder: StudyFolder, about: Mapping[str, Any], *, wall_s: float | None = None, bins: int | None = None
) -> Outcome:
    """What came of a study that is finished.

    Args:
        folder: Its folder.
        about: What else is to be said of it: at least its scale, and the command that runs it again.
        wall_s: How long that took; by default what was written down there.
        bins: Of the curves that are kept; by default as many as there are.

    Raises:
        InputError: if runs of it are missing, or cannot be trusted.
    """
    plan, folder = Plan.of(folder.study), checked(folder)
    missing = [planned.name for planned in plan.runs if planned.name not in folder.store]
    if missing:
        raise InputError(
            f"{folder.path} has {len(missing):,} of {len(plan.runs):,} runs left to do: what ran the others goes on."
        )
    cells = tuple(_cell(folder, cell, plan.names[index], bins) for index, cell in enumerate(plan.cells))
    results = [folder.store.result(planned.name) for planned in plan.runs]
    machines = Counter(tuple((key, told["machine"].get(key)) for key in _MACHINE) for told in results)
    told_of = {
        **about,
        "where": sorted({str(told["where"]) for told in results}),
        "engines": dict(plan.engines()),
        "runs": len(plan.runs),
        "simulated_hours": round(plan.simulated_h or 0.0, 2),
        "wall_s": worked_s(folder.path) if wall_s is None else wall_s,
        "machines": [{"runs": count, **dict(machine)} for machine, count in machines.items()],
        "finished": max(str(told["finished"]) for told in results),
    }
    return Outcome(folder.study.name, folder.study.env_steps, cells, told_of)


def checked(folder: StudyFolder) -> StudyFolder:
    """A study's folder whose finished runs were all held against their hash and their curve.

    Raises:
        InputError: if a file of them is damaged, or a run has two scores.
    """
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


def plain_values(agent: Agent) -> dict[str, Any]:
    """An agent's hyper-parameters that are numbers and words."""
    told = {each.name: getattr(agent, each.name) for each in fields(agent)}  # type: ignore[arg-type]
    return {name: value for name, value in told.items() if isinstance(value, int | float | str)}


def scale_of(study: Study) -> float:
    """The share of the paper's environment steps that a study has."""
    return study.env_steps / study_of(sweep_of(study.name) or study.name).env_steps


def command_of(study: Study) -> str:
    """What runs a study again."""
    experiment = experiment_of(study.name)
    assert experiment is not None, "it is a study of the paper"
    scale = scale_of(study)
    seeds = "--seeds" if sweep_of(study.name) is None else "--fresh-seeds"
    words = ["cycletime", "paper", "run", experiment.name, seeds, str(len(study.seeds))]
    words += [] if scale == 1 else ["--scale", f"{scale:g}"]
    words += [] if study.device == "cpu" else ["--device", study.device]
    words += [] if study.engine == AUTO else ["--engine", study.engine]
    return " ".join(words)


def _cell(folder: StudyFolder, cell: spec.Cell, names: tuple[str, ...], bins: int | None) -> OutcomeCell:
    curves = np.stack([folder.store.means(name) for name in names])
    results = [folder.store.result(name) for name in names]
    return OutcomeCell(
        labels={**cell.labels, "dt": float(cell.dt)},
        values=plain_values(cell.agent),
        seeds=tuple(int(told["seed"]) for told in results),
        scores=_numbers(results, "average_return"),
        plain=_numbers(results, "mean_over_episodes"),
        curves=curves.reshape(len(names), bins or curves.shape[1], -1).mean(axis=2),
    )


def _numbers(results: list[Mapping[str, Any]], measure: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([nan if told[measure] is None else told[measure] for told in results], np.float64)
