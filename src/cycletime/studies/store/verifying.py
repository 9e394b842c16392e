"""What cannot be used of a study any more, and how it is put aside; files of finished runs are checked by its store."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from cycletime.runs.files import make_folder, move
from cycletime.runs.folder import checkpoints_of
from cycletime.studies.plan.plan import Plan
from cycletime.studies.store.folder import StudyFolder

ASIDE = "damaged"
"""The folder of a study that files are put aside into."""


def damaged_runs(folder: StudyFolder, names: Collection[str] | None = None) -> Iterator[tuple[Path, str]]:
    """Runs, all or some, that nobody trains and cannot go on, since no checkpoint of theirs can be used, and why."""
    plan = Plan.of(folder.study)
    begun = {path.name for path in folder.runs.glob("*") if names is None or path.name in names}
    planned = {run.name: run for run in plan.runs if run.name in begun}
    for name, state in folder.states(planned).items():
        if state in ("done", "running"):
            continue
        path = folder.runs / name
        if fault := checkpoints_of(path).fault(plan.spec(planned[name]).identity):
            yield path, fault.rstrip(".")


def put_aside(folder: StudyFolder, path: Path) -> Path:
    """Move a file of finished runs or a run's folder out of a study, so that it begins anew; where it is now."""
    aside = folder.path / ASIDE
    make_folder(aside)
    place, number = aside / path.name, 1
    while place.exists():
        number += 1
        place = aside / f"{path.stem}-{number}{path.suffix}"
    return move(path, place)
