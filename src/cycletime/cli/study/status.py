"""`cycletime study status`: how far a study is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import Annotated

from tyro.conf import Positional, arg


@dataclass(frozen=True, kw_only=True)
class StudyStatus:
    """Tell how many runs of a study are done, running, failed, stopped or pending, and what went wrong."""

    folder: Annotated[Positional[Path], arg(metavar="STUDY")]
    """The study's folder."""
    tracebacks: bool = False
    """Print where in the code runs failed, too."""

    def run(self) -> int:
        """Print it; status 1 if some runs failed."""
        from cycletime.studies.folder import StudyFolder, failures_of
        from cycletime.studies.plan import Plan

        folder = StudyFolder.open(self.folder)
        states = list(Plan.of(folder.study).states(folder))
        counts = Counter(state for _, state in states)
        print(f"{folder.study.name}: {', '.join(f'{count:,} {state}' for state, count in sorted(counts.items()))}")
        for planned, state in states:
            if state == "failed":
                for last in failures_of(folder.runs / planned.name)[-1:]:  # none if they were forgotten just now
                    print(f"  {planned.name}: {last.get('error')}")
                    if self.tracebacks and last.get("traceback"):
                        print(indent(str(last["traceback"]).rstrip(), "    "))
        return 1 if counts["failed"] else 0
