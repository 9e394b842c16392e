"""`cycletime report`: what a study, a run, or the results of an investigation say."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

from tyro.conf import Positional, arg

from cycletime.cli.options import Text
from cycletime.cli.output import result_line
from cycletime.errors import InputError, printable

if TYPE_CHECKING:
    from cycletime.reports.report import Report

_STUDY_ONLY = ("measure", "interval", "iqm", "json", "markdown")


@dataclass(frozen=True, kw_only=True)
class ReportCommand:
    """Report what a folder says: a study, a run, or results of the paper.

    Of a study: which cycle time is best, what rules change, and what the data do not decide. With the text
    come tables, figures, and one HTML page to look at.
    """

    folder: Annotated[Positional[Path], arg(metavar="FOLDER")]
    """A study, which need not be complete; a run; or results as 'cycletime experiment collect' keeps them."""
    out: Annotated[Optional[Path], arg(metavar="PATH", help_behavior_hint="(default: FOLDER/report)")] = None  # noqa: UP045
    """The folder for all files; or a name that ends with .html, for the page alone."""
    measure: Annotated[str, arg(metavar="MEASURE")] = "average"
    """A run's score: its mean return over learning (average), its last tenth (last-tenth), or episodes (episodes)."""
    interval: Annotated[Text, arg(metavar="INTERVAL", help_behavior_hint="(default: se)")] = None
    """One standard error (se), Student's t with 95 % (t), or a bootstrap with 95 % (bootstrap)."""
    iqm: bool = False
    """Interquartile means instead of means, with a bootstrap's interval."""
    json: bool = False
    """Print JSON, and write no files unless --out is given."""
    markdown: bool = False
    """Print Markdown, and write no files unless --out is given."""

    def run(self) -> int:
        if self.out is not None and self._page is None and guess_type(self.out.name)[0] and not self.out.is_dir():
            page = "a name that ends with .html for the page alone"
            raise InputError(f"--out is {self.out}: give a folder for all files, such as {self.out.stem}, or {page}.")
        if (self.folder / "study.json").exists() or not self.folder.is_dir():
            return self._report_study()  # which says what is wrong where there is no folder
        if (self.folder / "spec.json").exists():
            self._refuse_study_options("a run")
            return self._report_run()
        from cycletime.experiments.paper.experiments import STUDY_NAMES

        if not {file.stem for file in self.folder.glob("*.npz")}.isdisjoint(STUDY_NAMES):  # others have .npz, too
            self._refuse_study_options("results of the paper")
            return self._report_paper()
        if studies := sorted(each.parent.name for each in self.folder.glob("*/study.json")):
            raise InputError(
                f"{self.folder} has the studies {', '.join(studies)}: give one of their folders; results of the "
                "paper's are kept by 'cycletime experiment collect paper' first."
            )
        known = "study (study.json), no run (spec.json) and no results of the paper (such as ppo-baseline.npz)"
        raise InputError(f"{self.folder} has no {known}: give the folder of a study.")

    @property
    def _page(self) -> Path | None:
        """The file for the page alone, if that is what is asked for."""
        return self.out if self.out is not None and self.out.suffix == ".html" else None

    def _refuse_study_options(self, what: str) -> None:
        for name in _STUDY_ONLY:
            if getattr(self, name) != getattr(ReportCommand, name):  # its default
                raise InputError(
                    f"--{name.replace('_', '-')} is for studies, and {self.folder} is {what}: leave it out."
                )

    def _report_study(self) -> int:
        from cycletime.reports.output import write_report
        from cycletime.reports.page.document import PAGE_FILE, render, write_text
        from cycletime.reports.page.study_page import study_page
        from cycletime.reports.report import Report
        from cycletime.reports.summary import Statistics

        if self.json and self.markdown:
            raise InputError("--json and --markdown are both given: give one of them.")
        report = Report.of(
            self.folder,
            measure=self.measure,
            statistics=Statistics(self.interval or ("bootstrap" if self.iqm else "se"), self.iqm),
            command=self._command(),
        )
        is_text = not (self.json or self.markdown)
        if self._page is not None:
            _make_folder(self._page)
            write_text(self._page, render(study_page(report)))
            end = f"The page is {printable(str(self._page))}: open it in a browser."
        else:
            out = self.out or self.folder / "report"
            if self.out is not None or is_text:
                write_report(report, out)
            self._print(report)
            end = f"\nOpen {printable(str(out / PAGE_FILE))} in a browser; tables, text and figures are beside it."
        if is_text:
            print(end)
        return 1 if report.scores.folder.damage() else 0

    def _command(self) -> str:
        words = ["cycletime", "report", str(self.folder)]
        for name, value in (("out", self.out), ("interval", self.interval)):
            words += [] if value is None else [f"--{name}", str(value)]
        words += [] if self.measure == "average" else ["--measure", self.measure]
        return shlex.join([*words, *(["--iqm"] if self.iqm else [])])

    def _print(self, report: Report) -> None:
        from cycletime.reports.output import print_report, report_as_json, report_as_markdown

        if self.json:
            print(json.dumps(report_as_json(report), indent=2))
        elif self.markdown:
            print(report_as_markdown(report), end="")
        else:
            from rich.console import Console

            print_report(report, Console(highlight=False))

    def _report_run(self) -> int:
        from cycletime.reports.run_figure import read_run_curves, save_runs_figure
        from cycletime.training.run_folder import RunFolder

        if self._page is not None:
            raise InputError(f"--out is {self._page}: a run has no page, so give a folder.")
        folder = RunFolder.open(self.folder)
        print(printable(folder.spec.label))
        print(result_line(folder.result(), folder.path) if folder.is_finished else "not finished")
        figure = (self.out or self.folder / "report") / "learning-curve.png"
        _make_folder(figure)
        save_runs_figure(figure, [read_run_curves(self.folder)], [])
        print(f"wrote {printable(str(figure))} ({figure.stat().st_size:,} bytes)")
        return 0

    def _report_paper(self) -> int:
        from cycletime.experiments.paper.data import read_paper_results
        from cycletime.experiments.paper.report import judge_all, paper_page, write_report
        from cycletime.reports.page.document import render, write_text

        data = read_paper_results(self.folder)
        if self._page is not None:
            _make_folder(self._page)
            write_text(self._page, render(paper_page(data, judge_all(data))))
            print(f"The page is {printable(str(self._page))}: open it in a browser.")
            return 0
        out = self.out or self.folder / "report"
        write_report(data, out)
        print(f"Figures, tables and verdicts are in {printable(str(out))}: open report.html in a browser")
        return 0


def _make_folder(file: Path) -> None:
    from cycletime.training.atomic_files import disk_errors

    if file.is_dir():
        raise InputError(f"--out is {file}, a folder: give the name of a file, such as {file / 'report.html'}.")
    with disk_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
