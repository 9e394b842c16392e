"""`cycletime study verify`: whether the finished runs of a study are whole."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cycletime.errors import printable


@dataclass(frozen=True, kw_only=True)
class VerifyStudy:
    """Read every run completely, and report what is damaged."""

    folder: Annotated[Positional[Path], arg(metavar="STUDY")]
    """The study's folder."""
    repair: bool = False
    """Move what is damaged to STUDY/damaged, so that the next 'study run' runs those runs again."""

    def run(self) -> int:
        """Print what is damaged; status 1 if anything is."""
        from cycletime.studies.store.folder import StudyFolder
        from cycletime.studies.store.verifying import damaged_runs, put_aside

        folder = StudyFolder.open(self.folder).checked()
        files, runs, disputes = folder.store.damaged, dict(damaged_runs(folder)), folder.disputes()
        good = len(folder.store.places)
        for path, wrong in {**files, **runs}.items():
            aside = f"; it is now {put_aside(folder, path)}" if self.repair else ""
            print(printable(f"  {path}: {wrong}{aside}"))
        for dispute in disputes:
            print(printable(f"  {dispute}"))
        unfinished = f", {len(runs):,} unfinished runs that cannot go on" if runs else ""
        print(f"{folder.study.name}: {good:,} runs good, {len(files):,} files damaged{unfinished}")
        return 1 if files or runs or disputes else 0
