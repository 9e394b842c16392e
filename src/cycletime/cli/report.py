"""`cycletime report`: the page of a study, or of the paper's results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Optional

from tyro.conf import Positional, arg

from cycletime.errors import InputError, printable


@dataclass(frozen=True, kw_only=True)
class ReportPage:
    """Write one HTML page to look at: the answer, interactive figures, tables, settings, a calculator."""

    folder: Annotated[Positional[Path], arg(metavar="FOLDER")]
    """A study, or results of the paper as 'cycletime paper collect' keeps them."""
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
        from cycletime.paper.experiments import PARTS

        return not found.isdisjoint(PARTS)

    def _lacks(self) -> str:
        if not self.folder.exists():
            return "is not there: give the folder of a study, as 'cycletime study run' makes one."
        if (self.folder / "spec.json").exists():
            return "is a single run: give the folder of a study; 'cycletime watch' shows a run."
        studies = sorted(each.parent.name for each in self.folder.glob("*/study.json"))
        if studies:
            return (
                f"has the studies {', '.join(studies)}: give one of their folders; results of the paper's are kept by "
                "'cycletime paper collect' first."
            )
        return (
            "has no study (study.json) and no results of the paper (such as ppo-baseline.npz): give the folder of a "
            "study."
        )

    def _study(self) -> Path:
        from cycletime.reports.report import PAGE, Report
        from cycletime.studies.store.folder import StudyFolder

        file = self.out or self.folder / "report" / PAGE
        report = Report.of(StudyFolder.open(self.folder), command=f"cycletime report {self.folder}")
        _make_folder(file)
        report.write_page(file)
        return file

    def _paper(self) -> Path:
        from cycletime.paper.page import write_page
        from cycletime.paper.results import read_results
        from cycletime.reports.report import PAGE

        file = self.out or self.folder / PAGE
        data = read_results(self.folder)
        _make_folder(file)
        write_page(data, file, self.folder)
        return file


def _make_folder(file: Path) -> None:
    from cycletime.runs.files import disk_errors

    if file.is_dir():
        raise InputError(f"--out is {file}, a folder: give the name of a file, such as {file / 'report.html'}.")
    with disk_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
