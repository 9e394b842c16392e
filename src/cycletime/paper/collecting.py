"""From a study's folder to what is kept of it: its finished runs, cell by cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from math import nan
from typing import Any

import numpy as np

from cycletime.agents import Agent
from cycletime.errors import InputError
from cycletime.paper.outcome import Cell, Outcome
from cycletime.studies.plan.plan import Plan
from cycletime.studies.spec import study as spec
from cycletime.studies.store.folder import StudyFolder

_MACHINE = ("cycletime", "device", "processor", "jax", "NVRTC", "kernel")
"""Of where a run was computed, what is kept."""


def collect(folder: StudyFolder, *, full_env_steps: int, command: str) -> Outcome:
    """What came of a study that is finished.

    Args:
        folder: Its folder.
        full_env_steps: The budget that the paper's study has.
        command: What made it, to be kept with it.

    Raises:
        InputError: if runs of it are missing.
    """
    plan = Plan.of(folder.study)
    folder.store.refresh()
    missing = [planned.name for planned in plan.runs if planned.name not in folder.store]
    if missing:
        raise InputError(
            f"{folder.path} has {len(missing):,} of {len(plan.runs):,} runs left to do: 'cycletime paper run' goes on."
        )
    cells = tuple(_cell(folder, cell, plan.names[index]) for index, cell in enumerate(plan.cells))
    results = [folder.store.result(planned.name) for planned in plan.runs]
    machines = Counter(tuple((key, told["machine"].get(key)) for key in _MACHINE) for told in results)
    about = {
        "scale": folder.study.env_steps / full_env_steps,
        "command": command,
        "where": sorted({str(told["where"]) for told in results}),
        "engines": dict(plan.engines()),
        "runs": len(plan.runs),
        "simulated_hours": round(plan.simulated_h, 2),
        "machines": [{"runs": count, **dict(machine)} for machine, count in machines.items()],
        "finished": max(str(told["finished"]) for told in results),
    }
    return Outcome(folder.study.name, folder.study.env_steps, cells, about)


def _cell(folder: StudyFolder, cell: spec.Cell, names: tuple[str, ...]) -> Cell:
    results = [folder.store.result(name) for name in names]
    return Cell(
        labels={**cell.labels, "dt": float(cell.dt)},
        values=_plain_values(cell.agent),
        seeds=tuple(int(told["seed"]) for told in results),
        scores=_numbers(results, "average_return"),
        plain=_numbers(results, "mean_over_episodes"),
        curves=np.stack([folder.store.means(name) for name in names]),
    )


def _numbers(results: list[Mapping[str, Any]], measure: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([nan if told[measure] is None else told[measure] for told in results], np.float64)


def _plain_values(agent: Agent) -> dict[str, Any]:
    """An agent's hyper-parameters that are numbers and words."""
    told = {each.name: getattr(agent, each.name) for each in fields(agent)}  # type: ignore[arg-type]
    return {name: value for name, value in told.items() if isinstance(value, int | float | str)}
