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
    """Move damaged runs to STUDY/damaged, so that the next 'study run' runs them again."""

    def run(self) -> int:
        """Print what is damaged; status 1 if anything is."""
        from cycletime.studies.folder import StudyFolder
        from cycletime.studies.verify import damage_of, finished_runs, put_aside

        folder = StudyFolder.open(self.folder)
        good = damaged = 0
        for run in finished_runs(folder):
            wrong = damage_of(run)
            if wrong is None:
                good += 1
                continue
            damaged += 1
            print(f"  {run.name}: {wrong}{f'; it is now {put_aside(folder, run)}' if self.repair else ''}")
        print(f"{folder.study.name}: {good:,} good, {damaged:,} damaged")
        return 1 if damaged else 0
