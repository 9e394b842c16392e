"""`cycletime study`: many runs from one file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, subcommand

from cycletime.cli.study.export import ExportStudy
from cycletime.cli.study.import_ import ImportRuns
from cycletime.cli.study.pack import PackStudy
from cycletime.cli.study.plan import PlanStudy
from cycletime.cli.study.report import StudyReport
from cycletime.cli.study.retry import RetryStudy
from cycletime.cli.study.run import RunStudy
from cycletime.cli.study.status import StudyStatus
from cycletime.cli.study.verify import VerifyStudy


@dataclass(frozen=True)
class StudyCommand:
    """Run many trainings from one file, and judge them."""

    command: OmitSubcommandPrefixes[
        OmitArgPrefixes[
            Annotated[RunStudy, subcommand("run")]
            | Annotated[PlanStudy, subcommand("plan")]
            | Annotated[StudyStatus, subcommand("status")]
            | Annotated[RetryStudy, subcommand("retry")]
            | Annotated[VerifyStudy, subcommand("verify")]
            | Annotated[ExportStudy, subcommand("export")]
            | Annotated[PackStudy, subcommand("pack")]
            | Annotated[ImportRuns, subcommand("import")]
            | Annotated[StudyReport, subcommand("report")]
        ]
    ]
