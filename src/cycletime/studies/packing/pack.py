"""A study packed for a machine that has JAX and little else: the package's sources and the study, in one file.

`python pack.zip OUT` runs it there (`cycletime.studies.packing.unpacking`), and OUT is a study like any other, whose
finished runs `cycletime study import` takes.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cycletime
from cycletime.errors import InputError
from cycletime.runs.files import write_whole
from cycletime.runs.machine import code_version
from cycletime.runs.worlds import PaperTask
from cycletime.studies.packing import unpacking
from cycletime.studies.plan.plan import Plan
from cycletime.studies.spec.file import as_table
from cycletime.studies.spec.study import Study

FORMAT = 2
_SUFFIXES = (".py", ".cu", ".cuh")
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The date of all files, so that the same study gives the same pack."""


@dataclass(frozen=True)
class Packed:
    """What is in a pack."""

    runs: int
    engines: tuple[str, ...]
    """What computes them."""


def pack_study(study: Study, file: Path) -> Packed:
    """Write the pack of a study.

    Raises:
        InputError: if it has environments, which need more than such a machine has, or cannot run.
    """
    for world in study.worlds:
        if not isinstance(world, PaperTask):
            raise InputError(f"{world.name!r} is an environment: a pack is for tasks in closed form, so leave it out.")
    study.check_worlds()
    plan = Plan.of(study)
    told = {"format": FORMAT, "study": as_table(plan.study), "code": code_version()}
    write_whole(file, lambda unfinished: _write(unfinished, told))
    return Packed(len(plan.runs), tuple(sorted(plan.engines())))


def _write(file: Path, told: dict[str, Any]) -> None:
    package = Path(cycletime.__file__).parent
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as pack:
        _add(pack, "__main__.py", Path(unpacking.__file__).read_bytes())
        _add(pack, unpacking.PACK, json.dumps(told).encode())
        for path in sorted(package.rglob("*")):
            if path.suffix in _SUFFIXES:
                _add(pack, str(path.relative_to(package.parent)), path.read_bytes())


def _add(pack: zipfile.ZipFile, name: str, content: bytes) -> None:
    pack.writestr(zipfile.ZipInfo(name, _LONG_AGO), content, zipfile.ZIP_DEFLATED)
