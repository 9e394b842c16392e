"""Whether finished runs are what they were when they finished: nothing lost, nothing changed."""

from __future__ import annotations

from pathlib import Path

from cycletime.errors import RunError
from cycletime.runs.bundle import Bundle
from cycletime.runs.files import disk_errors
from cycletime.runs.result import fault_of
from cycletime.studies.store.folder import StudyFolder

ASIDE = "damaged"
"""The folder of a study that files are put aside into."""


def fault_of_bundle(path: Path) -> str | None:
    """What is wrong with a file of finished runs, or None: its hash, and of each run its spec, curve and policy."""
    bundle = Bundle(path)
    try:
        if not bundle.is_whole():
            return "it is not what was written: its hash is another"
        for run, told in zip(bundle.runs(), bundle.about, strict=True):
            if run.name != told["name"]:
                return f"the run {told['name']} is {run.name} by its spec"
            if fault := fault_of(run):
                return f"{run.name}: {fault}"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    except RunError as error:
        return str(error).rstrip(".")
    return None


def put_aside(folder: StudyFolder, path: Path) -> Path:
    """Move a file out of a study, so that its runs are run again; where it is now."""
    aside = folder.path / ASIDE
    with disk_errors(aside):
        aside.mkdir(exist_ok=True)
        place, number = aside / path.name, 1
        while place.exists():
            number += 1
            place = aside / f"{path.stem}-{number}{path.suffix}"
        return path.rename(place)
