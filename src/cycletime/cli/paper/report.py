"""`cycletime paper report`: all figures, tables and verdicts from results that are at hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from cycletime.cli.paper.options import FromResults


@dataclass(frozen=True, kw_only=True)
class PaperReport(FromResults):
    """Make all figures, tables and verdicts again, without training and without a GPU."""

    out: Annotated[Path, arg(metavar="FOLDER")] = Path("paper-report")
    """Where report.html, figures/, tables/, claims.json and index.md go."""

    def run(self) -> int:
        """Write them."""
        from cycletime.paper.page import write_report

        data = self.data()
        write_report(data, self.out, self.results_folder)
        count = len(data.outcomes)
        studies = "1 study" if count == 1 else f"{count} studies"
        print(f"Figures, tables and verdicts from {studies} are in {self.out}: open report.html in a browser")
        return 0
