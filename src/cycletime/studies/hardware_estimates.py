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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from subprocess import CompletedProcess
from typing import TypeAlias

from cycletime.errors import InputError, RunError
from cycletime.processes import owning_children
from cycletime.studies.plan import Plan, PlannedRun, agent_steps_per_run
from cycletime.studies.spec import HANG_TIMEOUT, Cell
from cycletime.studies.watchdog import KillReason, Watchdog, run_watchdog
from cycletime.studies.worker import worker_environment
from cycletime.trainers.host import WRONG_INPUT_STATUS
from cycletime.training.engine import Cost, engine_for
from cycletime.training.external import ExternalAgent
from cycletime.training.machine import prepare_jax
from cycletime.training.spec import EngineSpec, RunSpec
from cycletime.training.worlds import GymnasiumEnv, python_path

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
        programs_s += cost.program_s * (len(group) if cost.starts_each_run else 1)
        longest_s = max(longest_s, cost.program_s + max(steps_s.values()) + RUN_OVERHEAD_S)
    busy = plan.workers_needed(runs, workers)
    wall_s = max((computing_s + programs_s) / busy, longest_s) + start_s if busy else 0.0
    return WallTimeEstimate(wall_s, computing_s, programs_s)


def measure_costs(plan: Plan, runs: Iterable[PlannedRun]) -> tuple[Costs, float]:
    """Try a middle run of each kind in a process like a worker's; the costs, and how long it took to start."""
    middle = _middle_of_each_kind(plan.cells[index] for index in sorted({planned.cell for planned in runs}))
    began = time.time()
    ran = _try_runs([("cost", spec) for spec in middle.values()])
    if ran.returncode:
        raise RunError(f"The try failed: {(ran.stderr.strip() or 'nothing was said').splitlines()[-1].rstrip('.')}.")
    answer = json.loads(ran.stdout)
    costs = {kind: Cost(**cost) for kind, cost in zip(middle, answer["answers"], strict=True)}
    return costs, max(0.0, answer["began"] - began)


def check_start(cells: Iterable[Cell], out: Path, executor: str, tell: Callable[[str], object] = str) -> None:
    """Refuse a new study that cannot start, where it is this machine that computes it.

    A run of each kind and cycle time is prepared; where another library trains, one of each kind is tried as
    `measure_costs` does, until its first point. A failure after that is left to the runs: others may succeed.
    """
    if executor != "local" or any(out.glob("*")):
        return
    left = [cell for cell in cells if cell.spec.engine != EngineSpec()]
    foreign = _middle_of_each_kind(cell for cell in left if isinstance(cell.agent, ExternalAgent))
    for world, algorithm, _ in foreign:
        tell(f"Trying a run of {world} {algorithm} ...")
    tries = [("check", spec) for spec in {(*cost_key(cell), cell.dt): cell.spec for cell in left}.values()]
    if tries:
        _try_runs([*tries, *(("cost", spec, 0.0) for spec in foreign.values())])


def _middle_of_each_kind(cells: Iterable[Cell]) -> dict[CostKey, RunSpec]:
    kinds: dict[CostKey, list[RunSpec]] = {}
    for cell in cells:
        kinds.setdefault(cost_key(cell), []).append(cell.spec)
    return {kind: of_kind[round((len(of_kind) - 1) / 2)] for kind, of_kind in kinds.items()}


def _try_runs(tries: Sequence[tuple[str, RunSpec] | tuple[str, RunSpec, float]]) -> CompletedProcess[str]:
    """Have another process, like a worker's, call methods of runs' engines by name; a refusal is raised here."""
    specs = [spec for _, spec, *_ in tries]
    device = max((engine_for(spec).jax_device(spec) for spec in specs), key=["cpu", "gpu"].index)
    home = next((spec.world.home for spec in specs if isinstance(spec.world, GymnasiumEnv)), "")
    environment = {**worker_environment(specs[0].engine.device), "PYTHONPATH": python_path(home)}
    ran = subprocess.run(
        [sys.executable, "-m", "cycletime.studies.hardware_estimates"],
        input=json.dumps({"device": device, "tries": [(what, spec.as_json(), *more) for what, spec, *more in tries]}),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment, "JAX_ENABLE_COMPILATION_CACHE": "false"},
    )
    if ran.returncode == WRONG_INPUT_STATUS:
        raise InputError(ran.stderr.strip().splitlines()[-1])
    return ran


def _end(reason: KillReason, sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
    os._exit(1)


if __name__ == "__main__":
    try:
        with owning_children(), run_watchdog(Watchdog(float(HANG_TIMEOUT), lambda: False, _end)):
            begun, asked = time.time(), json.load(sys.stdin)
            prepare_jax(asked["device"])
            tries = [(what, RunSpec.from_json(each), more) for what, each, *more in asked["tries"]]
            answers = [getattr(engine_for(spec), what)(spec, *more) for what, spec, more in tries]
            print(json.dumps({"began": begun, "answers": [each and asdict(each) for each in answers]}))
    except (InputError, RunError) as error:
        print(error, file=sys.stderr)  # the sentence alone
        sys.exit(WRONG_INPUT_STATUS if isinstance(error, InputError) else 1)
