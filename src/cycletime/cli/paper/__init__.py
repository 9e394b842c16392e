"""`cycletime paper`: the paper's experiments, and what came of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, subcommand

from cycletime.cli.paper.claims import PaperClaims
from cycletime.cli.paper.collect import CollectPaper
from cycletime.cli.paper.figures import PaperFigures
from cycletime.cli.paper.list_ import ListPaper
from cycletime.cli.paper.pack import PackPaper
from cycletime.cli.paper.report import PaperReport
from cycletime.cli.paper.run import RunPaper
from cycletime.cli.paper.table import PaperTable


@dataclass(frozen=True)
class PaperCommand:
    """Run the paper's experiments, and see what came of them."""

    command: OmitSubcommandPrefixes[
        OmitArgPrefixes[
            Annotated[ListPaper, subcommand("list")]
            | Annotated[RunPaper, subcommand("run")]
            | Annotated[PackPaper, subcommand("pack")]
            | Annotated[CollectPaper, subcommand("collect")]
            | Annotated[PaperClaims, subcommand("claims")]
            | Annotated[PaperTable, subcommand("table")]
            | Annotated[PaperFigures, subcommand("figures")]
            | Annotated[PaperReport, subcommand("report")]
        ]
    ]
