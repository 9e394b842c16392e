"""How long a study takes on this machine: what an agent step, a program and a process cost, from a short try.

    wall time = (programs x compilation + agent steps x cost of one + runs x bookkeeping) / workers + start-up

Agent steps of runs that are trained together count once, at the cost of a step of the whole program. Programs are
compiled once for all workers; what was compiled before is read from disk, and the try sees that too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any, TypeAlias

from cycletime.engines.cuda.describing import learnings_of
from cycletime.engines.cuda.device import find_device
from cycletime.engines.cuda.expecting import expected_s
from cycletime.errors import RunError
from cycletime.runs.spec import RunSpec
from cycletime.studies.plan import Plan, Planned, agent_steps_of
from cycletime.studies.spec import Cell
from cycletime.studies.worker import environment_for

TRY_S = 3.0
"""How long a run is tried, beyond its compilation."""
RUN_S = 0.02
"""What the files and the lease of a run cost, about; `benchmarks/studies.py` measures it."""


@dataclass(frozen=True)
class Cost:
    """What was seen of an algorithm on a task, by one engine."""

    agent_step_s: float
    """The time of one agent step, with all the learning that it causes; of all lanes, where a program has several."""
    program_s: float
    """The time until the first steps were computed."""
    blocks: int = 1
    """The runs that a GPU trains at a time on the kernel; their times are expected by their sizes and not tried."""


Kind: TypeAlias = tuple[str, str, str]
"""A task, an algorithm and an engine."""
Costs: TypeAlias = Mapping[Kind, Cost]


@dataclass(frozen=True)
class Estimate:
    """How long a study takes."""

    wall_s: float
    computing_s: float
    """Of all workers together, without compilation."""
    programs_s: float
    """Of all workers together, for compilation."""


def kind_of(cell: Cell) -> Kind:
    """What runs of about one cost for a step share."""
    return cell.world.name, cell.run(0).algorithm, cell.engine.name


def estimate(plan: Plan, runs: Iterable[Planned], costs: Costs, start_s: float, workers: int) -> Estimate:
    """The time that runs of a plan take; costs that are not known count nothing."""
    computing_s, programs_s, turns = 0.0, 0.0, 0
    for group in plan.groups(tuple(runs)).values():
        cell = plan.cells[group[0].cell]
        cost = costs.get(kind_of(cell), Cost(0, 0))
        if cell.engine.name == "cuda":
            computing_s += _on_kernel_s(plan, group, cost.blocks)  # files are written meanwhile
            programs_s += cost.program_s
            turns += ceil(len(group) / (plan.enough(group[0]) or 1))  # other GPUs take a part
            continue
        times = ceil(len(group) / plan.together(group[0]))
        computing_s += times * agent_steps_of(cell) * cost.agent_step_s + len(group) * RUN_S
        programs_s += cost.program_s
        turns += times
    busy = min(workers, turns)
    wall_s = (computing_s + programs_s) / busy + start_s if busy else 0.0
    return Estimate(wall_s, computing_s, programs_s)


def _on_kernel_s(plan: Plan, group: Iterable[Planned], blocks: int) -> float:
    """The time that a GPU takes for runs of all sizes: its blocks are busy until the longest run is left."""
    by_cell = {cell: expected_s(plan.cells[cell].run(0)) for cell in {planned.cell for planned in group}}
    seconds = [by_cell[planned.cell] for planned in group]
    return max(sum(seconds) / blocks, max(seconds))


def calibrate(plan: Plan, runs: Iterable[Planned]) -> tuple[Costs, float]:
    """Try one run of each kind in a process like a worker's; the costs, and how long that took to start.

    The cell in the middle of those in question is tried. Nothing is kept of it.
    """
    cells = sorted({planned.cell for planned in runs})
    by_kind: dict[Kind, list[int]] = {}
    for index in cells:
        by_kind.setdefault(kind_of(plan.cells[index]), []).append(index)
    middle = [of_kind[round((len(of_kind) - 1) / 2)] for of_kind in by_kind.values()]
    specs = [plan.cells[index].run(plan.study.seeds[0]).as_json() for index in middle]
    began = time.time()
    ran = subprocess.run(
        [sys.executable, "-m", "cycletime.studies.estimate"],
        input=json.dumps({"device": plan.study.jax_device, "specs": specs}),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment_for(plan.study.device)},
    )
    if ran.returncode:
        raise RunError(f"The try failed: {(ran.stderr.strip() or 'nothing was said').splitlines()[-1].rstrip('.')}.")
    told = json.loads(ran.stdout)
    costs = {kind: Cost(**cost) for kind, cost in zip(by_kind, told["costs"], strict=True)}
    return costs, max(0.0, told["began"] - began)


def cost_of(spec: RunSpec, try_s: float = TRY_S) -> Cost:
    """Train the beginning of a run, and forget it."""
    from cycletime.engines.training import engine_for

    if spec.engine.name == "cuda":
        return _kernel_cost(spec)
    program_s = learning_s = 0.0
    learning_steps = steps_before = 0
    compiled: set[bool] = set()
    before_s = time.monotonic()
    with closing(engine_for(spec)) as engine:
        for chunk in engine.chunks(None):
            passed_s, steps = time.monotonic() - before_s, chunk.agent_steps - steps_before
            learns = bool(chunk.metrics) and len(chunk.metrics["agent_steps"]) > 0
            if learns not in compiled:  # the program with learning and the one without, each at its first use
                compiled.add(learns)
                program_s += passed_s
            elif learns:
                learning_s, learning_steps = learning_s + passed_s, learning_steps + steps
            if chunk.is_last or learning_s > try_s:
                break
            before_s, steps_before = time.monotonic(), chunk.agent_steps
    return Cost(learning_s / learning_steps if learning_steps else 0.0, program_s)


def _kernel_cost(spec: RunSpec) -> Cost:
    """What the card that is here makes of a run: the time to compile, and of a step of all its blocks as expected."""
    began = time.monotonic()
    blocks = find_device().blocks
    program_s = time.monotonic() - began
    steps = learnings_of(spec) * spec.agent.period
    return Cost(expected_s(spec) / steps, program_s, blocks)


def _main() -> None:
    from cycletime.studies.work import prepare_jax

    began, asked = time.time(), json.load(sys.stdin)
    prepare_jax(asked["device"])
    costs: list[dict[str, Any]] = [asdict(cost_of(RunSpec.from_json(each))) for each in asked["specs"]]
    print(json.dumps({"began": began, "costs": costs}))


if __name__ == "__main__":
    _main()
