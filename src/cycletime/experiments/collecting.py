"""Results as they are kept with the code: from studies' folders to RESULTS/STUDY.npz, and where they are found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

import cycletime
from cycletime.agents import Agent
from cycletime.errors import InputError
from cycletime.experiments.investigation import Investigation
from cycletime.experiments.outcome import Outcome, OutcomeCell
from cycletime.studies.events import recorded_wall_s
from cycletime.studies.plan import Plan
from cycletime.studies.scores import RunScore, read_cells, score_array
from cycletime.studies.spec import Cell
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.atomic_files import make_folder

_MACHINE_KEYS = ("cycletime", "device", "processor", "jax", "NVRTC", "kernel")


def find_results(name: str) -> Path | None:
    """The results/NAME of the checkout that the package is in, or of the current folder or one above."""
    package, here = Path(cycletime.__file__).parent, Path.cwd()
    for folder in (*package.parents, here, *here.parents):
        if (folder / "results" / name).is_dir():
            return folder / "results" / name
    return None


def results_folder(name: str) -> Path:
    """The same; refused where there are none, since no package has them."""
    if (found := find_results(name)) is None:
        raise InputError(
            f"There is no results/{name} here or above: give the folder that 'cycletime experiment collect' filled as "
            "--results. Results of the paper and of horizons are in a clone of https://github.com/cycletime/cycletime."
        )
    return found


def collect_results(
    investigation: Investigation, out: Path, results: Path
) -> tuple[list[Path], dict[str, tuple[int, int]]]:
    """Keep the outcomes of all finished studies in a folder, and what else the investigation keeps.

    Returns the files that were kept; and by study that is not finished, the runs that are done and those that there
    are.
    """
    folders = {
        name: verified_folder(StudyFolder.open(out / name))
        for name in investigation.study_names
        if (out / name / "study.json").exists()
    }
    if not folders:
        raise InputError(
            f"{out} has no study of '{investigation.typed}', such as {investigation.study_names[0]}: 'cycletime "
            f"experiment run {investigation.typed}' makes them."
        )
    counts = {name: run_counts(folder) for name, folder in folders.items()}
    done = {name: folder for name, folder in folders.items() if counts[name][0] == counts[name][1]}
    outcomes = {
        results / f"{name}.npz": collect_study(folder, investigation.origin(folder.study), investigation.curve_bins)
        for name, folder in done.items()
    }
    for path, outcome in outcomes.items():
        before = Outcome.load(path) if path.exists() else outcome
        if before.scale > outcome.scale or before.n > outcome.n:  # what is lost may have taken days
            sizes = [f"{each.n[0]} seeds at {each.scale:.3g} of all environment steps" for each in (before, outcome)]
            raise InputError(
                f"{path} has {sizes[0]}, and what is to be kept now {sizes[1]}: give another --results, or remove that "
                "file."
            )
    make_folder(results)
    for path, outcome in outcomes.items():
        outcome.save(path)
    kept = [*outcomes, *investigation.collect_more(done, results)]
    return kept, {name: counts[name] for name in folders if name not in done}


def collect_study(folder: StudyFolder, about: Mapping[str, Any], bins: int | None = None) -> Outcome:
    """The outcome of a finished study, of a `verified_folder`; `about` is the study's `origin`."""
    plan, (done, runs) = Plan.of(folder.study), run_counts(folder)
    if done < runs:
        raise InputError(f"{folder.path} has {runs - done:,} of {runs:,} runs left to do: what ran the others goes on.")
    cells = tuple(_outcome_cell(cell, runs, bins) for cell, runs in read_cells(folder))
    results = [folder.store.result(planned.name) for planned in plan.runs]
    machines = Counter(tuple((key, result["machine"].get(key)) for key in _MACHINE_KEYS) for result in results)
    told_of = {
        **about,
        "where": sorted({str(result["where"]) for result in results}),
        "engines": dict(plan.engines()),
        "runs": runs,
        "simulated_hours": round(plan.simulated_h or 0.0, 2),
        "wall_s": recorded_wall_s(folder.path),
        "machines": [{"runs": count, **dict(machine)} for machine, count in machines.items()],
        "finished": max(str(result["finished"]) for result in results),
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
    settings = {each.name: getattr(agent, each.name) for each in fields(agent)}  # type: ignore[arg-type]
    return {name: value for name, value in settings.items() if isinstance(value, int | float | str)}


def _outcome_cell(cell: Cell, runs: Sequence[RunScore], bins: int | None) -> OutcomeCell:
    curves = np.stack([run.means for run in runs if run.means is not None])
    return OutcomeCell(
        labels={**cell.labels, "dt": float(cell.dt)},
        values=scalar_settings(cell.run(0).own_agent),
        seeds=tuple(run.spec.seed for run in runs),
        scores=score_array(runs),
        plain=score_array(runs, "episodes"),
        curves=curves.reshape(len(runs), bins or curves.shape[1], -1).mean(axis=2),
    )


def run_counts(folder: StudyFolder) -> tuple[int, int]:
    names = [planned.name for planned in Plan.of(folder.study).runs]
    return sum(name in folder.store for name in names), len(names)
