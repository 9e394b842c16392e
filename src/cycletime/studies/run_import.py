"""Taking finished runs that were made elsewhere into a study: verified first, and whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cycletime.cuda.kernels import KERNELS, kernel_digest
from cycletime.errors import InputError, RunError
from cycletime.studies.leases import lease_holders
from cycletime.studies.plan import Plan
from cycletime.studies.study_folder import DAMAGED_FOLDER, StudyFolder
from cycletime.training.run_folder import RunFolder
from cycletime.training.run_store import SUFFIX, Bundle, DamagedFileError

_SOURCE_KINDS = "a run's folder, or one that contains some, or a study"


@dataclass
class ImportSummary:
    imported: int = 0
    known: int = 0
    """The study has them already."""
    not_planned: int = 0
    busy: int = 0
    """A worker trains them in the study at this moment."""
    damaged: dict[Path, str] = field(default_factory=dict)
    """By file or folder, what is wrong."""


def import_runs(folder: StudyFolder, sources: Sequence[Path]) -> ImportSummary:
    """Take all finished runs that a study plans and does not have yet: of folders, and of files of other studies."""
    importer = _Importer(folder, {planned.name for planned in Plan.of(folder.study).runs})
    for source in sources:
        folders, files = _find_finished(source)
        for path in files:
            importer.import_file(path)
        importer.import_folders(folders)
    folder.store.tidy()
    return importer.summary


def open_or_create_study(path: Path, sources: Sequence[Path]) -> StudyFolder:
    """The study in a folder; where there is none, a new one of the study that a source is."""
    if not (path / "study.json").exists():
        for source in sources:
            if (source / "study.json").exists():
                for each in sources:
                    _find_finished(each)
                return StudyFolder.create(path, StudyFolder.open(source).study)
    return StudyFolder.open(path)


def _find_finished(source: Path) -> tuple[list[Path], list[Path]]:
    if not source.exists():
        raise InputError(f"{source} is not there: give {_SOURCE_KINDS}.")
    if source.is_file() and source.suffix != SUFFIX:
        raise InputError(f"{source} is not a file of finished runs, which end with {SUFFIX}: give {_SOURCE_KINDS}.")
    found = [source] if source.is_file() else sorted(source.rglob(f"*{SUFFIX}"))
    files = [path for path in found if path.is_file() and "checkpoints" not in path.parts and path.name[0] != "."]
    folders = sorted(result.parent for result in source.rglob("result.json"))
    folders, files = ([path for path in paths if DAMAGED_FOLDER not in path.parts] for paths in (folders, files))
    if not folders and not files:
        raise InputError(f"There is no finished run in {source}: give {_SOURCE_KINDS}.")
    return folders, files


@dataclass
class _Importer:
    folder: StudyFolder
    planned: set[str]
    summary: ImportSummary = field(default_factory=ImportSummary)

    def import_file(self, path: Path) -> None:
        bundle = Bundle(path)
        try:
            fault = _kernel_mismatch(bundle)
        except DamagedFileError as error:
            fault = error.reason
        if fault is not None:
            self.summary.damaged[path] = fault
            return
        new = self._new(bundle.names)
        if len(new) == len(bundle.names):
            self.folder.store.take(bundle)
        elif new:
            self.folder.store.add([run for run in bundle.runs() if run.name in new])
        self.summary.imported += len(new)

    def import_folders(self, paths: Sequence[Path]) -> None:
        runs = []
        for path in paths:
            try:
                runs.append(RunFolder.open(path).finished())
            except (InputError, RunError) as error:
                self.summary.damaged[path] = str(error).rstrip(".")
        new = self._new([run.name for run in runs])
        if new:
            self.folder.store.add([run for run in runs if run.name in new])
        self.summary.imported += len(new)

    def _new(self, names: Sequence[str]) -> set[str]:
        """Planned runs that the study lacks and nobody trains; the others are counted."""
        self.folder.store.refresh()
        running, new = lease_holders(self.folder.leases), set()
        for name in names:
            if name not in self.planned:
                self.summary.not_planned += 1
            elif name in self.folder.store:
                self.summary.known += 1
            elif name in running:
                self.summary.busy += 1
            else:
                new.add(name)
        return new


def _kernel_mismatch(bundle: Bundle) -> str | None:
    """Refuse runs of another kernel's code, which the version of results does not cover."""
    known = (None, *(kernel_digest(kernel)[:12] for kernel in KERNELS))
    for name, scored in zip(bundle.names, bundle.scored, strict=True):
        kernel = scored.result["machine"].get("kernel")
        if kernel not in known:
            return f"another kernel has computed {name}, {kernel}: import it with the version that packed it"
    return None
