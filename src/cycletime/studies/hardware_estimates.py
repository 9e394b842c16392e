"""Whether a study can start on this machine, and how long it takes there, from a short trial of each kind of run.

    wall time = (programs x compilation + agent steps x cost of one + runs x bookkeeping) / workers + start-up

or that of the longest run. Agent steps of runs that are trained together count once. The trial compiles its own program
even if that is in the cache, since the cache says nothing of the others.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from subprocess import CompletedProcess
from typing import TypeAlias

from cycletime.errors import InputError, RunError
from cycletime.processes import owning_children
from cycletime.studies.plan import Plan, PlannedRun, agent_steps_per_run
from cycletime.studies.spec import Cell
from cycletime.studies.worker import worker_environment
from cycletime.trainers.host import WRONG_INPUT_STATUS
from cycletime.training.engine import Cost, engine_for
from cycletime.training.machine import prepare_jax
from cycletime.training.spec import EngineSpec, RunSpec

RUN_OVERHEAD_S = 0.007
"""Bookkeeping of one run, as measured by `benchmarks/studies.py`."""

CostKey: TypeAlias = tuple[str, str, str]
Costs: TypeAlias = Mapping[CostKey, Cost]


@dataclass(frozen=True)
class WallTimeEstimate:
    wall_s: float
    computing_s: float
    programs_s: float


def cost_key(cell: Cell) -> CostKey:
    return cell.world.name, cell.spec.algorithm, cell.spec.engine.name


def estimate_wall_time(
    plan: Plan, runs: Sequence[PlannedRun], costs: Costs, start_s: float, workers: int
) -> WallTimeEstimate:
    computing_s, programs_s, longest_s = 0.0, 0.0, 0.0
    for group in plan.groups(runs).values():
        cells = Counter(planned.cell for planned in group)
        first = plan.cells[group[0].cell]
        cost = costs.get(cost_key(first), Cost(0, 0))
        times = ceil(len(group) / max(cost.runs_at_once, first.spec.engine.width))
        steps_s = {
            cell: agent_steps_per_run(plan.cells[cell]) * costs.get(cost_key(plan.cells[cell]), cost).agent_step_s
            for cell in cells
        }
        mean_s = sum(count * steps_s[cell] for cell, count in cells.items()) / len(group)
        computing_s += times * mean_s + len(group) * RUN_OVERHEAD_S
        programs_s += cost.program_s
        longest_s = max(longest_s, cost.program_s + max(steps_s.values()) + RUN_OVERHEAD_S)
    busy = plan.workers_needed(runs, workers)
    wall_s = max((computing_s + programs_s) / busy, longest_s) + start_s if busy else 0.0
    return WallTimeEstimate(wall_s, computing_s, programs_s)


def measure_costs(plan: Plan, runs: Iterable[PlannedRun]) -> tuple[Costs, float]:
    """Try a middle run of each kind in a process like a worker's; the costs, and how long it took to start."""
    cells = sorted({planned.cell for planned in runs})
    by_kind: dict[CostKey, list[int]] = {}
    for index in cells:
        by_kind.setdefault(cost_key(plan.cells[index]), []).append(index)
    middle = [of_kind[round((len(of_kind) - 1) / 2)] for of_kind in by_kind.values()]
    specs = [plan.cells[index].run(plan.study.seeds[0]) for index in middle]
    began = time.time()
    ran = _try_runs("cost", plan.study.device, plan.jax_device, specs)
    if ran.returncode:
        raise RunError(f"The try failed: {(ran.stderr.strip() or 'nothing was said').splitlines()[-1].rstrip('.')}.")
    answer = json.loads(ran.stdout)
    costs = {kind: Cost(**cost) for kind, cost in zip(by_kind, answer["answers"], strict=True)}
    return costs, max(0.0, answer["began"] - began)


def check_start(cells: Iterable[Cell], out: Path, executor: str) -> None:
    """Refuse a new study whose environment, trainer or GPU is missing, where it is this machine that computes it."""
    specs = {(*cost_key(cell), cell.dt): cell.spec for cell in cells if cell.spec.engine != EngineSpec()}
    if specs and executor == "local" and not any(out.glob("*")):
        device = max((engine_for(spec).jax_device(spec) for spec in specs.values()), key=["cpu", "gpu"].index)
        _try_runs("check", next(iter(specs.values())).engine.device, device, specs.values())


def _try_runs(what: str, device: str, jax_device: str, specs: Iterable[RunSpec]) -> CompletedProcess[str]:
    """Have another process, like a worker's, ask engines for each run's `cost` or `check`; a refusal is raised here."""
    ran = subprocess.run(
        [sys.executable, "-m", "cycletime.studies.hardware_estimates"],
        input=json.dumps({"what": what, "device": jax_device, "specs": [spec.as_json() for spec in specs]}),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **worker_environment(device), "JAX_ENABLE_COMPILATION_CACHE": "false"},
    )
    if ran.returncode == WRONG_INPUT_STATUS:
        raise InputError(ran.stderr.strip().splitlines()[-1])
    return ran


if __name__ == "__main__":
    try:
        with owning_children():
            begun, asked = time.time(), json.load(sys.stdin)
            prepare_jax(asked["device"])
            tried = [RunSpec.from_json(each) for each in asked["specs"]]
            answers = [getattr(engine_for(spec), asked["what"])(spec) for spec in tried]
            print(json.dumps({"began": begun, "answers": [each and asdict(each) for each in answers]}))
    except (InputError, RunError) as error:
        print(error, file=sys.stderr)  # the sentence alone
        sys.exit(WRONG_INPUT_STATUS if isinstance(error, InputError) else 1)
