"""The results as they are kept with the code, one file for each study, and what is made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from cycletime.errors import InputError
from cycletime.horizons.levels import level_of_nothing
from cycletime.horizons.ranking import Comparison, Scale
from cycletime.horizons.search import RULES, TASKS, retuned, search_study, starts, tuning_study
from cycletime.paper.collecting import outcome_of
from cycletime.paper.outcome import Outcome
from cycletime.paper.results import check_says_no_less
from cycletime.runs.files import disk_errors
from cycletime.runs.worlds import ClosedFormWorld
from cycletime.studies.spec.study import Study
from cycletime.studies.store.folder import StudyFolder

BINS = 10
"""Of the curves that are kept."""
Stage: TypeAlias = Literal["tuning", "search"]
STAGES: tuple[Stage, ...] = ("tuning", "search")


def studies_of(stage: Stage, results: Path) -> list[Study]:
    """The studies of a stage, one for each task; those of the search follow from what tuning found.

    Raises:
        InputError: if that is not there.
    """
    if stage == "tuning":
        return [tuning_study(task) for task in TASKS]
    return [search_study(_outcome(results, "tuning", task)) for task in TASKS]


def collect_stages(out: Path, results: Path) -> list[Path]:
    """Keep what came of the studies in a folder, of which all runs must be done; the files.

    Raises:
        InputError: if there is none, runs are missing or cannot be trusted, or results are there that say more.
    """
    names = [f"{stage}-{task}" for stage in STAGES for task in TASKS]
    there = [name for name in names if (out / name / "study.json").exists()]
    if not there:
        raise InputError(f"{out} has none of {', '.join(names)}: 'cycletime horizons pack' makes what runs them.")
    found = {results / f"{name}.npz": _collected(StudyFolder.open(out / name)) for name in there}
    for path, outcome in found.items():
        check_says_no_less(outcome, path)
    with disk_errors(results):
        results.mkdir(parents=True, exist_ok=True)
    for path, outcome in found.items():
        outcome.save(path)
    return list(found)


def _collected(folder: StudyFolder) -> Outcome:
    (world,) = folder.study.worlds
    assert isinstance(world, ClosedFormWorld), "packs have no others"
    about = {
        "scale": folder.study.env_steps / tuning_study(world.name).env_steps,
        "command": f"cycletime horizons pack {folder.study.name.partition('-')[0]}",
        "nothing": level_of_nothing(world),
    }
    return outcome_of(folder, about, bins=BINS)


def search_comparison(results: Path) -> Comparison:
    """The rules of the search, compared.

    Raises:
        InputError: if results are missing.
    """
    tunings = {task: _outcome(results, "tuning", task) for task in TASKS}
    found = {task: _outcome(results, "search", task) for task in TASKS}
    scales = {task: Scale(float(found[task].about["nothing"]), retuned(tunings[task])) for task in TASKS}
    return Comparison(RULES, [start for task in TASKS for start in starts(tunings[task])], found, scales)


def _outcome(results: Path, stage: Stage, task: str) -> Outcome:
    file = results / f"{stage}-{task}.npz"
    if not file.exists():
        raise InputError(
            f"{file} is not there: 'cycletime horizons pack {stage}' makes what runs it, and 'horizons collect' keeps "
            "what comes of it."
        )
    return Outcome.load(file)
