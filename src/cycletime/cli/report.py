"""`cycletime report`: the page of a study, or of the paper's results; and `cycletime study report`."""

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
        from cycletime.reports.output import write_report
        from cycletime.reports.page.document import PAGE_FILE
        from cycletime.reports.report import Report
        from cycletime.studies.study_folder import StudyFolder

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
            write_report(report, out)
        self._print(report)
        if out is not None and not (self.json or self.markdown):
            print(f"\nOpen {printable(str(out / PAGE_FILE))} in a browser; tables, text and figures are beside it.")
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

            from cycletime.reports.output import report_as_json

            print(dumps(report_as_json(report), indent=2))
        elif self.markdown:
            from cycletime.reports.output import report_as_markdown

            print(report_as_markdown(report), end="")
        else:
            from rich.console import Console

            from cycletime.reports.output import print_report

            print_report(report, Console(highlight=False))


@dataclass(frozen=True, kw_only=True)
class ReportPage:
    """Write one HTML page to look at: the answer, interactive figures, tables, settings, a calculator."""

    folder: Annotated[Positional[Path], arg(metavar="FOLDER")]
    """A study, or results of the paper as 'cycletime experiment collect' keeps them."""
    out: Annotated[
        Optional[Path],  # noqa: UP045
        arg(
            metavar="FILE",
            help_behavior_hint="(default: FOLDER/report/report.html of a study, else FOLDER/report.html)",
        ),
    ] = None
    """The page; its folder is made."""

    def run(self) -> int:
        """Write it."""
        if (self.folder / "study.json").exists():
            file = self._study()
        elif self._is_of_the_paper():
            file = self._paper()
        else:
            raise InputError(f"{self.folder} {self._lacks()}")
        print(f"The page is {printable(str(file))}: open it in a browser.")
        return 0

    def _is_of_the_paper(self) -> bool:
        """Whether an experiment's name is among the files: anybody has files that end with .npz."""
        found = {file.stem for file in self.folder.glob("*.npz")}
        if not found:
            return False
        from cycletime.experiments.paper.experiments import STUDY_NAMES

        return not found.isdisjoint(STUDY_NAMES)

    def _lacks(self) -> str:
        if not self.folder.exists():
            return "is not there: give the folder of a study, as 'cycletime study run' makes one."
        if (self.folder / "spec.json").exists():
            return "is a single run: give the folder of a study; 'cycletime watch' shows a run."
        studies = sorted(each.parent.name for each in self.folder.glob("*/study.json"))
        if studies:
            return (
                f"has the studies {', '.join(studies)}: give one of their folders; results of the paper's are kept by "
                "'cycletime experiment collect paper' first."
            )
        return (
            "has no study (study.json) and no results of the paper (such as ppo-baseline.npz): give the folder of a "
            "study."
        )

    def _study(self) -> Path:
        from cycletime.reports.output import write_page
        from cycletime.reports.page.document import PAGE_FILE
        from cycletime.reports.report import Report
        from cycletime.studies.study_folder import StudyFolder

        file = self.out or self.folder / "report" / PAGE_FILE
        report = Report.of(StudyFolder.open(self.folder), command=f"cycletime report {self.folder}")
        _make_folder(file)
        write_page(report, file)
        return file

    def _paper(self) -> Path:
        from cycletime.experiments.paper.report import write_page
        from cycletime.experiments.results import read_results
        from cycletime.reports.page.document import PAGE_FILE

        file = self.out or self.folder / PAGE_FILE
        data = read_results(self.folder)
        _make_folder(file)
        write_page(data, file, self.folder)
        return file


def _make_folder(file: Path) -> None:
    from cycletime.training.atomic_files import disk_errors

    if file.is_dir():
        raise InputError(f"--out is {file}, a folder: give the name of a file, such as {file / 'report.html'}.")
    with disk_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
