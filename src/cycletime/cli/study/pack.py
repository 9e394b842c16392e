"""`cycletime study pack`: a study for a machine that has a GPU and little else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cycletime.errors import InputError, printable


@dataclass(frozen=True, kw_only=True)
class PackStudy:
    """Pack a study, and the code that it needs, for a machine that has JAX and NumPy, and for the engine cuda CuPy."""

    file: Annotated[Positional[Path], arg(metavar="FILE")]
    """The study, a TOML file."""
    output: Annotated[Path, arg(metavar="PACK", aliases=["-o"])]
    """The pack, such as pack.zip."""

    def run(self) -> int:
        """Write it."""
        if self.output.is_dir() or not self.output.parent.is_dir():
            what = "is a folder" if self.output.is_dir() else "is in a folder that is not there"
            raise InputError(f"{str(self.output)!r} {what}: give the name of a file, such as pack.zip.")
        from cycletime.studies.packing.pack import pack_study
        from cycletime.studies.spec.file import read_study

        packed = pack_study(read_study(self.file), self.output)
        size = self.output.stat().st_size / 2**20
        engines = " and ".join(packed.engines)
        print(f"{packed.runs:,} runs of the engine {engines} in {printable(str(self.output))}, {size:,.1f} MiB.")
        print(f"There: python {printable(self.output.name)} OUT")
        return 0
