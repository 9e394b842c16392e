"""`cycletime study retry`: let failed runs be tried again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cycletime.cli.options import Text
from cycletime.errors import InputError


@dataclass(frozen=True, kw_only=True)
class RetryStudy:
    """Forget what went wrong, so that the next 'study run' tries again; what is done stays."""

    folder: Annotated[Positional[Path], arg(metavar="STUDY")]
    """The study's folder."""
    only: Annotated[Text, arg(name="run", metavar="NAME", help_behavior_hint="(default: all that failed)")] = None
    """One run."""

    def run(self) -> int:
        """Forget it."""
        from cycletime.studies.folder import StudyFolder, failures_of, forget_failures

        folder = StudyFolder.open(self.folder)
        if self.only is not None and not (folder.runs / self.only / "spec.json").is_file():
            raise InputError(
                f"{self.only!r} is no run of {self.folder}: 'cycletime study status' names those that failed."
            )
        runs = [folder.runs / self.only] if self.only is not None else sorted(folder.runs.glob("*/"))
        failed = [run for run in runs if failures_of(run) and not (run / "result.json").exists()]
        for run in failed:
            forget_failures(run)
        print(f"{folder.study.name}: {len(failed):,} run{'' if len(failed) == 1 else 's'} to be tried again")
        return 0
