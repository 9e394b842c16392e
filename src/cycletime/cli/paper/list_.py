"""`cycletime paper list`: the paper's experiments, how large they are, and what there is of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from cycletime.cli.paper.options import FromResults, SizeOptions

if TYPE_CHECKING:
    from cycletime.paper.listing import Listed


@dataclass(frozen=True, kw_only=True)
class ListPaper(FromResults, SizeOptions):
    """List the paper's experiments: how large they are, how long they take, and whether results are at hand."""

    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Print them."""
        from cycletime.paper.listing import rows

        found = rows(self.data(), self.size)
        if self.json:
            from json import dumps

            print(dumps([asdict(row) for row in found], indent=2))
        else:
            _print(found)
        return 0


def _print(found: list[Listed]) -> None:
    from cycletime.reports.words import several
    from cycletime.runs.machine import cores

    head = ("experiment", "runs", "sim. h", "here", "H200", "engine", "results")
    table = [head, *(_words(row) for row in found)]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    for row in table:
        cells = [
            text.rjust(width) if 1 <= column <= 4 else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
    print()
    print(f"here: about, on this machine's {cores()} cores, if they are like a Xeon's at 2.8 GHz.")
    print("H200: about, on one such GPU, with the engine that is named.")
    robot = [row.name for row in found if "simulated robot" in row.where]
    print(f"{several(robot)} are on a simulated robot.")
    print("'cycletime paper run NAME' runs an experiment.")


def _words(row: Listed) -> tuple[str, ...]:
    return (
        row.name,
        f"{row.runs:,}",
        f"{row.simulated_h:,.0f}" if row.simulated_h >= 10 else f"{row.simulated_h:.2g}",
        _spelled(row.here_s),
        "" if row.h200_s is None else _spelled(row.h200_s),
        " ".join(row.engines),
        row.results,
    )


def _spelled(seconds: float) -> str:
    from cycletime.studies.running.progress import spelled

    return f"{seconds / 86400:.0f} days" if seconds >= 2 * 86400 else spelled(seconds)
