"""`cycletime paper table`: what was tuned, with the paper's values beside ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from cycletime.cli.paper.options import FromResults


@dataclass(frozen=True, kw_only=True)
class PaperTable(FromResults):
    """Print a table of tuned values, the paper's beside ours."""

    name: Annotated[Positional[str], arg(metavar="TABLE")]
    """ppo-tuned or sac-tuned."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Print it."""
        from cycletime.paper.page import table_of

        table = table_of(self.data(), self.name)
        if self.json:
            from json import dumps

            print(dumps(table.as_json(), indent=2, allow_nan=False))
        else:
            print(table.as_markdown().rstrip())
        return 0
