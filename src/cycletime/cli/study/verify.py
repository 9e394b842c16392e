"""`cycletime study verify`: whether the finished runs of a study are whole."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg


@dataclass(frozen=True, kw_only=True)
class VerifyStudy:
    """Read every finished run, and compare it with what was written when it finished."""

    folder: Annotated[Positional[Path], arg(metavar="STUDY")]
    """The study's folder."""
    repair: bool = False
    """Move damaged files to STUDY/damaged, so that the next 'study run' runs their runs again."""

    def run(self) -> int:
        """Print what is damaged; status 1 if anything is."""
        from cycletime.studies.store.folder import StudyFolder
        from cycletime.studies.store.importing import bundle_files
        from cycletime.studies.store.verifying import fault_of_bundle, put_aside

        folder = StudyFolder.open(self.folder)
        good, damaged = len(folder.store.refresh()), 0
        for path in bundle_files(folder.store.folder):
            wrong = fault_of_bundle(path)
            if wrong is not None:
                names = folder.store.bundles[path.name].names if path.name in folder.store.bundles else []
                good, damaged = good - len(names), damaged + 1
                aside = f"; it is now {put_aside(folder, path)}" if self.repair else ""
                print(f"  {path} with {len(names) or 'unknown'} runs: {wrong}{aside}")
        print(f"{folder.study.name}: {good:,} runs good, {damaged:,} files damaged")
        return 1 if damaged else 0
