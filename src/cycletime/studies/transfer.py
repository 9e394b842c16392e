"""Taking finished runs that were made elsewhere into a study: verified first, and whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from cycletime.errors import InputError, MachineError, RunError
from cycletime.runs.files import write_whole
from cycletime.runs.folder import RunFolder
from cycletime.runs.lock import HeldError
from cycletime.studies.compact_runs import checked_runs, compact_files, fill
from cycletime.studies.folder import StudyFolder
from cycletime.studies.lease import leased
from cycletime.studies.plan import Plan
from cycletime.studies.verify import ASIDE, damage_of

_SOURCES = "a run's folder or one that contains some, or compact files"


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
    """Take all finished runs that a study plans and does not have yet: of folders, and of compact files.

    Raises:
        InputError: if a source is not there, or has no finished run.
    """
    plan = Plan.of(folder.study)
    planned, taken = {each.name for each in plan.runs}, Taken()
    for source in sources:
        if not source.exists():
            raise InputError(f"{source} is not there: give {_SOURCES}.")
        found, files = list(_finished_below(source)), compact_files(source)
        if not found and not files:
            raise InputError(f"There is no finished run in {source}: give {_SOURCES}.")
        for run in found:
            _take(folder, planned, run, taken)
        for file in files:
            _take_compact(folder, plan, file, taken)
    return taken


def _finished_below(source: Path) -> Iterator[Path]:
    """The folders of finished runs, but for those that a study has put aside."""
    found = sorted(result.parent for result in source.rglob("result.json"))
    yield from (run for run in found if not (run.parent.name == ASIDE and (run.parent.parent / "study.json").exists()))


def _take(folder: StudyFolder, planned: set[str], run: Path, taken: Taken) -> None:
    try:
        source = RunFolder.open(run)
    except InputError as error:
        taken.damaged[run] = str(error).rstrip(".")
        return
    if source.spec.name not in planned:
        taken.not_planned += 1
        return
    if folder.state_of(source.spec.name) == "done":
        taken.known += 1
        return
    if (wrong := damage_of(run)) is not None:
        taken.damaged[run] = wrong
        return
    _put(folder.run_folder(source.spec), partial(_copy, source), taken)


def _take_compact(folder: StudyFolder, plan: Plan, file: Path, taken: Taken) -> None:
    """Take the runs of a compact file; one that cannot be trusted as a whole gives none."""
    planned = {each.name.rpartition("-")[2]: each for each in plan.runs}
    try:
        runs = list(checked_runs(file))
    except RunError as error:
        taken.damaged[file] = str(error).rstrip(".")
        return
    for kept, machine in runs:
        found = planned.get(kept.identity[:10])
        spec = None if found is None else plan.spec(found)
        if spec is None or spec.identity != kept.identity:
            taken.not_planned += 1
        elif folder.state_of(spec.name) == "done":
            taken.known += 1
        else:
            try:
                _put(folder.run_folder(spec), partial(fill, kept=kept, machine=machine), taken)
            except MachineError:
                raise
            except RunError as error:
                taken.damaged[file] = str(error).rstrip(".")


def _put(target: RunFolder, write: Callable[[RunFolder], object], taken: Taken) -> None:
    """Have a run's files written, unless somebody trains it."""
    with leased(target.path, "import") as lease:
        if lease is None:
            taken.busy += 1
        elif target.is_finished:
            taken.known += 1
        else:
            try:
                with target.locked(needed=False):
                    write(target)
                    target.sweep()
            except HeldError:
                taken.busy += 1
            else:
                taken.taken += 1


def _copy(source: RunFolder, target: RunFolder) -> None:
    """Copy a run's files, the result last, since it says that all is there."""
    policy = [source.policy_file.name] if source.policy_file.exists() else []
    for name in (source.curve_file.name, source.metrics_file.name, *policy, "result.json"):
        write_whole(target.path / name, partial(shutil.copyfile, source.path / name))
