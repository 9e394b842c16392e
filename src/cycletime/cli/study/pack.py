"""`cycletime study pack`: a study for a machine that has a GPU and little else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg


@dataclass(frozen=True, kw_only=True)
class PackStudy:
    """Pack a study's runs, and the code that they need, for a machine with a GPU, JAX, NumPy and CuPy."""

    file: Annotated[Positional[Path], arg(metavar="FILE")]
    """The study, a TOML file with device = "gpu"."""
    output: Annotated[Path, arg(metavar="PACK", aliases=["-o"])]
    """The pack, such as pack.zip."""

    def run(self) -> int:
        """Write it."""
        from cycletime.studies.packing import pack_study
        from cycletime.studies.study_file import read_study

        packed = pack_study(read_study(self.file), self.output)
        size = self.output.stat().st_size / 2**20
        print(f"{packed.runs:,} runs in {self.output}, {size:,.1f} MiB. There: python {self.output.name} OUT")
        if packed.left_out:
            print(f"  {packed.left_out:,} more are left out: the kernel cannot take them")
        return 0
