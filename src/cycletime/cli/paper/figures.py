"""`cycletime paper figures`: the paper's figures from results that are at hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cycletime.cli.paper.options import FromResults


@dataclass(frozen=True, kw_only=True)
class PaperFigures(FromResults):
    """Draw the figures of the paper for which there are results, each as PDF, SVG and PNG."""

    names: Annotated[Positional[tuple[str, ...]], arg(metavar="FIGURE ...", help_behavior_hint="(default: all)")]
    """The figures."""
    out: Annotated[Path, arg(metavar="FOLDER")] = Path("paper-figures")
    """Where they go."""

    def run(self) -> int:
        """Draw them; status 1 if one that was asked for has no results."""
        from cycletime.paper.figures import missing_figures, save_figures

        data = self.data()
        paths = save_figures(data, self.out, self.names)
        stems = dict.fromkeys(path.stem for path in paths)
        count = "1 figure" if len(stems) == 1 else f"{len(stems)} figures"
        print(f"{count} in {self.out}" + (f": {', '.join(stems)}" if stems else ""))
        missing = {name: needs for name, needs in missing_figures(data).items() if name in (self.names or (name,))}
        for name, needs in missing.items():
            print(f"{name}: not run ({needs})")
        return 1 if self.names and missing else 0
