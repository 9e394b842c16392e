"""`cycletime study export`: all learning curves of a study in one table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cycletime.cli.options import Count
from cycletime.errors import printable


@dataclass(frozen=True, kw_only=True)
class ExportStudy:
    """Write all learning curves into one tidy table: task, algorithm, rule, dt, seed, env_step, seconds, return."""

    folder: Annotated[Positional[Path], arg(metavar="STUDY")]
    """The study's folder."""
    file: Annotated[Positional[Path], arg(metavar="FILE")]
    """The table; its name ends with .parquet or .csv."""
    bins: Annotated[Count, arg(help_behavior_hint="(default: a row for each episode)")] = None
    """How many equal bins of environment steps, each with its mean return."""

    def run(self) -> int:
        """Write it; status 1 if some runs are missing in it, since their files are damaged."""
        from cycletime.studies.store.exporting import export
        from cycletime.studies.store.folder import StudyFolder

        folder = StudyFolder.open(self.folder).checked()
        runs, rows = export(folder, self.file, self.bins)
        damage = folder.damage()
        for told in damage:
            print(printable(f"  {told}"))
        print(f"{folder.study.name}: {rows:,} rows of {runs:,} runs in {printable(str(self.file))}")
        return 1 if damage else 0
