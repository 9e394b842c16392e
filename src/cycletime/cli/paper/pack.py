"""`cycletime paper pack`: the paper's experiments for a machine that has a GPU and little else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg

from cycletime.cli.paper.options import Chosen


@dataclass(frozen=True, kw_only=True)
class PackPaper(Chosen):
    """Pack what is not done yet of experiments, for a machine that has JAX and NumPy, and for the engine cuda CuPy."""

    output: Annotated[Path, arg(metavar="PACK", aliases=["-o"])]
    """The pack, such as pack.zip."""
    device: Literal["cpu", "gpu"] = "gpu"
    """Where they are computed."""

    def run(self) -> int:
        """Write it."""
        from cycletime.cli.study.pack import print_packed
        from cycletime.errors import InputError
        from cycletime.paper.running import parts_left
        from cycletime.studies.packing.pack import pack_studies

        workspace = self.workspace(self.device)
        ready, later = parts_left(self.experiments, workspace)
        for part, sweep in later.items():
            print(
                f"{part} is not in it: it needs all runs of {sweep}, so bring them to {workspace.out} and pack again."
            )
        if not ready:
            raise InputError(f"There is nothing to pack: all that can be run is done in {workspace.out}.")
        keeps = [experiment.keep for experiment in ready.values()]
        studies = [workspace.study(part) for part in ready]
        print_packed(pack_studies(studies, self.output, keeps=keeps, in_folders=True), self.output)
        print(f"Then bring OUT back as {workspace.out}, and: cycletime paper collect {workspace.out}")
        return 0
