"""How long a study takes on this machine: what an agent step, a program and a process cost, from a short try.

    wall time = (programs x compilation + agent steps x cost of one + runs x bookkeeping) / workers + start-up

or that of the longest run, if that is more. Agent steps of runs that are trained together count once, at the cost of a
step of the whole program. Programs are compiled once for all workers. The try compiles its own though it may be on the
disk already, since that says nothing of the others; a study whose programs are there takes less than is told.
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
from typing import Any, TypeAlias

from cycletime.engines.devices import prepare_jax
from cycletime.engines.engine import Cost
from cycletime.engines.registry import engine_of
from cycletime.errors import InputError, RunError
from cycletime.runs.spec import RunSpec
from cycletime.runs.worlds import World
from cycletime.studies.plan.elsewhere import shared_s
from cycletime.studies.plan.plan import Plan, Planned, agent_steps_of
from cycletime.studies.running.environment import environment_for
from cycletime.studies.spec.study import Cell

RUN_S = 0.007
"""What the bookkeeping of a run costs, about; `benchmarks/studies.py` measures it."""

_COMPILED_ANEW = {"JAX_ENABLE_COMPILATION_CACHE": "false"}
"""Variables of a process in which no program comes from the disk."""

Kind: TypeAlias = tuple[str, str, str]
"""A task, an algorithm and an engine."""
Costs: TypeAlias = Mapping[Kind, Cost]


@dataclass(frozen=True)
class WallTime:
    """How long a study takes."""

    wall_s: float
    computing_s: float
    """Of all workers together, without compilation."""
    programs_s: float
    """Of all workers together, for compilation."""


def kind_of(cell: Cell) -> Kind:
    """What runs of about one cost for a step share."""
    return cell.world.name, cell.run(0).algorithm, cell.engine.name


def estimate(plan: Plan, runs: Sequence[Planned], costs: Costs, start_s: float, workers: int) -> WallTime:
    """The time that runs of a plan take; costs that are not known count nothing."""
    computing_s, programs_s, longest_s = 0.0, 0.0, 0.0
    for group in plan.groups(runs).values():
        cells = Counter(planned.cell for planned in group)
        first = plan.cells[group[0].cell]
        cost = costs.get(kind_of(first), Cost(0, 0))
        times = ceil(len(group) / max(cost.runs_at_once, first.engine.width))
        steps_s = {
            cell: agent_steps_of(plan.cells[cell]) * costs.get(kind_of(plan.cells[cell]), cost).agent_step_s
            for cell in cells
        }
        mean_s = sum(count * steps_s[cell] for cell, count in cells.items()) / len(group)
        computing_s += times * mean_s + len(group) * RUN_S
        programs_s += cost.program_s
        longest_s = max(longest_s, cost.program_s + max(steps_s.values()) + RUN_S)
    busy = plan.turns(runs, workers)
    wall_s = shared_s(computing_s + programs_s, longest_s, busy, workers) + start_s if busy else 0.0
    return WallTime(wall_s, computing_s, programs_s)


def may_be_tried(world: World) -> bool:
    """Whether to try a run imports no module: 'module:Name-v0' does, and whoever plans runs no code of others."""
    return ":" not in world.name


def calibrate(plan: Plan, runs: Iterable[Planned]) -> tuple[Costs, float]:
    """Try one run of each kind in a process like a worker's; the costs, and how long that took to start.

    The cell in the middle of those in question is tried. Nothing is kept of it.

    Raises:
        RunError: if the process fails.
    """
    cells = sorted({planned.cell for planned in runs})
    by_kind: dict[Kind, list[int]] = {}
    for index in cells:
        by_kind.setdefault(kind_of(plan.cells[index]), []).append(index)
    middle = [of_kind[round((len(of_kind) - 1) / 2)] for of_kind in by_kind.values()]
    specs = [plan.cells[index].run(plan.study.seeds[0]).as_json() for index in middle]
    began = time.time()
    ran = subprocess.run(
        [sys.executable, "-m", "cycletime.studies.plan.estimate"],
        input=json.dumps({"device": plan.jax_device, "specs": specs}),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment_for(plan.study.device), **_COMPILED_ANEW},
    )
    if ran.returncode:
        raise RunError(f"The try failed: {(ran.stderr.strip() or 'nothing was said').splitlines()[-1].rstrip('.')}.")
    told = json.loads(ran.stdout)
    costs = {kind: Cost(**cost) for kind, cost in zip(by_kind, told["costs"], strict=True)}
    return costs, max(0.0, told["began"] - began)


def _main() -> None:
    began, asked = time.time(), json.load(sys.stdin)
    prepare_jax(asked["device"])
    specs = [RunSpec.from_json(each) for each in asked["specs"]]
    costs: list[dict[str, Any]] = [asdict(engine_of(spec).cost(spec)) for spec in specs]
    print(json.dumps({"began": began, "costs": costs}))


if __name__ == "__main__":
    try:
        _main()
    except (InputError, RunError) as error:
        sys.exit(str(error))  # the sentence alone
