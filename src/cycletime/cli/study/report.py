"""`cycletime study report`: what a study says."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

from tyro.conf import Positional, arg

from cycletime.cli.options import Count, Text
from cycletime.errors import InputError, printable

if TYPE_CHECKING:
    from cycletime.reports.report import Report
    from cycletime.reports.summary import Statistics


@dataclass(frozen=True, kw_only=True)
class StudyReport:
    """Report which cycle time is best, what rules change and save, and what the data do not decide."""

    folder: Annotated[Positional[Path], arg(metavar="STUDY")]
    """The study's folder; the study need not be complete."""
    out: Annotated[Optional[Path], arg(metavar="FOLDER", help_behavior_hint="(default: STUDY/report)")] = None  # noqa: UP045
    """Where report.html, report.md, report.json, scores.csv and the figures go."""
    measure: Annotated[str, arg(metavar="MEASURE")] = "average"
    """A run's score: its mean return over learning (average), its last tenth (last-tenth), or episodes (episodes)."""
    interval: Annotated[Text, arg(metavar="INTERVAL", help_behavior_hint="(default: se)")] = None
    """One standard error (se), Student's t with 95 % (t), or a bootstrap with 95 % (bootstrap)."""
    iqm: bool = False
    """Interquartile means instead of means, with a bootstrap's interval."""
    grid_points: Annotated[Count, arg(help_behavior_hint="(default: the study's own, or else the paper's)")] = None
    """Points of the grid that tuning each cycle time would take."""
    json: bool = False
    """Print JSON, and write no files unless --out is given."""
    markdown: bool = False
    """Print Markdown, and write no files unless --out is given."""

    def run(self) -> int:
        """Write the report's files, and print it."""
        from cycletime.reports.report import PAGE, Report
        from cycletime.studies.store.folder import StudyFolder

        if self.json and self.markdown:
            raise InputError("--json and --markdown are both given: give one of them.")
        report = Report.of(
            StudyFolder.open(self.folder),
            measure=self.measure,
            statistics=self._statistics(),
            grid_points=self.grid_points,
            command=self._command(),
        )
        out = self.out or (None if self.json or self.markdown else self.folder / "report")
        if out is not None:
            report.write(out)
        self._print(report)
        if out is not None and not (self.json or self.markdown):
            print(f"\nOpen {printable(str(out / PAGE))} in a browser; tables, text and figures are beside it.")
        return 1 if report.scores.folder.damage() else 0

    def _statistics(self) -> Statistics:
        from cycletime.reports.summary import Statistics

        return Statistics(self.interval or ("bootstrap" if self.iqm else "se"), self.iqm)

    def _command(self) -> str:
        """What makes this report again."""
        words = ["cycletime", "study", "report", str(self.folder)]
        for name, value in (("out", self.out), ("interval", self.interval), ("grid-points", self.grid_points)):
            words += [] if value is None else [f"--{name}", str(value)]
        words += [] if self.measure == "average" else ["--measure", self.measure]
        return shlex.join([*words, *(["--iqm"] if self.iqm else [])])

    def _print(self, report: Report) -> None:
        if self.json:
            from json import dumps

            from cycletime.reports.as_json import as_json

            print(dumps(as_json(report), indent=2))
        elif self.markdown:
            from cycletime.reports.markdown import as_markdown

            print(as_markdown(report), end="")
        else:
            from rich.console import Console

            from cycletime.reports.terminal import print_report

            print_report(report, Console(highlight=False))
