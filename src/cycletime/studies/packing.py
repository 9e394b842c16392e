"""A study packed for a machine that has a GPU and little else: the package's sources and the runs, in one file.

`python pack.zip OUT` runs it there (`cycletime.engines.cuda.travel`), and what OUT gets is taken into the study by
`cycletime.studies.compact_runs`.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cycletime
from cycletime.engines.cuda import unpacking
from cycletime.engines.cuda.travel import PACK
from cycletime.errors import InputError
from cycletime.runs.files import write_whole
from cycletime.runs.machine import code_version
from cycletime.runs.spec import RESULT_VERSION
from cycletime.studies.kernel_code import kernel_digest, release
from cycletime.studies.plan import Plan
from cycletime.studies.spec import Study
from cycletime.studies.study_file import as_table

FORMAT = 1
_SUFFIXES = (".py", ".cu", ".cuh")
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The date of all files, so that the same study gives the same pack."""


@dataclass(frozen=True)
class Packed:
    """What is in a pack."""

    runs: int
    left_out: int
    """Runs of the study that the kernel cannot take."""


def pack_study(study: Study, file: Path) -> Packed:
    """Write the pack of all runs of a study that the kernel takes.

    Raises:
        InputError: if there are none.
    """
    study = _on_kernel(study)
    plan = Plan.of(study)
    cells: dict[int, list[int]] = {}
    for planned in plan.runs:
        if plan.cells[planned.cell].engine.name == "cuda":
            cells.setdefault(planned.cell, []).append(planned.seed)
    runs = sum(map(len, cells.values()))
    if not runs:
        raise InputError(
            f"The kernel takes none of the {len(plan.runs):,} runs of {study.name}: there is nothing to pack."
        )
    told = {
        "format": FORMAT,
        "study": as_table(study),
        "result_version": RESULT_VERSION,
        "release": release(),
        "kernel": kernel_digest(),
        "code": code_version(),
        "left_out": len(plan.runs) - runs,
        "cells": [_cell(plan, index, seeds) for index, seeds in cells.items()],
    }
    write_whole(file, lambda unfinished: _write(unfinished, told))
    return Packed(runs, len(plan.runs) - runs)


def _on_kernel(study: Study) -> Study:
    """The study as a machine with a GPU would plan it."""
    if study.device != "gpu":
        raise InputError(f'device is {study.device!r} in {study.name}: a pack is for a GPU, so set device = "gpu".')
    return study if study.engine == "cuda" else replace(study, engine="auto")


def _cell(plan: Plan, index: int, seeds: list[int]) -> dict[str, Any]:
    spec = plan.cells[index].run(seeds[0])
    return {"spec": spec.as_json(), "identity": spec.identity, "seeds": seeds}


def _write(file: Path, told: dict[str, Any]) -> None:
    package = Path(cycletime.__file__).parent
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as pack:
        _add(pack, "__main__.py", Path(unpacking.__file__).read_bytes())
        _add(pack, PACK, json.dumps(told).encode())
        for path in sorted(package.rglob("*")):
            if path.suffix in _SUFFIXES:
                _add(pack, str(path.relative_to(package.parent)), path.read_bytes())


def _add(pack: zipfile.ZipFile, name: str, content: bytes) -> None:
    pack.writestr(zipfile.ZipInfo(name, _LONG_AGO), content, zipfile.ZIP_DEFLATED)
