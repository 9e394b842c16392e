"""Studies packed for a machine that has JAX and little else: the package's sources and the studies, in one file.

`python pack.zip OUT` runs them there (`cycletime.studies.pack_main`), one after the other. OUT, or OUT/NAME for
each of several, is a study like any other; its files in finished/ may be copied into those of the same study elsewhere.
"""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import cycletime
from cycletime.errors import InputError
from cycletime.studies import pack_main
from cycletime.studies.plan import Plan
from cycletime.studies.spec import StudySpec
from cycletime.studies.spec_file import study_table
from cycletime.training.atomic_files import write_whole
from cycletime.training.machine import code_version
from cycletime.training.run_recorder import SaveOptions
from cycletime.training.worlds import ClosedFormWorld

FORMAT = 3
_SUFFIXES = (".py", ".cu", ".cuh")
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)
"""The date of all files, so that the same study gives the same pack."""
MOST_BYTES = 64 * 2**20
KEEP_SCORES = SaveOptions(episodes=False, policies=False)


def pack_studies(
    studies: Sequence[StudySpec],
    file: Path,
    *,
    keeps: Sequence[SaveOptions] = (),
    in_folders: bool | None = None,
    packages: Path | None = None,
) -> Counter[str]:
    """Write a pack, of several studies each with a folder of its name in OUT; how many runs each engine has.

    `packages` is a folder of modules and scripts that other libraries' trainers need there.
    """
    if packages is not None and not packages.is_dir():
        raise InputError(f"{str(packages)!r} is no folder: give one with modules or scripts.")
    if packages is not None and (wheel := next(packages.rglob("*.whl"), None)):
        raise InputError(f"{str(wheel)!r} is a wheel: unpack it there with pip install --target {packages} {wheel}.")
    in_folders = len(studies) > 1 if in_folders is None else in_folders
    for name, count in Counter(study.name for study in studies if in_folders).items():
        if count > 1:
            raise InputError(f"{count} of the studies are called {name!r}: each needs a name of its own.")
        if "/" in name or name.startswith("."):
            raise InputError(f"A study is called {name!r}: packed with others, it needs a name that a folder can have.")
    for world in (world for study in studies if study.trainer is None for world in study.worlds):
        if not isinstance(world, ClosedFormWorld):
            raise InputError(f"{world.name!r} is an environment: a pack is for tasks in closed form, so leave it out.")
    for study in studies:
        study.check_worlds()
    plans = [Plan.of(study) for study in studies]
    parts = [
        {"folder": plan.study.name if in_folders else "", "study": study_table(plan.study), "keep": asdict(keep)}
        for plan, keep in zip(plans, keeps or [KEEP_SCORES] * len(plans), strict=True)
    ]
    manifest = {"format": FORMAT, "studies": parts, "code": code_version()}
    write_whole(file, lambda unfinished: _write(unfinished, manifest, packages))
    return sum((plan.engines() for plan in plans), Counter[str]())


def _write(file: Path, manifest: dict[str, Any], packages: Path | None) -> None:
    package = Path(cycletime.__file__).parent
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as pack:
        _add(pack, "__main__.py", Path(pack_main.__file__).read_bytes())
        _add(pack, pack_main.MANIFEST, json.dumps(manifest).encode())
        for path in sorted(package.rglob("*")):
            if path.suffix in _SUFFIXES:
                _add(pack, str(path.relative_to(package.parent)), path.read_bytes())
        if packages is not None:
            for path in sorted(packages.rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    _add(pack, f"{pack_main.PACKAGES}/{path.relative_to(packages).as_posix()}", path.read_bytes())
    if file.stat().st_size > MOST_BYTES:
        size, most = file.stat().st_size / 2**20, MOST_BYTES / 2**20
        raise InputError(f"The pack would have {size:,.1f} MiB: it may have {most:g} at most, so leave packages out.")


def _add(pack: zipfile.ZipFile, name: str, content: bytes) -> None:
    pack.writestr(zipfile.ZipInfo(name, _FIXED_DATE), content, zipfile.ZIP_DEFLATED)
