"""`cycletime study pack`: studies for a machine that has a GPU and little else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from cycletime.errors import InputError, printable

if TYPE_CHECKING:
    from cycletime.studies.packing.pack import Packed


@dataclass(frozen=True, kw_only=True)
class PackStudy:
    """Pack studies, and the code that they need, for a machine that has JAX and NumPy, and for the engine cuda CuPy."""

    files: Annotated[Positional[tuple[Path, ...]], arg(metavar="FILE ...", help_behavior_hint="(required)")]
    """The study, a TOML file; or several, which run one after the other, each in a folder of OUT."""
    output: Annotated[Path, arg(metavar="PACK", aliases=["-o"])]
    """The pack, such as pack.zip."""

    def run(self) -> int:
        """Write it."""
        if self.output.is_dir() or not self.output.parent.is_dir():
            what = "is a folder" if self.output.is_dir() else "is in a folder that is not there"
            raise InputError(f"{str(self.output)!r} {what}: give the name of a file, such as pack.zip.")
        from cycletime.studies.packing.pack import pack_studies
        from cycletime.studies.spec.file import read_study

        if not self.files:
            raise InputError("There is nothing to pack: give the file of a study.")
        print_packed(pack_studies([read_study(file) for file in self.files], self.output), self.output)
        return 0


def print_packed(packed: Packed, file: Path) -> None:
    """Tell what is in a pack, and what to do with it."""
    size = file.stat().st_size / 2**20
    engines = " and ".join(packed.engines)
    print(f"{packed.runs:,} runs of the engine {engines} in {printable(str(file))}, {size:,.1f} MiB.")
    print(f"There: python {printable(file.name)} OUT")
