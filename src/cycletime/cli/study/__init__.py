"""`cycletime study`: many runs from one file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, subcommand

from cycletime.cli.study.run import RunStudy
from cycletime.cli.study.status import StudyStatus


@dataclass(frozen=True)
class StudyCommand:
    """Run many trainings from one file, and judge them."""

    command: OmitSubcommandPrefixes[
        OmitArgPrefixes[Annotated[RunStudy, subcommand("run")] | Annotated[StudyStatus, subcommand("status")]]
    ]

    def run(self) -> int:
        """Do it."""
        return self.command.run()
