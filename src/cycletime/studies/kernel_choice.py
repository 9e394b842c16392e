"""Whether a study on a GPU uses the kernel: where it was asked for, or where there is a card that can.

Which engine computes a run is part of its identity. So it is chosen once, when a study begins, and kept in its folder.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from cycletime.errors import InputError, NoGpuError
from cycletime.studies.folder import StudyFolder
from cycletime.studies.plan import Plan
from cycletime.studies.spec import Study


def with_engine(
    study: Study, *, given: bool, folder: Path | None, note: Callable[[str], object], elsewhere: bool = False
) -> Study:
    """A study whose engine is known: that of its folder, or chosen by what there is.

    Args:
        study: The study.
        given: Whether it says which engine it wants.
        folder: Where it is kept, if anywhere.
        note: Told why the kernel is not used, where nobody insisted.
        elsewhere: Whether other machines compute, so that a study that says which engine it wants is believed.

    Raises:
        InputError: if the kernel was asked for, and there is no GPU that can run it.
    """
    if study.device == "cpu":
        if study.engine == "cuda":
            raise InputError("engine is 'cuda' and device is 'cpu': the kernel needs device = \"gpu\".")
        return replace(study, engine="compiled")
    if not given:
        if folder is not None and (folder / "study.json").exists():
            before = StudyFolder.open(folder).study
            if before.device == study.device:
                return replace(study, engine=before.engine)
        study = replace(study, engine="auto")
    if study.engine == "compiled" or (study.engine == "auto" and not _kernel_runs(study)):
        return replace(study, engine="compiled")
    if given and elsewhere:
        return study
    found = card()
    if isinstance(found, NoGpuError):
        if study.engine == "cuda":
            raise found
        note(f"note: {found} The compiled engine trains all runs.")
        return replace(study, engine="compiled")
    return study


def card() -> tuple[str, int] | NoGpuError:
    """The name of the GPU that is here and the runs that it trains at a time, or why there is none to be used.

    A process of its own looks, so that this one takes none of the card's memory.
    """
    program = [sys.executable, "-m", "cycletime.engines.cuda.device"]
    ran = subprocess.run(program, capture_output=True, text=True, check=False)
    if ran.returncode:
        last = (ran.stderr.strip() or "nothing was said").splitlines()[-1].rstrip(".")
        return NoGpuError(f"CUDA does not answer: {last}.")
    told = json.loads(ran.stdout.splitlines()[-1])
    return NoGpuError(told) if isinstance(told, str) else (told[0], told[1])


def told_engines(plan: Plan) -> dict[str, int]:
    """By engine, the runs that it takes."""
    return dict(Counter(plan.cells[planned.cell].engine.name for planned in plan.runs))


def _kernel_runs(study: Study) -> int:
    return sum(cell.engine.name == "cuda" for cell in study.cells())
