"""How long runs take on other machines than this one: on so many cores, or on one H200, whose costs engines know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from cycletime.engines.engine import Cost
from cycletime.engines.registry import engine_of
from cycletime.errors import InputError
from cycletime.runs.spec import RunSpec
from cycletime.studies.plan.plan import Plan, Planned, agent_steps_of

CORES = (2, 16, 64)
"""A laptop's or a small server's, a workstation's, and those of a large server."""


def shared_s(total_s: float, longest_s: float, parts: int, workers: int) -> float:
    """The time that workers take together: each has a part to do, and none is done before the longest run."""
    return max(total_s / min(parts, workers), longest_s) if parts else 0.0


def one_by_one_s(plan: Plan, runs: Sequence[Planned], cost_of: Callable[[RunSpec], Cost]) -> float:
    """The seconds of runs and their programs, one after the other but for what is trained together."""
    costs = [cost_of(cell.run(plan.study.seeds[0])) for cell in plan.cells]
    total_s = 0.0
    for group in plan.groups(runs).values():
        first = group[0].cell
        together = max(costs[first].runs_at_once, plan.cells[first].engine.width)
        counts = Counter(planned.cell for planned in group)
        runs_s = {cell: agent_steps_of(plan.cells[cell]) * costs[cell].agent_step_s for cell in counts}
        all_s = sum(count * runs_s[cell] for cell, count in counts.items())
        total_s += costs[first].program_s + shared_s(all_s, max(runs_s.values()), len(group), together)
    return total_s


def on_an_h200(plan: Plan) -> Plan:
    """The plan of the same runs for one H200.

    A program takes as long for each of its lanes, however many: to find how many fit takes longer than all else.
    """
    return Plan.of(replace(plan.study, device="gpu", width=1))


def h200_s(plan: Plan, runs: Sequence[Planned]) -> float | None:
    """About how long runs of a plan take on one H200; None where they cannot run there, or nobody knows how fast."""
    try:
        there = on_an_h200(plan)
    except InputError:
        return None
    wanted = {(planned.cell, planned.seed) for planned in runs}
    chosen = [planned for planned in there.runs if (planned.cell, planned.seed) in wanted]
    specs = [there.cells[cell].run(plan.study.seeds[0]) for cell in {planned.cell for planned in chosen}]
    if any(engine_of(spec).known_cost(spec) is None for spec in specs):
        return None
    return one_by_one_s(there, chosen, lambda spec: engine_of(spec).known_cost(spec) or Cost(0, 0))
