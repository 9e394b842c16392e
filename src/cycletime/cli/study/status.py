"""`cycletime study status`: how far a study is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import Annotated

from tyro.conf import Positional, arg

from cycletime.errors import printable


@dataclass(frozen=True, kw_only=True)
class StudyStatus:
    """Print how many runs of a study are done, running, failed, stopped or pending, and what went wrong."""

    folder: Annotated[Positional[Path], arg(metavar="STUDY")]
    """The study's folder."""
    runs: bool = False
    """Print the name and the state of every run; STUDY/runs/NAME is what 'watch', 'export' and 'resume' take."""
    tracebacks: bool = False
    """Print where in the code runs failed, too."""

    def run(self) -> int:
        """Print it; status 1 if some runs failed, or files are damaged."""
        from cycletime.studies.plan.plan import Plan
        from cycletime.studies.store.folder import StudyFolder, states_in_words

        folder = StudyFolder.open(self.folder)
        states = folder.states(planned.name for planned in Plan.of(folder.study).runs)
        counts = Counter(states.values())
        print(f"{folder.study.name}: {states_in_words(counts)}")
        for name, state in states.items():
            if state == "failed":
                last = folder.failures(name).last
                print(f"  {name}: {printable(str(last.get('error')))}")
                if self.tracebacks and last.get("traceback"):
                    print(indent(printable(str(last["traceback"]).rstrip()), "    "))
            elif self.runs:
                print(f"  {name}: {state}")
        damage = folder.damage()
        for told in damage:
            print(printable(f"  {told}"))
        return 1 if counts["failed"] or damage else 0
