"""Taking finished runs that were made elsewhere into a study: verified first, and whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from cycletime.errors import InputError, RunError
from cycletime.runs.files import write_whole
from cycletime.runs.folder import RunFolder
from cycletime.studies.folder import StudyFolder
from cycletime.studies.lease import leased
from cycletime.studies.plan import Plan
from cycletime.studies.verify import damage_of


@dataclass
class Taken:
    """What became of the runs that were found."""

    taken: int = 0
    known: int = 0
    """The study has them already."""
    not_planned: int = 0
    """The study does not plan them."""
    busy: int = 0
    """A worker trains them in the study at this moment."""
    damaged: dict[Path, str] = field(default_factory=dict)
    """By folder, what is wrong."""


def take_runs(folder: StudyFolder, sources: list[Path]) -> Taken:
    """Copy all finished runs below some folders that a study plans and does not have yet.

    Raises:
        InputError: if a folder is not there, or has no finished run.
    """
    planned = {each.name for each in Plan.of(folder.study).runs}
    taken = Taken()
    for source in sources:
        found = list(_finished_below(source))
        if not found:
            raise InputError(f"There is no finished run in {source}: give a run's folder, or one that contains some.")
        for run in found:
            _take(folder, planned, run, taken)
    return taken


def _finished_below(source: Path) -> Iterator[Path]:
    if not source.is_dir():
        raise InputError(f"{source} is no folder: give a run's folder, or one that contains some.")
    yield from sorted(result.parent for result in source.rglob("result.json"))


def _take(folder: StudyFolder, planned: set[str], run: Path, taken: Taken) -> None:
    if (wrong := damage_of(run)) is not None:
        taken.damaged[run] = wrong
        return
    source = RunFolder.open(run)
    if source.spec.name not in planned:
        taken.not_planned += 1
        return
    target = folder.run_folder(source.spec)
    with leased(target.path, "import") as lease:
        if lease is None:
            taken.busy += 1
        elif target.is_finished:
            taken.known += 1
        else:
            _copy(source, target, taken)


def _copy(source: RunFolder, target: RunFolder, taken: Taken) -> None:
    """Copy a run's files, the result last, since it says that all is there."""
    try:
        with target.locked():
            names = [source.curve_file.name, source.metrics_file.name, source.policy_file.name, "result.json"]
            for name in names:
                write_whole(target.path / name, partial(shutil.copyfile, source.path / name))
            target.sweep()
    except RunError as error:
        if "is being trained by" not in str(error):
            raise
        taken.busy += 1
    else:
        taken.taken += 1
