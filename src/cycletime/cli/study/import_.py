"""`cycletime study import`: take finished runs that were made elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cycletime.cli.options import NONE, Parts
from cycletime.errors import InputError, printable


@dataclass(frozen=True, kw_only=True)
class ImportRuns:
    """Add finished runs to a study that plans them, after verifying them."""

    folder: Annotated[Positional[Path], arg(metavar="STUDY")]
    """The study's folder; a new one where another study is given, such as one that a pack has computed."""
    sources: Annotated[Positional[Parts], arg(metavar="FROM ...")] = NONE
    """Folders of runs, or folders that contain some, such as other studies; or files of finished runs."""

    def run(self) -> int:
        """Copy them; status 1 if some are damaged."""
        from cycletime.studies.store.importing import study_folder_for, take_runs

        if not self.sources:
            raise InputError("There is nothing to import: give folders of runs, or folders that contain some.")
        sources = [Path(source) for source in self.sources]
        folder = study_folder_for(self.folder, sources)
        taken = take_runs(folder, sources)
        for run, wrong in taken.damaged.items():
            print(printable(f"  {run}: {wrong}"))
        print(
            f"{folder.study.name}: {taken.taken:,} taken, {taken.known:,} known already, {taken.not_planned:,} not "
            f"planned, {taken.busy:,} being trained, {len(taken.damaged):,} damaged"
        )
        return 1 if taken.damaged else 0
