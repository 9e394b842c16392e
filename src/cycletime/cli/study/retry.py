"""`cycletime study retry`: let failed runs be tried again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cycletime.cli.options import Text
from cycletime.errors import InputError, printable


@dataclass(frozen=True, kw_only=True)
class RetryStudy:
    """Forget what went wrong, so that the next 'study run' tries again; what is done stays."""

    folder: Annotated[Positional[Path], arg(metavar="STUDY")]
    """The study's folder."""
    only: Annotated[Text, arg(name="run", metavar="NAME", help_behavior_hint="(default: all that failed)")] = None
    """One run."""

    def run(self) -> int:
        """Forget it."""
        from cycletime.studies.store.folder import StudyFolder
        from cycletime.studies.store.verifying import damaged_runs, put_aside

        folder = StudyFolder.open(self.folder)
        if self.only is not None and not (folder.runs / self.only).is_dir():
            raise InputError(f"{self.only!r} has not failed in {self.folder}: 'cycletime study status' names those.")
        runs = [self.only] if self.only is not None else [path.name for path in folder.runs.iterdir()]
        failed = [name for name in runs if folder.failures(name).are_noted and name not in folder.store]
        for name in failed:
            folder.failures(name).forget()
        for path, wrong in damaged_runs(folder, failed):
            print(printable(f"  {wrong}; it begins anew, and what there was is now {put_aside(folder, path)}"))
        print(f"{folder.study.name}: {len(failed):,} run{'' if len(failed) == 1 else 's'} to be tried again")
        return 0
