"""`cycletime paper list`: the paper's experiments, how large they are, and what there is of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from cycletime.cli.columns import in_columns
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
    from cycletime.studies.plan.elsewhere import CORES

    head = ("experiment", "runs", f"{CORES[0]} cores", *map(str, CORES[1:]), "H200", "results")
    times_s = [[*row.cores_s.values(), row.h200_s or 0.0] for row in found]
    in_all = _sizes(sum(row.runs for row in found), *map(sum, zip(*times_s, strict=True)))
    table = [head, *map(_words, found), ("all", *in_all, "")]
    print("\n".join(in_columns(table, right=range(1, len(head) - 1))), end="\n\n")
    print(f"{CORES[0]} cores, {', '.join(map(str, CORES[1:]))}: about, if they are like an AMD EPYC's and idle.")
    engines = " or ".join(sorted({engine for row in found for engine in row.engines}))
    print(f"H200: about, on one such GPU, with the engine {engines}.")
    robot = [row.name for row in found if "simulated robot" in row.where]
    print(f"{several(robot)} are on a simulated robot.")
    print("'cycletime paper run NAME' runs an experiment.")


def _words(row: Listed) -> tuple[str, ...]:
    return (row.name, *_sizes(row.runs, *row.cores_s.values(), row.h200_s), row.results)


def _sizes(runs: int, *times_s: float | None) -> tuple[str, ...]:
    return (f"{runs:,}", *("" if each is None else _spelled(each) for each in times_s))


def _spelled(seconds: float) -> str:
    from cycletime.studies.running.progress import spelled

    return f"{seconds / 86400:.0f} days" if seconds >= 2 * 86400 else spelled(seconds)
