"""`cycletime paper collect`: keep what came of experiments, small enough to go with the code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Optional

from tyro.conf import Positional, arg

from cycletime.cli.options import NONE, Parts
from cycletime.errors import InputError


@dataclass(frozen=True, kw_only=True)
class CollectPaper:
    """Keep the curves and scores of all finished studies, and measure what their policies do."""

    out: Annotated[Positional[Path], arg(metavar="OUT")]
    """The folder that 'cycletime paper run' filled."""
    results: Annotated[Optional[Path], arg(metavar="FOLDER", help_behavior_hint="(default: OUT/results)")] = None  # noqa: UP045
    """Where results are kept, one file for each study."""
    wall: Annotated[Parts, arg(metavar="STUDY=SECONDS ...")] = NONE
    """How long studies took, where it was not written down."""
    clips: bool = False
    """Film median runs at 4 ms, too; that takes the extra 'film'."""

    def run(self) -> int:
        """Keep them."""
        from cycletime.engines.devices import prepare_jax

        prepare_jax("cpu")
        from cycletime.paper.results import collect_results

        results = self.results or self.out / "results"
        collected = collect_results(self.out, results, _seconds(self.wall), clips=self.clips)
        for path in collected.kept:
            print(f"{path}, {path.stat().st_size / 1024:,.0f} KiB")
        for name, (done, of) in collected.unfinished.items():
            print(f"{name} is not finished and was left out: {done:,} of {of:,} runs are done")
        if collected.kept:
            print(f"To see what they say: cycletime paper report --results {results}")
        return 0


def _seconds(walls: Parts) -> dict[str, float]:
    found = {}
    for each in walls:
        name, _, value = each.partition("=")
        try:
            found[name] = float(value)
        except ValueError:
            found[name] = -1.0
        if not found[name] > 0:
            raise InputError(f"--wall is {each!r}: give it as STUDY=SECONDS, such as ppo-grid=215.")
    return found
