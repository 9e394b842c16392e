"""How many runs a program carries on a GPU, where the study does not say: as many as there are, and as fit into it.

The width is part of a run's identity. So it is chosen once, when a study begins, and kept in the study's folder.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from cycletime.engines.compiled import CompiledEngine
from cycletime.errors import InputError
from cycletime.runs.spec import RunSpec
from cycletime.studies.folder import StudyFolder
from cycletime.studies.plan import Plan
from cycletime.studies.spec import Study
from cycletime.studies.worker import environment_for

MOST = 512
"""No program is wider: a GPU is busy by then, and all its runs would be lost together."""
SHARE = 0.8
"""Of the memory that JAX may use, the part that runs get."""


def with_width(study: Study, *, given: bool, folder: Path | None = None) -> Study:
    """A study whose width is known: given, that of its folder, or chosen by the memory of the GPU that is here.

    Raises:
        InputError: if there is no GPU here to choose it by, or not one run fits into it.
    """
    if given or study.device == "cpu":
        return study
    if folder is not None and (folder / "study.json").exists():
        before = StudyFolder.open(folder).study
        if before.device == study.device:
            return replace(study, width=before.width)
    plan = Plan.of(study)
    compiled = [group for group in plan.groups().values() if plan.spec(group[0]).engine.name == "compiled"]
    if not compiled:
        return study
    memory, lane = _measured([plan.spec(group[0]) for group in compiled])
    return replace(study, width=fitting(max(map(len, compiled)), memory, lane))


def fitting(runs: int, memory: float, lane: float) -> int:
    """The width for so many runs of one program, a lane's bytes and the bytes that there are.

    As few turns as possible, and among these turns the runs are shared evenly: 31 runs of which 20 fit have width 16.
    """
    most = min(MOST, math.floor(SHARE * memory / lane))
    if most < 1:
        raise InputError(
            f"A run takes about {lane / 2**30:,.1f} GiB on the GPU, and {memory / 2**30:,.1f} GiB are there: give the "
            "agent a smaller replay, or another device."
        )
    return math.ceil(runs / math.ceil(runs / most))


def _measured(specs: list[RunSpec]) -> tuple[float, float]:
    """The bytes that JAX may use on the GPU, and those of the largest lane, told by a process that ends thereafter."""
    by_kind: dict[tuple[str, str], RunSpec] = {}
    for spec in specs:
        kind = spec.world.name, spec.algorithm
        if kind not in by_kind or _rows(spec) > _rows(by_kind[kind]):
            by_kind[kind] = spec
    ran = subprocess.run(
        [sys.executable, "-m", "cycletime.studies.width"],
        input=json.dumps([spec.as_json() for spec in by_kind.values()]),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment_for("gpu")},
    )
    if ran.returncode:
        raise InputError(
            "width is left out, and JAX finds no GPU here to choose it by "
            f"({(ran.stderr.strip() or 'nothing was said').splitlines()[-1].rstrip('.')}): give the study a width."
        )
    memory, lane = json.loads(ran.stdout)
    return memory, lane


def _rows(spec: RunSpec) -> int:
    """The rows of the buffer, which decide between runs of one kind."""
    return CompiledEngine(spec).loop.shape.capacity


def _main() -> None:
    import jax

    from cycletime.engines.devices import prepare_jax
    from cycletime.engines.memory import lane_bytes

    specs = [RunSpec.from_json(told) for told in json.load(sys.stdin)]
    prepare_jax("gpu")
    if jax.default_backend() != "gpu":
        sys.exit("JAX computes on the CPU")
    stats = jax.devices()[0].memory_stats() or {}
    lane = max(lane_bytes(CompiledEngine(spec).loop) for spec in specs)
    print(json.dumps([stats["bytes_limit"] - stats["bytes_in_use"], lane]))


if __name__ == "__main__":
    _main()
